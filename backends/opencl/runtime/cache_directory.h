// Where hlorun keeps files between runs (hlo/atomic_file.h writes them, so that concurrent processes see whole files
// only).
#pragma once

#include <string>
#include <string_view>

namespace hlorun::opencl {

// $HLORUN_CACHE_DIR, else $XDG_CACHE_HOME/hlorun, else ~/.cache/hlorun, else a folder of this user's in /tmp.
std::string DefaultCacheDirectory();

// False when there is no such file.
bool ReadWholeFile(const std::string& path, std::string& contents);

// 32 hexadecimal digits of a 128-bit hash.
std::string HashText(std::string_view bytes);

}  // namespace hlorun::opencl
