// What kind of kernel an instruction of an executed computation becomes. Fusion decides with it what may join, the
// backend which emitter runs: they cannot disagree.
#pragma once

#include <cstdint>

#include "hlo/instruction.h"

namespace hlorun::passes {

enum class KernelKind : uint8_t {
  kNone,         // no kernel: tuple, get-tuple-element, parameter, constant, bitcast, control flow, tokens
  kLoop,         // one value per element of the result; any mix of elementwise and index ops
  kReduction,    // one or more reduces of the same operand dimensions (several results), with producers and consumers
  kRow,          // several reductions over the same rows, and elementwise results of the row's shape (softmax, norms)
  kDot,          // `dot` with what finishes and stores its result (epilogue, stored_result.h)
  kConvolution,  // `convolution`, likewise
  kInPlace,      // dynamic-update-slice at the root of anything else, updating its operand in place
  kScatter,
  kSort,
  kReduceWindow,
  kSelectAndScatter,
  kRng,     // rng-bit-generator
  kCustom,  // hlorun.* internal custom-calls, and everything with an emitter of its own (topk, fft, cholesky ...)
  kRegion,  // kernels, loops and branches that one work-item runs in turn (regions.h)
  kBlocks,  // kernels that are run in turn on one block of their arrays after another (blocks.h)
  kTiles,   // products, and what lies between them, that are done tile by tile in one kernel (tiles.h)
  // Kernels that need nothing of each other, in one launch (horizontal_fusion.h).
  kSideBySide,
  kCollective,
  kHost,  // runs on the host: user custom-calls, infeed, outfeed, send, recv
};

struct Hero {
  KernelKind kind = KernelKind::kNone;
  // The instruction that gives the kind: the dot, the first reduce, the dynamic-update-slice, ...; in the fused
  // computation when the instruction is a fusion, else the instruction itself. Null for kNone.
  const hlo::Instruction* instruction = nullptr;
};

// Kinds whose time is that of products: their multipliers' peak is their roof.
inline constexpr bool Multiplies(KernelKind kind) {
  return kind == KernelKind::kDot || kind == KernelKind::kConvolution || kind == KernelKind::kTiles;
}

// The backend_config of a fusion that is a region, of one that is made of blocks, of one that goes by tiles, and of
// kernels side by side.
inline constexpr const char* kRegionConfig = R"({"region":"sequential"})";
inline constexpr const char* kBlocksConfig = R"({"region":"blocks"})";
inline constexpr const char* kTilesConfig = R"({"region":"tiles","trips":[)";  // with numbers behind it
inline constexpr const char* kSideBySideConfig = R"({"region":"side_by_side"})";

Hero HeroOf(const hlo::Instruction& instruction);

}  // namespace hlorun::passes
