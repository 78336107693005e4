#include "backends/opencl/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hlo/opcode.h"

namespace hlorun::opencl {
namespace {

std::string ToText(const Slice& slice) {
  return fmt::format("a{}[{}+{}]", slice.allocation, slice.offset, slice.bytes);
}

std::string ToText(const std::vector<Slice>& slices) {
  std::string text;
  for (const Slice& slice : slices) text += (text.empty() ? "" : ", ") + ToText(slice);
  return "(" + text + ")";
}

// One line a thunk, nested sequences indented below it.
class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {}

  std::string Print() {
    fmt::format_to(Out(), "plan {} for {}\n", plan_.module_name, plan_.device.name);
    PrintMemory();
    fmt::format_to(Out(), "{} kernels\n", plan_.kernels.size());
    for (const Kernel& kernel : plan_.kernels) {
      fmt::format_to(Out(), "  {}: {} parameters, {} grids, {} bytes of source\n", kernel.name, kernel.parameter_count,
                     kernel.grids.size(), kernel.source.size());
    }
    if (!plan_.of_constants.thunks.empty()) {
      fmt::format_to(Out(), "of constants\n");
      PrintSequence(plan_.of_constants, 1);
    }
    if (!plan_.once.thunks.empty()) {
      fmt::format_to(Out(), "once\n");
      PrintSequence(plan_.once, 1);
    }
    fmt::format_to(Out(), "entry\n");
    PrintSequence(plan_.entry, 1);
    return std::move(text_);
  }

 private:
  std::back_insert_iterator<std::string> Out() { return std::back_inserter(text_); }

  void PrintMemory() {
    constexpr const char* kKinds[] = {"argument", "constant", "result", "arena"};
    for (size_t i = 0; i < plan_.allocations.size(); ++i) {
      const passes::Allocation& allocation = plan_.allocations[i];
      fmt::format_to(Out(), "  a{}: {} {}, {} bytes", i, kKinds[static_cast<size_t>(allocation.kind)], allocation.index,
                     allocation.bytes);
      if (allocation.aliased_argument >= 0) fmt::format_to(Out(), ", over argument {}", allocation.aliased_argument);
      text_ += '\n';
    }
    for (size_t i = 0; i < plan_.parameters.size(); ++i) {
      const ArrayInfo& info = plan_.parameters[i];
      fmt::format_to(Out(), "  parameter {}: {} {}{}\n", i, info.name, info.shape.ToString(),
                     info.donated ? ", donated" : "");
    }
    for (size_t i = 0; i < plan_.results.size(); ++i) {
      fmt::format_to(Out(), "  result {}: {} in {}\n", plan_.results[i].name, plan_.results[i].shape.ToString(),
                     ToText(plan_.result_slices[i]));
    }
  }

  void PrintSequence(const Sequence& sequence, size_t depth) {
    for (const Thunk& thunk : sequence.thunks) {
      text_.append(2 * depth, ' ');
      std::visit([&](const auto& work) { PrintWork(work, thunk, depth); }, thunk.work);
    }
  }

  void EndLine(const Thunk& thunk) { fmt::format_to(Out(), "  ; {}\n", thunk.label); }

