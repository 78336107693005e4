#include "driver/api/array_impl.h"
#include "hlo/error.h"

namespace hlorun {

Array MakeArray(opencl::DeviceArray array, std::shared_ptr<opencl::DeviceContext> context) {
  return Array(std::make_shared<Array::Impl>(Array::Impl{std::move(array), std::move(context)}));
}

namespace {

const Array::Impl& Checked(const std::shared_ptr<Array::Impl>& impl) {
  if (impl == nullptr) Invalid("the array is empty: it was default-constructed");
  return *impl;
}

}  // namespace

const Shape& Array::shape() const { return Checked(impl_).array.shape; }
int64_t Array::byte_size() const { return shape().ByteSize(); }

bool Array::IsReady() const {
  const opencl::EventRef& ready = Checked(impl_).array.ready;
  return ready == nullptr || ready->Ready();
}

void Array::Wait() const {
  const opencl::EventRef& ready = Checked(impl_).array.ready;
  if (ready != nullptr) ready->Wait();
}

void Array::OnReady(std::function<void()> callback) const {
  const opencl::EventRef& ready = Checked(impl_).array.ready;
  if (ready == nullptr) {
    callback();
  } else {
    ready->OnReady(std::move(callback));
  }
}

void Array::ToHost(void* destination) const {
  Wait();
  if (byte_size() > 0) opencl::CopyToHost(impl_->context, impl_->array.memory, destination, byte_size());
}

const void* Array::HostPointer() const {
  Wait();
  return impl_->array.memory.host();
}

}  // namespace hlorun
