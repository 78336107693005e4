// Line numbers of offsets that mostly grow, in one walk over the text.
#pragma once

#include <algorithm>
#include <string_view>

namespace hlorun::hlo {

class LineCounter {
 public:
  int LineOf(std::string_view text, size_t offset) {  // from 1
    if (offset < at_) {
      at_ = 0;
      line_ = 1;
    }
    const auto begin = text.begin() + static_cast<int64_t>(at_), end = text.begin() + static_cast<int64_t>(offset);
    line_ += static_cast<int>(std::count(begin, end, '\n'));
    at_ = offset;
    return line_;
  }

 private:
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace hlorun::hlo
