#include "backends/opencl/runtime/host_call.h"

#include "backends/opencl/runtime/thunk_runner.h"
#include "hlo/custom_calls/registry.h"

namespace hlorun::opencl {
namespace {

// The arrays of a call in host memory: in place where the host sees the device's memory, else copied out and back.
class HostArrays {
 public:
  explicit HostArrays(ThunkRunner& runner) : runner_(runner) {}

  std::vector<hlo::HostArray> Read(const std::vector<Slice>& slices, const std::vector<hlo::Shape>& shapes) {
    std::vector<hlo::HostArray> arrays;
    for (size_t i = 0; i < slices.size(); ++i) arrays.push_back({shapes[i].WithoutLayout(), AddressOf(slices[i])});
    return arrays;
  }
  void WriteBack(const std::vector<Slice>& slices) {
    for (const Slice& slice : slices) {
      for (const Copy& copy : copies_) {
        if (copy.slice == slice) runner_.Write(copy.bytes.data(), runner_.At(slice), slice.bytes);
      }
    }
  }

 private:
  struct Copy {
    Slice slice;
    std::vector<std::byte> bytes;
  };

  std::byte* AddressOf(const Slice& slice) {
    static std::byte nothing;
    if (slice.bytes == 0) return &nothing;
    const DeviceMemory memory = runner_.At(slice);
    if (memory.host() != nullptr) return memory.host();
    // An operand that shares its place with a result is one copy.
    for (Copy& copy : copies_) {
      if (copy.slice == slice) return copy.bytes.data();
    }
    Copy& copy = copies_.emplace_back(Copy{slice, std::vector<std::byte>(static_cast<size_t>(slice.bytes))});
    runner_.Read(memory, copy.bytes.data(), slice.bytes);
    return copy.bytes.data();
  }

  ThunkRunner& runner_;
  std::vector<Copy> copies_;
};

}  // namespace

void RunHostCall(const HostCallThunk& call, ThunkRunner& runner) {
  HostArrays arrays(runner);
  const auto operands = arrays.Read(call.operands, call.operand_shapes);
  const auto results = arrays.Read(call.results, call.result_shapes);
  if (call.target == kEvaluateTarget) {
    runner.context().evaluator().Run(call, operands, results);
  } else {
    const hlo::CustomCallRegistry* registry = runner.options().custom_calls.get();
    const hlo::HostFunction function = hlo::FindHostFunction(registry, call.target);
    if (!function) hlo::FailUnknownTarget(registry, call.target);
    hlo::CallHostFunction(function, {call.target, call.config, operands, results});
  }
  arrays.WriteBack(call.results);
}

}  // namespace hlorun::opencl
