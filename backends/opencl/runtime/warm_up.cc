#include "backends/opencl/runtime/warm_up.h"

#include <sys/mman.h>

#include <algorithm>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/program_build.h"

namespace hlorun::opencl {
namespace {

bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Position of the '(' of "NAME (" after "kernel", or npos.
size_t ParameterList(const std::string& source, const std::string& name) {
  for (size_t at = source.find("kernel"); at != std::string::npos; at = source.find("kernel", at + 1)) {
    for (size_t n = source.find(name, at); n != std::string::npos; n = source.find(name, n + 1)) {
      const size_t end = n + name.size();
      if ((n > 0 && IsName(source[n - 1])) || (end < source.size() && IsName(source[end]))) continue;
      const size_t open = source.find_first_not_of(" \t\n", end);
      if (open != std::string::npos && source[open] == '(') return open;
    }
  }
  return std::string::npos;
}

size_t MatchingParenthesis(const std::string& source, size_t open) {
  int depth = 0;
  for (size_t i = open; i < source.size(); ++i) {
    if (source[i] == '(') ++depth;
    if (source[i] == ')' && --depth == 0) return i;
  }
  return std::string::npos;
}

// The last identifier before `end`.
std::string NameBefore(const std::string& source, size_t end) {
  size_t last = end;
  while (last > 0 && !IsName(source[last - 1])) --last;
  size_t first = last;
  while (first > 0 && IsName(source[first - 1])) --first;
  return source.substr(first, last - first);
}

// Zero pages that take no memory until written; as large as the largest array.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) : bytes_(static_cast<size_t>(std::max<int64_t>(bytes, 4096))) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED)
      Fail(ErrorCode::kResourceExhausted, "no address space for {} bytes of warm-up scratch", bytes_);
  }
  ~Scratch() { munmap(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

// One group, or the number of groups from which the platform compiles another variant.
Grid VariantOf(const Grid& grid, int64_t large_grid_groups) {
  Grid variant = grid;
  for (int64_t& groups : variant.groups)
    groups = large_grid_groups > 0 && groups >= large_grid_groups ? large_grid_groups : 1;
  return variant;
}

void Launch(const cl::CommandQueue& queue, const cl::Kernel& kernel, const Grid& grid) {
  size_t global[3], local[3];
  for (size_t d = 0; d < 3; ++d) {
    local[d] = static_cast<size_t>(grid.local[d]);
    global[d] = static_cast<size_t>(grid.groups[d]) * local[d];
  }
  CheckCl(clEnqueueNDRangeKernel(queue(), kernel(), 3, nullptr, global, local, 0, nullptr, nullptr),
          "warming a kernel up");
}

}  // namespace

bool HasBarrier(const Kernel& kernel) { return kernel.source.find("barrier(") != std::string::npos; }

std::string WithEntryGuard(const Kernel& kernel) {
  const std::string& source = kernel.source;
  if (HasBarrier(kernel)) return source;
  const size_t open = ParameterList(source, kernel.name);
  const size_t close = open == std::string::npos ? open : MatchingParenthesis(source, open);
  const size_t brace = close == std::string::npos ? close : source.find('{', close);
  if (brace == std::string::npos) return source;
  const std::string first = NameBefore(source, std::min(source.find(',', open), close));
  if (first.empty() || first == "void") return source;
  return source.substr(0, brace + 1) + " if (!" + first + ") return;" + source.substr(brace + 1);
}

std::string WithGroupLoop(const std::string& source, const std::string& name) {
  const size_t open = ParameterList(source, name);
  HLORUN_CHECK(open != std::string::npos);
  const size_t close = MatchingParenthesis(source, open);
  HLORUN_CHECK(close != std::string::npos);
  const size_t body = source.find('{', close) + 1, end = source.rfind('}');
  std::string text = source.substr(0, close) + ", int hl_first, int hl_end" + source.substr(close, body - close) +
                     " for (int hl_group = hl_first; hl_group < hl_end; ++hl_group) {" +
                     source.substr(body, end - body) + "}" + source.substr(end);
  const std::string id = "get_group_id(0)", group = "hl_group";
  for (size_t at = text.find(id); at != std::string::npos; at = text.find(id, at)) text.replace(at, id.size(), group);
  return text;
}

std::vector<int64_t> LargestArguments(const Plan& plan) {
  std::vector<int64_t> largest(plan.kernels.size(), 0);
  const std::function<void(const Sequence&)> visit = [&](const Sequence& sequence) {
    for (const Thunk& thunk : sequence.thunks) {
      if (const auto* launch = std::get_if<LaunchThunk>(&thunk.work)) {
        int64_t& bytes = largest[static_cast<size_t>(launch->kernel)];
        for (const Slice& slice : launch->arguments) bytes = std::max(bytes, slice.bytes);
      } else if (const auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
        visit(*loop->condition);
        visit(*loop->body);
      } else if (const auto* branch = std::get_if<ConditionalThunk>(&thunk.work)) {
        for (const auto& taken : branch->branches) visit(*taken);
      }
    }
  };
  visit(plan.entry);
  return largest;
}

void WarmUp(const Plan& plan, std::span<const int32_t> kernels, const cl::Program& program, const cl::Context& context,
            const cl::Device& device, const DeviceContext& run_context) {
  const cl::CommandQueue queue(context, device);
  const std::vector<int64_t> largest = LargestArguments(plan);
  int64_t scratch_bytes = 0;
  for (int32_t k : kernels) scratch_bytes = std::max(scratch_bytes, largest[static_cast<size_t>(k)]);
  const Scratch scratch(scratch_bytes);
  std::vector<cl::Kernel> live;
  for (int32_t k : kernels) {
    const Kernel& kernel = plan.kernels[static_cast<size_t>(k)];
    if (kernel.foreign) continue;
    live.emplace_back(program, SymbolOf(kernel).c_str());
    const bool guarded = !HasBarrier(kernel);
    cl_uint count = live.back().getInfo<CL_KERNEL_NUM_ARGS>();
    if (run_context.team() != nullptr) {
      constexpr cl_int kNone = 0;
      for (int i = 0; i < 2; ++i)
        CheckCl(clSetKernelArg(live.back()(), --count, sizeof(kNone), &kNone), "setting a warm-up argument");
    }
    for (cl_uint i = 0; i < count; ++i) {
      const cl_int status = run_context.raw_pointers() || !guarded
                                ? clSetKernelArgSVMPointer(live.back()(), i, guarded ? nullptr : scratch.data())
                                : clSetKernelArg(live.back()(), i, sizeof(cl_mem), nullptr);
      CheckCl(status, "setting a warm-up argument");
    }
    std::vector<Grid> variants;
    for (const Grid& grid : kernel.grids) {
      const Grid variant =
          run_context.team() != nullptr ? Grid{} : VariantOf(grid, run_context.quirks().large_grid_groups);
      if (std::find(variants.begin(), variants.end(), variant) == variants.end()) variants.push_back(variant);
    }
    for (const Grid& variant : variants) Launch(queue, live.back(), variant);
  }
  CheckCl(clFinish(queue()), "warming kernels up");
}

}  // namespace hlorun::opencl
