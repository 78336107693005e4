#include "backends/opencl/runtime/steps.h"

#include <algorithm>

namespace hlorun::opencl {
namespace {

// What is worth sharing on any machine, in wake-ups: arithmetic sooner than arrays, which may have to move.
constexpr double kLongestAloneBytes = 32, kLongestAloneFlops = 8;

}  // namespace

void Step::SetShares(int64_t groups, double bytes, double flops) {
  const auto share_of = [&](double bytes_of_share, double flops_of_share) {
    const double shares = std::max({1.0, bytes / bytes_of_share, flops / flops_of_share});
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(groups) / shares));
  };
  share = share_of(kWakeUpBytes, kWakeUpFlops);
  share_alone = share_of(kLongestAloneBytes * kWakeUpBytes, kLongestAloneFlops * kWakeUpFlops);
}

int64_t GroupsOf(const Thunk& thunk) {
  const auto* launch = std::get_if<LaunchThunk>(&thunk.work);
  if (launch == nullptr) return 0;
  const auto& groups = launch->grid.groups;
  return groups[0] * groups[1] * groups[2];
}

double BytesOf(const Thunk& thunk) {
  const auto* launch = std::get_if<LaunchThunk>(&thunk.work);
  if (launch == nullptr || thunk.bytes > 0 || thunk.flops > 0) return thunk.bytes;
  double bytes = 0;
  for (const passes::Slice& slice : launch->arguments) bytes += static_cast<double>(slice.bytes);
  return bytes;
}

StepSequence NumberSteps(const Sequence& sequence, std::vector<const LaunchThunk*>& launches) {
  StepSequence steps;
  steps.reserve(sequence.thunks.size());
  for (const Thunk& thunk : sequence.thunks) {
    Step step;
    step.thunk = &thunk;
    step.SetShares(GroupsOf(thunk), BytesOf(thunk), thunk.flops);
    if (const auto* launch = std::get_if<LaunchThunk>(&thunk.work)) {
      step.launch = static_cast<int32_t>(launches.size());
      launches.push_back(launch);
    } else if (const auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
      step.children.push_back(NumberSteps(*loop->condition, launches));
      step.children.push_back(NumberSteps(*loop->body, launches));
    } else if (const auto* choice = std::get_if<ConditionalThunk>(&thunk.work)) {
      for (const auto& branch : choice->branches) step.children.push_back(NumberSteps(*branch, launches));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace hlorun::opencl
