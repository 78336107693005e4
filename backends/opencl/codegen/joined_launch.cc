#include "backends/opencl/codegen/joined_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/opencl_c.h"
#include "backends/opencl/codegen/schedule.h"

namespace hlorun::opencl {
namespace {

// Where a group's arrays begin, bytes.
constexpr int64_t kLocalAlignment = 64;

// One kernel in the making, of launches whose groups have as many work-items.
class JoinedKernel {
 public:
  explicit JoinedKernel(const DeviceSpec& device) : device_(device) {}

  void Add(const EmittedLaunch& launch) {
    const auto [known, added] = run_of_.try_emplace({launch.source, launch.grid.groups[0]}, runs_.size());
    if (added) runs_.push_back({&launch, {}});
    std::vector<size_t>& numbers = runs_[known->second].members.emplace_back();
    for (size_t i = 0; i < launch.arguments.size(); ++i)
      numbers.push_back(NumberOf(launch.arguments[i], *launch.kernel->function.parameters[i]));
  }

  EmittedLaunch Finish() const {
    EmittedLaunch joined;
    std::string helpers, branches;
    int64_t begin = 0, local_bytes = 0;
    for (const Run& run : runs_) {
      const OpenClBody body = ToOpenClBody(run.first->kernel->function, 2, device_);
      const int64_t end = begin + run.groups() * static_cast<int64_t>(run.members.size());
      int64_t bytes = 0;
      const std::string scope = PointersOf(run, begin) + LocalArrays(body, bytes) + body.text;
      const bool is_last = &run == &runs_.back();
      branches += fmt::format("{}{{\n{}  }}{}", is_last ? "" : fmt::format("if (this_group < {}) ", end), scope,
                              is_last ? "\n" : " else ");
      helpers += body.helpers;
      local_bytes = std::max(local_bytes, bytes);
      joined.kernel_ir +=
          fmt::format("groups {} to {}, {} times:\n{}", begin, end - 1, run.members.size(), run.first->kernel_ir);
      begin = end;
    }
    joined.grid = {{begin, 1, 1}, runs_[0].first->grid.local};
    joined.arguments = arguments_;
    joined.source = helpers + KernelText(joined.grid.local[0], local_bytes, branches);
    return joined;
  }

 private:
  // Equal launches: by launch, by parameter of the first one's kernel, the number of the argument.
  struct Run {
    const EmittedLaunch* first;
    std::vector<std::vector<size_t>> members;
    int64_t groups() const { return first->grid.groups[0]; }
  };

  size_t NumberOf(const ArgumentRef& argument, const ir::Buffer& array) {
    const auto [known, added] = number_of_.try_emplace(
        {static_cast<int>(argument.kind), argument.number, argument.offset, argument.bytes}, arguments_.size());
    if (added) arguments_.push_back(argument);
    if (added) types_.push_back(PointerTo(array));
    ArgumentRef& joined = arguments_[known->second];
    if (argument.written && !joined.written) types_[known->second] = PointerTo(array);
    joined.written |= argument.written;
    return known->second;
  }

  std::string KernelText(int64_t items, int64_t local_bytes, const std::string& branches) const {
    std::string parameters, memory;
    for (size_t i = 0; i < arguments_.size(); ++i)
      parameters += fmt::format("{}{} hl_argument{}", i == 0 ? "" : ", ", types_[i], i);
    if (local_bytes > 0)
      memory = fmt::format("  __local char memory[{}] __attribute__((aligned({})));\n", local_bytes, kLocalAlignment);
    return fmt::format(
        "__kernel __attribute__((reqd_work_group_size({}, 1, 1)))\nvoid {}({}) {{\n{}"
        "  const int this_group = (int)get_group_id(0);\n  const int {} = {};\n  {}}}\n",
        items, kKernelName, parameters, memory, kLane, items == 1 ? "0" : "(int)get_local_id(0)", branches);
  }

  // Parts of the group's memory, one behind the other.
  static std::string LocalArrays(const OpenClBody& body, int64_t& bytes) {
    std::string text;
    for (const ir::BufferRef& array : body.local_arrays) {
      text += fmt::format("    {0} {1} = ({0})(memory + {2});\n", PointerTo(*array), array->name, bytes);
      bytes += CeilDiv(array->size * hlo::BytesOf(array->storage), kLocalAlignment) * kLocalAlignment;
    }
    return text;
  }

  // What the group, of those from `begin` on, is given.
  static std::string PointersOf(const Run& run, int64_t begin) {
    std::string declarations, cases;
    for (const ir::BufferRef& p : run.first->kernel->function.parameters)
      declarations += fmt::format("    {} {};\n", PointerTo(*p), p->name);
    for (size_t m = 0; m < run.members.size(); ++m) {
      cases += m + 1 < run.members.size() ? fmt::format("      case {}:", m) : "      default:";
      for (size_t i = 0; i < run.members[m].size(); ++i) {
        const ir::Buffer& p = *run.first->kernel->function.parameters[i];
        cases += fmt::format(" {} = ({})hl_argument{};", p.name, PointerTo(p), run.members[m][i]);
      }
      cases += " break;\n";
    }
    return fmt::format(
        "{0}    switch ((this_group - {1}) / {2}) {{\n{3}    }}\n    const int {4} = (this_group - {1}) % {2};\n",
        declarations, begin, run.groups(), cases, kGroup);
  }

  const DeviceSpec& device_;
  std::vector<Run> runs_;
  std::map<std::pair<std::string, int64_t>, size_t> run_of_;
  std::vector<ArgumentRef> arguments_;
  std::vector<std::string> types_;  // of the arguments
  std::map<std::tuple<int, int64_t, int64_t, int64_t>, size_t> number_of_;
};

}  // namespace

bool MayJoin(const EmittedLaunch& launch) {
  return launch.kernel != nullptr && launch.grid.groups[1] == 1 && launch.grid.groups[2] == 1 &&
         launch.kernel->function.sub_group_items == 0;
}

std::vector<EmittedLaunch> JoinLaunches(const std::vector<EmittedLaunch>& launches, const DeviceSpec& device) {
  std::vector<EmittedLaunch> few;
  std::map<std::array<int64_t, 3>, std::vector<const EmittedLaunch*>> alike;  // by size of the groups
  for (const EmittedLaunch& launch : launches) {
    if (MayJoin(launch))
      alike[launch.grid.local].push_back(&launch);
    else
      few.push_back(launch);
  }
  for (const auto& [local, together] : alike) {
    if (together.size() == 1) {
      few.push_back(*together[0]);
      continue;
    }
    JoinedKernel kernel(device);
    for (const EmittedLaunch* launch : together) kernel.Add(*launch);
    few.push_back(kernel.Finish());
  }
  return few;
}

}  // namespace hlorun::opencl
