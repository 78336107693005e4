// Attention and its relatives, small: what passes and kernels of tiles (passes/fusion/tiles.h) are tested with.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace hlorun {

struct AttentionProgram {
  std::string name, text;
  bool goes_by_tiles = true;  // with a second cache of kAttentionCache bytes and a last one of eight times as much

  friend void PrintTo(const AttentionProgram& program, std::ostream* out) { *out << program.name; }
};
inline constexpr int64_t kAttentionCache = 32 << 10;

std::vector<AttentionProgram> AttentionPrograms();

}  // namespace hlorun
