#include "passes/expand/slice_scan.h"

#include <set>
#include <utility>

#include "passes/simplify/pattern.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

namespace {

constexpr int64_t kFewestElements = 4;
// Of one level's function; functions of users have some ten ops.
constexpr size_t kMostPairs = 1024;

// Every `stride`-th element of one dimension.
struct Strided {
  Instruction* of;
  int64_t start, stride, count;  // the stride is 1 where there is one element
};

std::optional<Strided> StridedOf(const Instruction& op, int64_t dimension) {
  if (!op.Is(Opcode::kSlice)) return std::nullopt;
  const auto& slice = op.As<hlo::attr::Slice>();
  Instruction* of = op.operand(0);
  if (dimension >= of->shape().rank()) return std::nullopt;
  for (size_t d = 0; d < slice.starts.size(); ++d) {
    if (static_cast<int64_t>(d) == dimension) continue;
    if (op.shape().dimensions()[d] != of->shape().dimensions()[d]) return std::nullopt;
  }
  const auto along = static_cast<size_t>(dimension);
  const int64_t count = op.shape().dimension(dimension);
  return Strided{of, slice.starts[along], count == 1 ? 1 : slice.strides[along], count};
}

// Elements start, start + 2, ... of an array of `length`, `count` of them.
Instruction* SecondElementsOf(const Instruction& op, int64_t dimension, int64_t start, int64_t count, int64_t length) {
  const std::optional<Strided> slice = StridedOf(op, dimension);
  if (!slice || slice->start != start || slice->count != count || slice->stride != (count == 1 ? 1 : 2)) return nullptr;
  return slice->of->shape().dimension(dimension) == length ? slice->of : nullptr;
}

// The first `count` elements of an array of `length`; all of them are the array itself.
Instruction* FirstElementsOf(Instruction* op, int64_t dimension, int64_t count, int64_t length) {
  if (count == length && dimension < op->shape().rank() && op->shape().dimension(dimension) == length) return op;
  const std::optional<Strided> slice = StridedOf(*op, dimension);
  if (!slice || slice->start != 0 || slice->count != count || slice->stride != 1) return nullptr;
  return slice->of->shape().dimension(dimension) == length ? slice->of : nullptr;
}

bool IsZero(const Instruction& op) {
  if (!op.IsConstant() || !op.shape().IsScalar() || op.As<hlo::attr::Constant>().elided) return false;
  return op.literal().GetComplex(0) == 0.0;
}

bool MayInterleave(const Instruction& op) {
  return (op.Is(Opcode::kAdd) || op.Is(Opcode::kOr)) && op.operand(0)->Is(Opcode::kPad) &&
         op.operand(1)->Is(Opcode::kPad);
}

// The only dimension that `pad` changes.
std::optional<int64_t> PaddedDimension(const Instruction& pad) {
  std::optional<int64_t> found;
  const auto& padding = pad.As<hlo::attr::Pad>().padding;
  for (size_t d = 0; d < padding.size(); ++d) {
    if (padding[d] == hlo::PaddingDimension{}) continue;
    if (found) return std::nullopt;
    found = static_cast<int64_t>(d);
  }
  return found;
}

bool PadsEveryOther(const Instruction& pad, int64_t dimension, int64_t low, int64_t high) {
  return PaddedDimension(pad) == dimension && IsZero(*pad.operand(1)) &&
         pad.As<hlo::attr::Pad>().padding[static_cast<size_t>(dimension)] == hlo::PaddingDimension{low, high, 1};
}

}  // namespace

std::optional<Interleaving> InterleavingOf(const Instruction& op) {
  if (!MayInterleave(op)) return std::nullopt;
  const Instruction *first = op.operand(0), *second = op.operand(1);
  const std::optional<int64_t> dimension = PaddedDimension(*first);
  if (!dimension) return std::nullopt;
  const int64_t length = op.shape().dimension(*dimension), is_even = length % 2 == 0 ? 1 : 0;
  if (first->As<hlo::attr::Pad>().padding[static_cast<size_t>(*dimension)].low != 0) std::swap(first, second);
  if (!PadsEveryOther(*first, *dimension, 0, is_even) || !PadsEveryOther(*second, *dimension, 1, 1 - is_even))
    return std::nullopt;
  Instruction* even = first->operand(0);
  Instruction* begin = even;
  Instruction* rest = nullptr;
  if (even->Is(Opcode::kConcatenate)) {
    if (even->operand_count() != 2 || even->dimensions() != std::vector{*dimension}) return std::nullopt;
    begin = even->operand(0);
    if (even->operand(1)->shape().dimension(*dimension) > 0) rest = even->operand(1);
  }
  if (begin->shape().dimension(*dimension) != 1) return std::nullopt;
  Instruction* elements = FirstElementsOf(begin, *dimension, 1, length);
  if (elements == nullptr) return std::nullopt;
  return Interleaving{elements, rest, second->operand(0), *dimension};
}

