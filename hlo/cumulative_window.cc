#include "hlo/cumulative_window.h"

namespace hlorun::hlo {

std::optional<CumulativeWindow> CumulativeWindowOf(const Instruction& op) {
  if (!op.Is(Opcode::kReduceWindow)) return std::nullopt;
  const Window& window = op.As<attr::Windowed>().window;
  std::optional<CumulativeWindow> found;
  for (size_t d = 0; d < window.size(); ++d) {
    const WindowDimension& w = window[d];
    if (w.IsPointwise()) continue;
    const bool whole = w.stride == 1 && w.base_dilation == 1 && w.window_dilation == 1 &&
                       w.size >= op.operand(0)->shape().dimensions()[d];
    const bool forward = w.padding_low == w.size - 1 && w.padding_high == 0;
    const bool reverse = w.padding_low == 0 && w.padding_high == w.size - 1;
    if (found || !whole || !(forward || reverse)) return std::nullopt;
    found = {static_cast<int64_t>(d), !forward};
  }
  return found;
}

}  // namespace hlorun::hlo
