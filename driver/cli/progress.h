// Progress on a terminal: one line on stderr that is rewritten; silent when stderr is no terminal.
#pragma once

#include <string>

namespace hlorun::cli {

// Not thread-safe, except Show().
class Progress {
 public:
  explicit Progress(bool enabled);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Show(const std::string& text);
  void Clear();

 private:
  bool enabled_;
  bool shown_ = false;
};

}  // namespace hlorun::cli
