#include "backends/opencl/runtime/host_call.h"

#include "backends/opencl/runtime/thunk_runner.h"

namespace hlorun::opencl {

void RunHostCall(const HostCallThunk& call, ThunkRunner& runner) {
  const HostCallTable* table = runner.options().host_calls.get();
  const auto found = table != nullptr ? table->find(call.target) : HostCallTable::const_iterator{};
  if (table == nullptr || found == table->end()) {
    Fail(ErrorCode::kUnimplemented, "no host function is registered for the custom-call target \"{}\"", call.target);
  }
  // Device memory that the host cannot see is copied out and back.
  std::vector<std::vector<std::byte>> copies;
  copies.reserve(call.operands.size() + call.results.size());
  const auto host = [&](const Slice& slice) {
    const DeviceMemory memory = runner.At(slice);
    if (memory.host() != nullptr) return memory.host();
    return copies.emplace_back(static_cast<size_t>(slice.bytes)).data();
  };
  std::vector<const std::byte*> operands;
  for (const Slice& slice : call.operands) {
    std::byte* data = host(slice);
    if (runner.At(slice).host() == nullptr && slice.bytes > 0) runner.Read(runner.At(slice), data, slice.bytes);
    operands.push_back(data);
  }
  std::vector<std::byte*> results;
  for (const Slice& slice : call.results) results.push_back(host(slice));
  found->second(call, operands, results);
  for (size_t i = 0; i < results.size(); ++i) {
    const DeviceMemory memory = runner.At(call.results[i]);
    if (memory.host() == nullptr && call.results[i].bytes > 0) runner.Write(results[i], memory, call.results[i].bytes);
  }
}

}  // namespace hlorun::opencl
