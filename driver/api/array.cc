#include <atomic>

#include "driver/api/array_impl.h"
#include "hlo/error.h"

namespace hlorun {

namespace {

const Array::Impl& Checked(const std::shared_ptr<Array::Impl>& impl) {
  if (impl == nullptr) Invalid("the array is empty: it was default-constructed");
  return *impl;
}

void OnAllReady(const std::vector<Array>& shards, std::function<void()> callback) {
  const auto left = std::make_shared<std::atomic<size_t>>(shards.size());
  for (const Array& shard : shards) {
    shard.OnReady([left, callback] {
      if (--*left == 0) callback();
    });
  }
}

}  // namespace

const Shape& Array::shape() const { return Checked(impl_).array.shape(); }
int64_t Array::byte_size() const { return shape().ByteSize(); }

size_t Array::CountOf(size_t value_bytes) const {
  const auto bytes = static_cast<size_t>(byte_size());
  if (bytes % value_bytes != 0) {
    Invalid("the {} bytes of {} are no whole number of values of {} bytes", bytes, shape().ToString(false),
            value_bytes);
  }
  return bytes / value_bytes;
}

bool Array::IsReady() const {
  for (const Array& shard : shards()) {
    if (!shard.IsReady()) return false;
  }
  const opencl::EventRef& ready = Checked(impl_).array.ready();
  return ready == nullptr || ready->Ready();
}

void Array::Wait() const {
  for (const Array& shard : shards()) shard.Wait();
  const opencl::EventRef& ready = Checked(impl_).array.ready();
  if (ready != nullptr) ready->Wait();
}

void Array::OnReady(std::function<void()> callback) const {
  if (!shards().empty()) return OnAllReady(shards(), std::move(callback));
  const opencl::EventRef& ready = Checked(impl_).array.ready();
  if (ready == nullptr) {
    callback();
  } else {
    ready->OnReady(std::move(callback));
  }
}

void Array::ToHost(void* destination) const {
  if (!shards().empty()) return Gather(destination);
  Wait();
  impl_->array.ToHost(destination);
}

const void* Array::HostPointer() const {
  Wait();
  return impl_->array.Dense().memory.host();
}

}  // namespace hlorun