namespace {

// The same dimensions, of which the same ones vary.
bool IsSized(const hlo::Shape& shape, const hlo::Shape& like) {
  if (shape.dimensions() != like.dimensions()) return false;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.is_dynamic_dimension(d) != like.is_dynamic_dimension(d)) return false;
  }
  return true;
}

// Level 0 has all elements, level l length >> l of them, the last one. What has been found to be an array's elements or
// results at a level is bound to that; each finding leads to others, until all agree or two differ.
class Recursion {
 public:
  explicit Recursion(const Instruction& root, int64_t dimension) : dimension_(dimension), shape_(root.shape()) {
    while (LengthAt(last_) > 1) ++last_;
  }
  // Takes up where `scan` was found.
  explicit Recursion(const SliceScan& scan) : Recursion(*scan.elements[0], scan.dimension) {
    for (Instruction* elements : scan.elements) (void)ArrayOf(elements);
  }

  // That `op` is the scan's result for array `k`.
  bool Holds(size_t k, Instruction* op) { return BindResult(k, 0, op) && Check(); }

  std::optional<SliceScan> Found() const {
    SliceScan scan;
    scan.dimension = dimension_;
    for (const Array& array : arrays_) {
      if (array.elements[1] == nullptr) return std::nullopt;
      scan.elements.push_back(array.elements[0]);
      scan.results.push_back(array.results[0]);
      scan.function.push_back(array.elements[1]);
      for (size_t level = 1; level + 1 < array.results.size(); ++level) {
        if (array.results[level] != nullptr) scan.inner.push_back(array.results[level]);
      }
    }
    scan.arguments = arguments_;
    return scan;
  }

  // Array number of what is scanned; a new one where it is not known yet. Nothing where it cannot be one.
  std::optional<size_t> ArrayOf(Instruction* elements) {
    for (size_t k = 0; k < arrays_.size(); ++k) {
      if (arrays_[k].elements[0] == elements) return k;
    }
    if (!IsSized(elements->shape(), shape_)) return std::nullopt;
    const auto levels = static_cast<size_t>(last_) + 1;
    arrays_.push_back({std::vector<Instruction*>(levels), std::vector<Instruction*>(levels)});
    arrays_.back().elements[0] = elements;
    return arrays_.size() - 1;
  }

 private:
  struct Array {
    std::vector<Instruction*> elements, results;  // by level; null: not known
  };
  // An application of the function's result `array` that is to be like the one that makes elements[1].
  struct Application {
    enum class Part { kHalves, kEven };
    Part part;
    size_t array;
    int64_t level;  // of its result
    Instruction* op;
  };

  int64_t LengthAt(int64_t level) const { return shape_.dimension(dimension_) >> level; }

  bool BindElements(size_t k, int64_t level, Instruction* op) {
    Instruction*& bound = arrays_[k].elements[static_cast<size_t>(level)];
    if (bound != nullptr) return bound == op;
    bound = op;
    pending_.push_back({Application::Part::kHalves, k, level, op});
    return true;
  }

  bool BindResult(size_t k, int64_t level, Instruction* op) {
    Instruction*& bound = arrays_[k].results[static_cast<size_t>(level)];
    if (bound != nullptr) return bound == op;
    bound = op;
    if (level == last_) return BindElements(k, level, op);
    const std::optional<Interleaving> parts = InterleavingOf(*op);
    if (!parts || parts->dimension != dimension_ || op->shape().dimension(dimension_) != LengthAt(level)) return false;
    if ((parts->even == nullptr) != (LengthAt(level) == 2)) return false;
    if (parts->even != nullptr) pending_.push_back({Application::Part::kEven, k, level, parts->even});
    return BindElements(k, level, parts->elements) && BindResult(k, level + 1, parts->odd);
  }

  // Whether all that is pending holds. An application waits until it is known what its function is.
  bool Check() {
    while (!pending_.empty()) {
      std::vector<Application> now;
      now.swap(pending_);
      std::vector<Application> waiting;
      for (const Application& application : now) {
        const Instruction* function = arrays_[application.array].elements[1];
        if (function == nullptr) {
          waiting.push_back(application);
          continue;
        }
        std::set<std::pair<const Instruction*, const Instruction*>> seen;
        if (!IsLike(function, application.op, application, seen)) return false;
      }
      if (waiting.size() == now.size()) return false;
      pending_.insert(pending_.end(), waiting.begin(), waiting.end());
    }
    return true;
  }

