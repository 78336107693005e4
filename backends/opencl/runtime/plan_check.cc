#include "backends/opencl/runtime/plan_check.h"

#include <set>

#include "backends/opencl/plan_slices.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using Kind = passes::Allocation::Kind;

template <typename T>
bool IsIndexOf(int64_t number, const std::vector<T>& of) {
  return number >= 0 && static_cast<size_t>(number) < of.size();
}

class PlanCheck {
 public:
  explicit PlanCheck(const Plan& plan) : plan_(plan) {}

  void Check() {
    for (const passes::Allocation& allocation : plan_.allocations) CheckAllocation(allocation);
    for (const Sequence* sequence : SequencesOf(plan_)) {
      for (const Thunk& thunk : sequence->thunks) {
        ForEachThunk(thunk, [&](const Thunk& t) {
          std::visit([&](const auto& work) { CheckNumbers(work); }, t.work);
          ForEachSlice(t, [&](const Slice& s) { CheckSlice(s, t.label); });
        });
      }
    }
    HLORUN_CHECK(plan_.result_slices.size() == plan_.results.size());
    for (size_t i = 0; i < plan_.result_slices.size(); ++i)
      CheckSlice(plan_.result_slices[i], "result " + std::to_string(i));
    for (const int64_t leaf : plan_.constant_parameters) HLORUN_CHECK(IsIndexOf(leaf, plan_.parameters));
  }

 private:
  void CheckAllocation(const passes::Allocation& allocation) const {
    HLORUN_CHECK(allocation.bytes >= 0);
    if (allocation.kind == Kind::kArgument) HLORUN_CHECK(IsIndexOf(allocation.index, plan_.parameters));
    if (allocation.kind == Kind::kResult) HLORUN_CHECK(IsIndexOf(allocation.index, plan_.results));
    HLORUN_CHECK(allocation.aliased_argument < static_cast<int64_t>(plan_.parameters.size()));
  }

  void CheckSlice(const Slice& s, const std::string& label) const {
    const bool inside = IsIndexOf(s.allocation, plan_.allocations) && s.offset >= 0 && s.bytes >= 0 &&
                        s.offset <= plan_.allocations[static_cast<size_t>(s.allocation)].bytes - s.bytes;
    if (!inside) {
      Fail(ErrorCode::kInternal, "plan of {}: {} names bytes {} + {} of allocation {}, which it has not",
           plan_.module_name, label, s.offset, s.bytes, s.allocation);
    }
  }

  void CheckNumbers(const LaunchThunk& launch) {
    HLORUN_CHECK(IsIndexOf(launch.kernel, plan_.kernels));
    const int64_t count = plan_.kernels[static_cast<size_t>(launch.kernel)].parameter_count;
    HLORUN_CHECK(static_cast<int64_t>(launch.arguments.size()) == count &&
                 static_cast<int64_t>(launch.written.size()) == count);
  }
  void CheckNumbers(const CopyThunk& copy) { HLORUN_CHECK(copy.to.bytes <= copy.from.bytes); }
  void CheckNumbers(const CollectiveThunk& collective) {
    const size_t operands = collective.operands.size(), results = collective.results.size();
    HLORUN_CHECK(collective.operand_shapes.size() == operands && collective.result_shapes.size() == results);
    if (collective.kind == CollectiveKind::kRaggedAllToAll) {
      HLORUN_CHECK(operands == 6 && results == 1);
    } else {
      HLORUN_CHECK(operands == results);
    }
    HLORUN_CHECK(collective.reduction_kernel < 0 || IsIndexOf(collective.reduction_kernel, plan_.kernels));
    if (collective.ticket >= 0) started_.insert(collective.ticket);
    // The runtime keeps a list by ticket.
    HLORUN_CHECK(collective.ticket <= kMostTickets);
  }
  void CheckNumbers(const HostCallThunk& call) {
    HLORUN_CHECK(call.operands.size() == call.operand_shapes.size() &&
                 call.results.size() == call.result_shapes.size());
  }
  void CheckNumbers(const TransferThunk& transfer) { HLORUN_CHECK(transfer.arrays.size() == transfer.shapes.size()); }
  void CheckNumbers(const AwaitThunk& await) { HLORUN_CHECK(started_.contains(await.ticket)); }
  void CheckNumbers(const WriteThunk& write) {
    HLORUN_CHECK(write.value == WriteThunk::Value::kBytes || write.to.bytes <= 8);
  }
  void CheckNumbers(const WhileThunk&) {}
  void CheckNumbers(const ConditionalThunk&) {}
  void CheckNumbers(const LibraryThunk&) {}

  static constexpr int32_t kMostTickets = 1 << 20;

  const Plan& plan_;
  std::set<int32_t> started_;
};

}  // namespace

void CheckPlan(const Plan& plan) { PlanCheck(plan).Check(); }

}  // namespace hlorun::opencl
