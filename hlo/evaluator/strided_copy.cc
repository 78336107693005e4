#include "hlo/evaluator/strided_copy.h"

#include <cstring>

#include "hlo/error.h"

namespace hlorun::hlo {
namespace {

template <typename T>
void CopyLine(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(target, source, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
}

struct Wide {
  uint64_t words[2];
};

using LineCopy = void (*)(const std::byte*, int64_t, std::byte*, int64_t, int64_t);
LineCopy LineCopyOf(int element_bytes) {
  switch (element_bytes) {
    case 1: return CopyLine<uint8_t>;
    case 2: return CopyLine<uint16_t>;
    case 4: return CopyLine<uint32_t>;
    case 8: return CopyLine<uint64_t>;
    case 16: return CopyLine<Wide>;
    default: Fail(ErrorCode::kInternal, "no copy of elements of {} bytes", element_bytes);
  }
}

}  // namespace

void CopyStrided(const std::byte* from, const StridedView& from_view, std::byte* to, const StridedView& to_view,
                 std::span<const int64_t> dimensions, int element_bytes) {
  for (const int64_t size : dimensions) {
    if (size == 0) return;
  }
  const LineCopy copy_line = LineCopyOf(element_bytes);
  from += from_view.offset * element_bytes;
  to += to_view.offset * element_bytes;
  if (dimensions.empty()) return copy_line(from, 1, to, 1, 1);
  const size_t inner = dimensions.size() - 1;
  std::vector<int64_t> index(inner, 0);
  int64_t from_offset = 0;
  int64_t to_offset = 0;
  while (true) {
    copy_line(from + from_offset * element_bytes, from_view.strides[inner], to + to_offset * element_bytes,
              to_view.strides[inner], dimensions[inner]);
    size_t d = inner;
    while (d-- > 0) {
      from_offset += from_view.strides[d];
      to_offset += to_view.strides[d];
      if (++index[d] < dimensions[d]) break;
      from_offset -= from_view.strides[d] * dimensions[d];
      to_offset -= to_view.strides[d] * dimensions[d];
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

}  // namespace hlorun::hlo
