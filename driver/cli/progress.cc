#include "driver/cli/progress.h"

#include <unistd.h>

#include <cstdio>

namespace hlorun::cli {

Progress::Progress(bool enabled) : enabled_(enabled && isatty(STDERR_FILENO) == 1) {}

void Progress::Show(const std::string& text) {
  if (!enabled_) return;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%.100s", text.c_str());
  std::fflush(stderr);
}

void Progress::Clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace hlorun::cli
