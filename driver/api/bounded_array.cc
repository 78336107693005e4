#include "driver/api/bounded_array.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>

#include "hlo/error.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun {
namespace {

using opencl::DeviceArray;
using opencl::DeviceMemory;
using opencl::DeviceValue;

hlo::Dims StridesOf(const hlo::Dims& dimensions) { return hlo::Shape(hlo::ElementType::kU8, dimensions).Strides(); }

// Whether elements at these indices lie one after another in an array of the bound's size.
bool IsPrefix(const hlo::Dims& dimensions, const hlo::Dims& bound) {
  bool whole = true;  // all faster dimensions are as large as their bounds
  for (size_t d = dimensions.size(); d-- > 0;) {
    if (!whole && dimensions[d] > 1) return false;
    whole &= dimensions[d] == bound[d];
  }
  return true;
}

void FillPadding(std::byte* memory, int64_t bytes) {
  const char* asked = std::getenv("HLORUN_PADDING");
  if (asked == nullptr) return;
  const std::string_view with = asked;
  if (with == "nan") {
    std::memset(memory, 0xFF, static_cast<size_t>(bytes));
  } else if (with == "random") {
    std::mt19937_64 random(static_cast<uint64_t>(bytes));
    for (int64_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(random());
  } else {
    Invalid("HLORUN_PADDING={}: expected nan or random", with);
  }
}

}  // namespace

BoundedArray::BoundedArray(DeviceArray dense, std::shared_ptr<opencl::DeviceContext> context)
    : shape_(std::move(dense.shape)),
      ready_(std::move(dense.ready)),
      context_(std::move(context)),
      is_born_dense_(true),
      dense_(std::move(dense.memory)) {}

BoundedArray::BoundedArray(DeviceArray at_bound, const hlo::Dims& dimensions,
                           std::shared_ptr<opencl::DeviceContext> context)
    : shape_(hlo::Shape(at_bound.shape->element_type(), dimensions)),
      ready_(std::move(at_bound.ready)),
      context_(std::move(context)),
      at_bound_(std::move(at_bound.memory)),
      bound_(at_bound.shape->dimensions()) {
  if (IsPrefix(dimensions, bound_)) dense_ = at_bound_.Sub(0, shape_->ByteSize());
}

void BoundedArray::WriteTo(std::byte* destination, const hlo::Dims& dimensions) {
  if (ready_ != nullptr) ready_->Wait();
  const DeviceMemory& source = dense_.empty() ? at_bound_ : dense_;
  const hlo::Dims& source_dimensions = dense_.empty() ? bound_ : shape_->dimensions();
  std::vector<std::byte> staged;
  const std::byte* from = source.host();
  if (from == nullptr) {
    staged.resize(static_cast<size_t>(source.bytes()));
    if (!staged.empty()) opencl::CopyToHost(context_, source, staged.data(), source.bytes());
    from = staged.data();
  }
  hlo::CopyStrided(from, {0, StridesOf(source_dimensions)}, destination, {0, StridesOf(dimensions)},
                   shape_->dimensions(), hlo::BytesOf(shape_->element_type()));
}

DeviceMemory BoundedArray::CopyAtBound(const hlo::Dims& bound) {
  const int64_t bytes = hlo::CheckedProduct(bound) * hlo::BytesOf(shape_->element_type());
  DeviceMemory copy = opencl::PoolOf(context_)->Allocate(bytes, shape_->ToString(false));
  if (bytes > 0) {
    std::vector<std::byte> staged;
    std::byte* to = copy.host();
    if (to == nullptr) {
      staged.resize(static_cast<size_t>(bytes));
      to = staged.data();
    }
    FillPadding(to, bytes);
    WriteTo(to, bound);
    if (!staged.empty()) opencl::CopyToDevice(context_, staged.data(), copy, bytes);
  }
  return copy;
}

DeviceValue BoundedArray::DenseLocked() {
  if (dense_.empty() && !at_bound_.empty()) dense_ = CopyAtBound(shape_->dimensions());
  return {dense_, ready_};
}

DeviceValue BoundedArray::Dense() {
  const std::lock_guard lock(mutex_);
  return DenseLocked();
}

DeviceValue BoundedArray::AtBound(const hlo::Dims& bound) {
  if (is_born_dense_ && bound == shape_->dimensions()) return {dense_, ready_};
  const std::lock_guard lock(mutex_);
  if (bound == shape_->dimensions()) return DenseLocked();
  if (bound_ != bound) {
    at_bound_ = CopyAtBound(bound);
    bound_ = bound;
  }
  return {at_bound_, ready_};
}

DeviceValue BoundedArray::ToDonate(const hlo::Dims& bound) {
  const std::lock_guard lock(mutex_);
  if (bound == shape_->dimensions()) return DenseLocked();
  if (bound_ == bound) return {at_bound_, ready_};
  return {CopyAtBound(bound), nullptr};
}

void BoundedArray::ToHost(void* destination) {
  const std::lock_guard lock(mutex_);
  if (shape_->ByteSize() == 0) return;
  if (dense_.empty()) {
    WriteTo(static_cast<std::byte*>(destination), shape_->dimensions());
  } else {
    opencl::CopyToHost(context_, dense_, destination, shape_->ByteSize());
  }
}

}  // namespace hlorun