  void PrintWork(const LaunchThunk& work, const Thunk& thunk, size_t) {
    const auto& groups = work.grid.groups;
    const auto& local = work.grid.local;
    fmt::format_to(Out(), "launch k{} {}x{}x{}", work.kernel, groups[0], groups[1], groups[2]);
    if (local != std::array<int64_t, 3>{1, 1, 1}) fmt::format_to(Out(), " of {}x{}x{}", local[0], local[1], local[2]);
    text_ += " (";
    for (size_t i = 0; i < work.arguments.size(); ++i) {
      fmt::format_to(Out(), "{}{}{}", i > 0 ? ", " : "", work.written[i] ? "out " : "", ToText(work.arguments[i]));
    }
    text_ += ')';
    EndLine(thunk);
  }
  void PrintWork(const CopyThunk& work, const Thunk& thunk, size_t) {
    fmt::format_to(Out(), "copy {} to {}", ToText(work.from), ToText(work.to));
    EndLine(thunk);
  }
  void PrintWork(const WriteThunk& work, const Thunk& thunk, size_t) {
    constexpr const char* kValues[] = {"bytes", "partition-id", "replica-id"};
    fmt::format_to(Out(), "write {} to {}", kValues[static_cast<size_t>(work.value)], ToText(work.to));
    EndLine(thunk);
  }
  void PrintWork(const CollectiveThunk& work, const Thunk& thunk, size_t) {
    constexpr const char* kKinds[] = {"all-reduce",         "all-gather",           "reduce-scatter",   "all-to-all",
                                      "collective-permute", "collective-broadcast", "ragged-all-to-all"};
    fmt::format_to(Out(), "{} {} to {}", kKinds[static_cast<size_t>(work.kind)], ToText(work.operands),
                   ToText(work.results));
    for (const auto& group : work.groups) fmt::format_to(Out(), " {}", fmt::join(group, ","));
    for (const auto& [source, target] : work.pairs) fmt::format_to(Out(), " {}->{}", source, target);
    if (work.dimension >= 0) fmt::format_to(Out(), " dimension {}", work.dimension);
    if (work.ticket >= 0) fmt::format_to(Out(), " started as {}", work.ticket);
    EndLine(thunk);
  }
  void PrintWork(const AwaitThunk& work, const Thunk& thunk, size_t) {
    fmt::format_to(Out(), "await {}", work.ticket);
    EndLine(thunk);
  }
  void PrintWork(const WhileThunk& work, const Thunk& thunk, size_t depth) {
    fmt::format_to(Out(), "while {}", ToText(work.predicate));
    if (work.trip_count >= 0) fmt::format_to(Out(), " {} times", work.trip_count);
    if (work.at_most >= 0) fmt::format_to(Out(), " at most {} times", work.at_most);
    if (work.ahead > 0) fmt::format_to(Out(), " {} ahead", work.ahead);
    EndLine(thunk);
    PrintNested("condition", *work.condition, depth);
    PrintNested("body", *work.body, depth);
  }
  void PrintWork(const ConditionalThunk& work, const Thunk& thunk, size_t depth) {
    fmt::format_to(Out(), "{} {}", work.is_predicate ? "if" : "switch", ToText(work.selector));
    EndLine(thunk);
    for (const auto& branch : work.branches) PrintNested("branch", *branch, depth);
  }
  void PrintWork(const HostCallThunk& work, const Thunk& thunk, size_t) {
    fmt::format_to(Out(), "host \"{}\" {} to {}", work.target, ToText(work.operands), ToText(work.results));
    EndLine(thunk);
  }

  void PrintWork(const LibraryThunk& work, const Thunk& thunk, size_t) {
    fmt::format_to(Out(), "clblast {} {}x {}x{}x{} {}{} {} by {} to {}", hlo::ElementTypeName(work.type), work.batch,
                   work.m, work.k, work.n, work.lhs_transposed ? 't' : 'n', work.rhs_transposed ? 't' : 'n',
                   ToText(work.lhs), ToText(work.rhs), ToText(work.out));
    for (size_t i = 0; i < work.numbers.size(); ++i) {
      if (work.numbers[i] != 0) fmt::format_to(Out(), " {}={}", kClblastNumbers[i].name, work.numbers[i]);
    }
    EndLine(thunk);
  }

  void PrintWork(const TransferThunk& work, const Thunk& thunk, size_t) {
    fmt::format_to(Out(), "{} channel {} {}", work.to_program ? "receive" : "send", work.channel, ToText(work.arrays));
    for (const auto& [source, target] : work.pairs) fmt::format_to(Out(), " {}->{}", source, target);
    EndLine(thunk);
  }

  void PrintNested(const char* what, const Sequence& sequence, size_t depth) {
    text_.append(2 * depth + 1, ' ');
    fmt::format_to(Out(), "{}\n", what);
    PrintSequence(sequence, depth + 1);
  }

  const Plan& plan_;
  std::string text_;
};

}  // namespace

std::string Plan::ToString() const { return Printer(*this).Print(); }

}  // namespace hlorun::opencl
