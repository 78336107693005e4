#include "passes/expand/scan.h"

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/expand/counted_loop.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Instructions = std::vector<Instruction*>;

namespace {

// Where slice `at` of dimension `dimension` begins.
Instructions StartsAt(hlo::Builder& build, Instruction* at, int64_t dimension, int64_t rank) {
  Instructions starts(static_cast<size_t>(rank), build.ScalarConstant(ElementType::kS32, int64_t{0}));
  starts[static_cast<size_t>(dimension)] = at;
  return starts;
}

class Expansion {
 public:
  explicit Expansion(Instruction* scan)
      : scan_(scan),
        attributes_(scan->As<hlo::attr::Scan>()),
        carries_(static_cast<size_t>(attributes_.num_carries)),
        inputs_(scan->operands().size() - carries_),
        length_(scan->operand(0)->shape().dimension(attributes_.scan_dimension)) {}

  void Run() {
    hlo::Builder build(scan_->parent(), scan_);
    build.before = scan_;
    const bool tuple = scan_->shape().IsTuple();
    const std::vector<Shape> shapes = tuple ? scan_->shape().tuple_shapes() : std::vector<Shape>{scan_->shape()};
    const size_t outputs = shapes.size() - carries_;
    Instructions carried = scan_->operands();
    for (size_t i = 0; i < outputs; ++i) carried.push_back(build.Splat(shapes[i], int64_t{0}));
    if (length_ > 0) {
      carried = CountedLoop(
          build, scan_->module(), length_, carried,
          [&](hlo::Builder& in, Instruction* trip, const Instructions& values) { return Step(in, trip, values); });
    }
    Instructions results(carried.begin() + static_cast<std::ptrdiff_t>(inputs_ + carries_), carried.end());
    results.insert(results.end(), carried.begin() + static_cast<std::ptrdiff_t>(inputs_),
                   carried.begin() + static_cast<std::ptrdiff_t>(inputs_ + carries_));
    scan_->parent()->Replace(scan_, tuple ? build.Tuple(results) : results[0]);
  }

 private:
  // (inputs, carries, outputs) after one slice more.
  Instructions Step(hlo::Builder& build, Instruction* trip, const Instructions& values) const {
    const int64_t dimension = attributes_.scan_dimension;
    Instruction* at = trip;
    if (attributes_.is_reverse) {
      at = build.Binary(Opcode::kSubtract, build.ScalarConstant(ElementType::kS32, length_ - 1), trip);
    }
    Instructions arguments;
    for (size_t i = 0; i < inputs_; ++i) {
      Dims sizes = values[i]->shape().dimensions();
      sizes[static_cast<size_t>(dimension)] = 1;
      Instruction* slice =
          build.DynamicSlice(values[i], StartsAt(build, at, dimension, values[i]->shape().rank()), sizes);
      sizes.erase(sizes.begin() + dimension);
      arguments.push_back(build.Reshape(slice, sizes));
    }
    arguments.insert(arguments.end(), values.begin() + static_cast<std::ptrdiff_t>(inputs_),
                     values.begin() + static_cast<std::ptrdiff_t>(inputs_ + carries_));
    hlo::Computation* body = scan_->called();
    Instruction* call = build.Make(Opcode::kCall, arguments, hlo::attr::Call{}, {body}, body->root()->shape());
    Instructions leaves;
    if (call->shape().IsTuple()) {
      for (size_t i = 0; i < call->shape().tuple_shapes().size(); ++i)
        leaves.push_back(build.GetTupleElement(call, static_cast<int64_t>(i)));
    } else {
      leaves.push_back(call);
    }
    const size_t outputs = leaves.size() - carries_;
    Instructions next(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(inputs_));
    next.insert(next.end(), leaves.begin() + static_cast<std::ptrdiff_t>(outputs), leaves.end());
    for (size_t i = 0; i < outputs; ++i) {
      Instruction* whole = values[inputs_ + carries_ + i];
      Dims sizes = whole->shape().dimensions();
      sizes[static_cast<size_t>(dimension)] = 1;
      Instruction* slice = build.Reshape(leaves[i], sizes);
      next.push_back(build.DynamicUpdateSlice(whole, slice, StartsAt(build, at, dimension, whole->shape().rank())));
    }
    return next;
  }

  Instruction* scan_;
  const hlo::attr::Scan& attributes_;
  size_t carries_;
  size_t inputs_;
  int64_t length_;
};

}  // namespace

bool ExpandScan::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kScan)) continue;
      Expansion(instruction).Run();
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
