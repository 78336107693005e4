#include "passes/expand/split_windows.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "hlo/builder.h"
#include "hlo/cumulative_window.h"
#include "passes/expand/reducer_identity.h"

namespace hlorun::passes {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Window;
using hlo::WindowDimension;

// Of an element that a stage stores and the next one finds again, in elements that are reduced.
constexpr double kCostOfElement = 4;
// What the stages must spare: estimates are not better than that, and they are one launch more.
constexpr double kWorthIt = 0.7;
constexpr double kFewestReduced = 1 << 16;  // of all windows: below this, another launch costs more than it spares

double Product(const Dims& dims) {
  double product = 1;
  for (const int64_t d : dims) product *= static_cast<double>(d);
  return product;
}

double CostOf(const Dims& results, double elements) { return Product(results) * (elements + kCostOfElement); }

double ElementsOf(const Window& window) {
  double elements = 1;
  for (const WindowDimension& w : window) elements *= static_cast<double>(w.size);
  return elements;
}

bool IsCandidate(const Instruction& op) {
  if (!op.Is(Opcode::kReduceWindow) || op.operand_count() != 2 || !op.shape().IsArray()) return false;
  const hlo::Shape& x = op.operand(0)->shape();
  const Window& window = op.As<hlo::attr::Windowed>().window;
  if (!x.IsStatic() || x.ElementCount() == 0 || op.shape().ElementCount() == 0) return false;
  if (Product(op.shape().dimensions()) * ElementsOf(window) < kFewestReduced || CumulativeWindowOf(op)) return false;
  // Beyond that most of a window is padding.
  constexpr int64_t kLongest = 1 << 24;
  const auto is_plain = [](const WindowDimension& w) { return w.base_dilation == 1 && w.size <= kLongest; };
  return std::all_of(window.begin(), window.end(), is_plain) && hlo::ReducerOpcode(*op.called()).has_value();
}

// Along dimension `d` runs of `run` elements, `count` of them, and `rest` more.
struct Cut {
  size_t d = 0;
  int64_t run = 1, count = 1, rest = 0;
};

// The elements that runs begin at.
int64_t Starts(const WindowDimension& w, int64_t out, const Cut& cut) {
  return (out - 1) * w.stride + (cut.count - 1) * cut.run * w.window_dilation + 1;
}

class Splitter {
 public:
  explicit Splitter(Instruction* op)
      : op_(op),
        window_(op->As<hlo::attr::Windowed>().window),
        x_(op->operand(0)),
        results_(op->shape().dimensions()) {}

  // The dimension that is best reduced first, or the runs of the only one; nothing where neither is worth it.
  std::optional<Cut> Best() const {
    const double whole = CostOf(results_, ElementsOf(window_));
    double least = kWorthIt * whole;
    std::optional<Cut> best;
    const auto consider = [&](const Cut& cut, double cost) {
      if (cost >= least) return;
      least = cost;
      best = cut;
    };
    for (size_t d = 0; d < window_.size(); ++d) {
      if (window_[d].size == 1) continue;
      if (IsOneOfSeveral(d)) {
        consider({d, window_[d].size, 1, 0}, CostOfDimension(d));
        continue;
      }
      for (int64_t run = 2; run * run <= 2 * window_[d].size; ++run) {
        const Cut cut{d, run, window_[d].size / run, window_[d].size % run};
        consider(cut, CostOfRuns(cut));
      }
    }
    return best;
  }

  // Returns the stages.
  std::vector<Instruction*> Split(const Cut& cut) {
    const WindowDimension& w = window_[cut.d];
    const int64_t n = x_->shape().dimensions()[cut.d];
    const bool is_whole_dimension = cut.count == 1 && cut.rest == 0;
    // Runs from each element on that one begins at; a whole dimension where its windows are.
    WindowDimension of_run = w;
    if (!is_whole_dimension) {
      of_run.size = cut.run;
      of_run.stride = 1;
      const int64_t reach = (cut.run - 1) * w.window_dilation + 1;
      of_run.padding_high = Starts(w, results_[cut.d], cut) - 1 + reach - n - w.padding_low;
    }
    Instruction* runs = Stage(x_, Only(cut.d, of_run), Identity());
    Window last = window_;
    last[cut.d] = WindowDimension{};
    if (!is_whole_dimension) {
      last[cut.d].size = cut.count;
      last[cut.d].stride = w.stride;
      last[cut.d].window_dilation = cut.run * w.window_dilation;
    }
    Instruction* result = Stage(runs, last, op_->operand(1));
    std::vector<Instruction*> stages = {runs, result};
    if (cut.rest > 0) {
      Window of_rest = window_;
      of_rest[cut.d].size = cut.rest;
      of_rest[cut.d].padding_low = w.padding_low - cut.run * cut.count * w.window_dilation;
      stages.push_back(Stage(x_, of_rest, Identity()));
      result = Builder().Binary(*hlo::ReducerOpcode(*op_->called()), result, stages.back());
    }
    op_->parent()->Replace(op_, result);
    return stages;
  }

 private:
  hlo::Builder Builder() const {
    hlo::Builder build(op_->parent(), op_);
    build.before = op_;
    return build;
  }
  Instruction* Identity() const {
    return Builder().Constant(ReducerIdentity(*hlo::ReducerOpcode(*op_->called()), op_->shape().element_type()));
  }
  Window Only(size_t d, const WindowDimension& w) const {
    Window window(window_.size());
    window[d] = w;
    return window;
  }
  static Dims ResultsOf(const Dims& from, const Window& window) {
    Dims results = from;
    for (size_t d = 0; d < window.size(); ++d) {
      const WindowDimension& w = window[d];
      const int64_t reach = (w.size - 1) * w.window_dilation + 1;
      results[d] = (from[d] + w.padding_low + w.padding_high - reach) / w.stride + 1;
    }
    return results;
  }
  Instruction* Stage(Instruction* of, const Window& window, Instruction* initial) const {
    return Builder().Make(Opcode::kReduceWindow, {of, initial}, hlo::attr::Windowed{window}, {op_->called()});
  }

  bool IsOneOfSeveral(size_t d) const {
    return std::any_of(window_.begin(), window_.end(),
                       [&](const WindowDimension& w) { return &w != &window_[d] && w.size > 1; });
  }
  double CostOfDimension(size_t d) const {
    const Dims between = ResultsOf(x_->shape().dimensions(), Only(d, window_[d]));
    const auto size = static_cast<double>(window_[d].size);
    return CostOf(between, size) + CostOf(results_, ElementsOf(window_) / size);
  }
  double CostOfRuns(const Cut& cut) const {
    Dims between = x_->shape().dimensions();
    between[cut.d] = Starts(window_[cut.d], results_[cut.d], cut);
    const auto cost = [](const Dims& results, int64_t elements) {
      return CostOf(results, static_cast<double>(elements));
    };
    const double rest = cut.rest == 0 ? 0 : cost(results_, cut.rest);
    return cost(between, cut.run) + cost(results_, cut.count) + rest;
  }

  Instruction* op_;
  const Window window_;
  Instruction* x_;
  const Dims results_;
};

}  // namespace

bool SplitWindows::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    std::vector<Instruction*> work = computation->PostOrder();
    while (!work.empty()) {
      Instruction* instruction = work.back();
      work.pop_back();
      if (!IsCandidate(*instruction)) continue;
      Splitter splitter(instruction);
      const std::optional<Cut> cut = splitter.Best();
      if (!cut) continue;
      const std::vector<Instruction*> stages = splitter.Split(*cut);
      work.insert(work.end(), stages.begin(), stages.end());
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
