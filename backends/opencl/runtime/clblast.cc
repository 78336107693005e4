#include "backends/opencl/runtime/clblast.h"

#include <mutex>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/clblast_library.h"
#include "backends/opencl/runtime/clblast_override.h"

namespace hlorun::opencl {
namespace {

// CLBlast's C interface (clblast_c.h), as far as it is called.
constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
constexpr int kFirstOwnStatus = -1024;  // below the statuses of OpenCL

template <typename Scalar>
using StridedBatched = int (*)(int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k, Scalar alpha,
                               cl_mem a, size_t a_offset, size_t a_ld, size_t a_stride, cl_mem b, size_t b_offset,
                               size_t b_ld, size_t b_stride, Scalar beta, cl_mem c, size_t c_offset, size_t c_ld,
                               size_t c_stride, size_t batch_count, cl_command_queue* queue, cl_event* event);

template <typename Scalar>
int Multiply(const char* routine, Scalar one, Scalar zero, const LibraryThunk& p, const ClblastArray& lhs,
             const ClblastArray& rhs, const ClblastArray& out, cl_command_queue queue) {
  const auto function = reinterpret_cast<StridedBatched<Scalar>>(ClblastSymbol(routine));
  const auto m = static_cast<size_t>(p.m), n = static_cast<size_t>(p.n), k = static_cast<size_t>(p.k);
  const auto element = static_cast<size_t>(hlo::BytesOf(p.type));
  const auto first = [&](const ClblastArray& array) { return static_cast<size_t>(array.offset) / element; };
  return function(kRowMajor, p.lhs_transposed ? kTransposed : kPlain, p.rhs_transposed ? kTransposed : kPlain, m, n, k,
                  one, lhs.buffer, first(lhs), p.lhs_transposed ? m : k, m * k, rhs.buffer, first(rhs),
                  p.rhs_transposed ? k : n, k * n, zero, out.buffer, first(out), n, m * n, static_cast<size_t>(p.batch),
                  &queue, nullptr);
}

constexpr cl_half kHalfOne = 0x3c00;

int Dispatch(const LibraryThunk& p, const ClblastArray& lhs, const ClblastArray& rhs, const ClblastArray& out,
             cl_command_queue queue) {
  using hlo::ElementType;
  switch (p.type) {
    case ElementType::kF16:
      return Multiply<cl_half>("CLBlastHgemmStridedBatched", kHalfOne, 0, p, lhs, rhs, out, queue);
    case ElementType::kF32: return Multiply<cl_float>("CLBlastSgemmStridedBatched", 1, 0, p, lhs, rhs, out, queue);
    case ElementType::kF64: return Multiply<cl_double>("CLBlastDgemmStridedBatched", 1, 0, p, lhs, rhs, out, queue);
    case ElementType::kC64:
      return Multiply<cl_float2>("CLBlastCgemmStridedBatched", {{1, 0}}, {{0, 0}}, p, lhs, rhs, out, queue);
    case ElementType::kC128:
      return Multiply<cl_double2>("CLBlastZgemmStridedBatched", {{1, 0}}, {{0, 0}}, p, lhs, rhs, out, queue);
    default: Fail(ErrorCode::kInternal, "CLBlast has no product of {}", hlo::ElementTypeName(p.type));
  }
}

}  // namespace

void EnqueueClblastProduct(const LibraryThunk& product, const ClblastArray& lhs, const ClblastArray& rhs,
                           const ClblastArray& out, cl_command_queue queue) {
  static std::mutex numbers_in_use;
  cl_device_id device = nullptr;
  CheckCl(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(cl_device_id), &device, nullptr), "the queue's device");
  const std::lock_guard lock(numbers_in_use);
  UseClblastNumbers(device, product.type, product.numbers);
  const int status = Dispatch(product, lhs, rhs, out, queue);
  if (status == 0) return;
  if (status > kFirstOwnStatus) FailCl(status, "CLBlast");
  Fail(ErrorCode::kInternal, "CLBlast refuses a product of {} x {} x {} (its status {})", product.m, product.k,
       product.n, status);
}

}  // namespace hlorun::opencl