  // Whether `op` computes of its level's elements what `function` computes of the first's.
  bool IsLike(const Instruction* function, Instruction* op, const Application& at,
              std::set<std::pair<const Instruction*, const Instruction*>>& seen) {
    if (!seen.insert({function, op}).second) return true;
    if (seen.size() > kMostPairs || function->shape().element_type() != op->shape().element_type()) return false;
    if (const std::optional<ScanArgument> argument = ArgumentOf(*function)) return IsArgument(*argument, op, at);
    if (const std::optional<Literal> value = SplatOf(*function)) return SplatOf(*op) == value;
    if (!function->Has(hlo::kElementwise) || function->Has(hlo::kCalls) || op->opcode() != function->opcode() ||
        op->attributes() != function->attributes() || op->operand_count() != function->operand_count()) {
      return false;
    }
    for (int64_t i = 0; i < op->operand_count(); ++i) {
      if (!IsLike(function->operand(i), op->operand(i), at, seen)) return false;
    }
    return true;
  }

  std::optional<ScanArgument> ArgumentOf(const Instruction& op) {
    if (const auto known = arguments_.find(&op); known != arguments_.end()) return known->second;
    for (const bool is_right : {false, true}) {
      Instruction* of = SecondElementsOf(op, dimension_, is_right ? 1 : 0, LengthAt(1), LengthAt(0));
      if (of == nullptr) continue;
      const std::optional<size_t> array = ArrayOf(of);
      if (!array) return std::nullopt;
      return arguments_[&op] = {*array, is_right};
    }
    return std::nullopt;
  }

  bool IsArgument(const ScanArgument& argument, Instruction* op, const Application& at) {
    const bool is_right = argument.is_right;
    if (at.part == Application::Part::kHalves) {
      Instruction* of = SecondElementsOf(*op, dimension_, is_right ? 1 : 0, LengthAt(at.level), LengthAt(at.level - 1));
      return of != nullptr && BindElements(argument.array, at.level - 1, of);
    }
    const int64_t length = LengthAt(at.level), count = (length + 1) / 2 - 1;
    if (is_right) {
      Instruction* of = SecondElementsOf(*op, dimension_, 2, count, length);
      return of != nullptr && BindElements(argument.array, at.level, of);
    }
    Instruction* of = FirstElementsOf(op, dimension_, count, LengthAt(at.level + 1));
    return of != nullptr && BindResult(argument.array, at.level + 1, of);
  }

  int64_t dimension_;
  hlo::Shape shape_;  // of all elements of an array
  int64_t last_ = 0;
  std::vector<Array> arrays_;
  std::vector<Application> pending_;
  std::unordered_map<const Instruction*, ScanArgument> arguments_;
};

}  // namespace

std::optional<SliceScan> SliceScanOf(Instruction* root) {
  const std::optional<Interleaving> parts = InterleavingOf(*root);
  if (!parts || root->shape().dimension(parts->dimension) < kFewestElements) return std::nullopt;
  if (root->shape().is_dynamic_dimension(parts->dimension)) return std::nullopt;
  Recursion recursion(*root, parts->dimension);
  const std::optional<size_t> array = recursion.ArrayOf(parts->elements);
  if (!array || !recursion.Holds(*array, root)) return std::nullopt;
  return recursion.Found();
}

struct ScanResults::State {
  SliceScan& scan;
  Recursion known;
  bool holds = true;
};

ScanResults::ScanResults(SliceScan& scan) : state_(std::make_unique<State>(State{scan, Recursion(scan)})) {
  for (size_t k = 0; k < scan.results.size(); ++k)
    state_->holds = state_->holds && (scan.results[k] == nullptr || state_->known.Holds(k, scan.results[k]));
}
ScanResults::~ScanResults() = default;

bool ScanResults::Add(Instruction* root) {
  SliceScan& scan = state_->scan;
  const std::optional<Interleaving> parts = InterleavingOf(*root);
  if (!state_->holds || !parts || parts->dimension != scan.dimension) return false;
  for (size_t k = 0; k < scan.elements.size(); ++k) {
    if (scan.elements[k] != parts->elements || scan.results[k] != nullptr) continue;
    // What is known already has to hold at the same time; what does not leaves no trace.
    Recursion both = state_->known;
    if (!both.Holds(k, root)) return false;
    std::optional<SliceScan> found = both.Found();
    if (!found || found->elements != scan.elements) return false;
    scan = *std::move(found);
    state_->known = std::move(both);
    return true;
  }
  return false;
}

}  // namespace hlorun::passes
