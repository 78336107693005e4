// Where hlorun keeps files between runs, and how it writes them: a temporary name, then rename, so that concurrent
// processes see whole files only.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hlorun::opencl {

// $HLORUN_CACHE_DIR, else $XDG_CACHE_HOME/hlorun, else ~/.cache/hlorun, else a folder of this user's in /tmp.
std::string DefaultCacheDirectory();

// Throws Error: kResourceExhausted when the disk is full, else kFailedPrecondition.
void WriteFileAtomically(const std::string& path, std::string_view contents);
void WriteFileAtomically(const std::string& path, std::span<const std::string_view> parts);  // one after the other
// False when there is no such file.
bool ReadWholeFile(const std::string& path, std::string& contents);

// 32 hexadecimal digits of a 128-bit hash.
std::string HashText(std::string_view bytes);

}  // namespace hlorun::opencl
