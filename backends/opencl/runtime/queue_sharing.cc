#include "backends/opencl/runtime/queue_sharing.h"

#include <algorithm>

#include "backends/opencl/runtime/lane.h"
#include "backends/opencl/runtime/sections.h"

namespace hlorun::opencl {
namespace {

// Where it was not measured (bench/roofline): several times what CPU runtimes take. What is not gained is no harm.
constexpr double kMeetingMicroseconds = 20;

bool HasSections(const StepSequence& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.section > 1 || std::any_of(step.children.begin(), step.children.end(), HasSections);
  });
}

// 0 of what was never launched, or failed.
double MicrosecondsOf(const cl::Event& launched) {
  cl_ulong begin = 0, end = 0;
  if (launched() == nullptr ||
      clGetEventProfilingInfo(launched(), CL_PROFILING_COMMAND_START, sizeof(begin), &begin, nullptr) != CL_SUCCESS ||
      clGetEventProfilingInfo(launched(), CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) != CL_SUCCESS)
    return 0;
  return end > begin ? static_cast<double>(end - begin) * 1e-3 : 0;
}

bool IsDone(const cl::Event& launched) {
  cl_int status = CL_COMPLETE;
  if (launched() != nullptr)
    clGetEventInfo(launched(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  return status <= CL_COMPLETE;  // less: an error
}

}  // namespace

QueueSharing::QueueSharing(const Plan& plan, StepSequence steps, size_t launches, bool by_grid)
    : meeting_(plan.device.Cost("queues_meet_us") > 0 ? plan.device.Cost("queues_meet_us") : kMeetingMicroseconds),
      launches_(launches),
      steps_(std::make_shared<StepSequence>(steps)) {
  FormSectionsOfQueues(plan, by_grid, steps);
  if (HasSections(steps)) sections_ = std::make_shared<StepSequence>(std::move(steps));
}

QueueSharing::Turn QueueSharing::Next(const Lane& lane, bool may_time) {
  std::lock_guard lock(mutex_);
  if (sections_ != nullptr && !timed_.launched.empty() &&
      std::all_of(timed_.launched.begin(), timed_.launched.end(), IsDone))
    Choose();
  if (lane_ == nullptr) lane_ = &lane;
  if (sections_ == nullptr || !may_time || lane_ != &lane || ++runs_ != 2) return {steps_, {}, {}};
  try {
    const cl::CommandQueue& queue = lane.queue();
    return {sections_,
            {queue.getInfo<CL_QUEUE_CONTEXT>(), queue.getInfo<CL_QUEUE_DEVICE>(), CL_QUEUE_PROFILING_ENABLE},
            std::vector<cl::Event>(launches_)};
  } catch (const cl::Error&) {  // no such queue: nothing will be known
    return {steps_, {}, {}};
  }
}

void QueueSharing::GiveBack(Turn turn) {
  std::lock_guard lock(mutex_);
  timed_ = std::move(turn);
}

void QueueSharing::Choose() {
  std::vector<double> microseconds;
  for (const cl::Event& launched : timed_.launched) microseconds.push_back(MicrosecondsOf(launched));
  auto steps = std::make_shared<StepSequence>(*sections_);
  PartSections(microseconds, meeting_, *steps);
  if (HasSections(*steps)) steps_ = std::move(steps);
  sections_ = nullptr;
  timed_ = {};
}

}  // namespace hlorun::opencl
