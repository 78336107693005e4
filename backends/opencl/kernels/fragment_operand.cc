#include "backends/opencl/kernels/fragment_operand.h"

#include "backends/opencl/kernels/block_copy.h"
#include "backends/opencl/kernels/gathered_copy.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/turned_copy.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using ir::Expr;
using ir::Op;
using ir::Stmt;

// x / by where each term plainly is a multiple, so that no division hides how far what lies there is aligned; else
// null.
Expr DividedTerms(const Expr& x, int64_t by) {
  if (x->kind == ir::ExprKind::kIntConstant) return x->integer % by == 0 ? Index(x->integer / by) : nullptr;
  if (x->kind == ir::ExprKind::kVar) return x->var->factor % by == 0 ? Quotient(x, by) : nullptr;
  if (x->kind != ir::ExprKind::kBinary) return nullptr;
  const Expr &a = x->args[0], &b = x->args[1];
  if (x->op == Op::kMul && b->kind == ir::ExprKind::kIntConstant && b->integer % by == 0) return a * (b->integer / by);
  if (x->op != Op::kAdd) return nullptr;
  const Expr first = DividedTerms(a, by), second = DividedTerms(b, by);
  return first && second ? first + second : nullptr;
}
Expr Divided(const Expr& x, int64_t by) {
  const Expr terms = by == 1 ? x : DividedTerms(x, by);
  return terms ? terms : Quotient(x, by);
}

bool IsQuotientBy(const Expr& x, int64_t by) {
  return x->kind == ir::ExprKind::kBinary && x->op == Op::kFloorDiv && ir::IsIntConstant(x->args[1], by);
}

// Where a sum stays one of its block and a place within. Quotients are those of multiples, where blocks begin.
Expr Scaled(const Expr& x, int64_t by) {
  if (by == 1) return x;
  if (IsQuotientBy(x, by)) return x->args[0];
  if (x->kind == ir::ExprKind::kBinary && x->op == Op::kAdd) return Scaled(x->args[0], by) + Scaled(x->args[1], by);
  return x * by;
}

// The operand whose elements are words of so many along whichever of k and outer is fastest.
TiledOperand WordsOf(const TiledOperand& operand, int64_t per_word) {
  TiledOperand words = operand;
  words.run = operand.run / per_word;
  words.elements = operand.elements / per_word;
  const auto place = operand.place;
  const int64_t per_outer = operand.k_is_fastest ? 1 : per_word, per_k = operand.k_is_fastest ? per_word : 1;
  words.place = [=](const Expr& batch, const Expr& outer, const Expr& k) {
    ElementPlace first = place(batch, Scaled(outer, per_outer), Scaled(k, per_k));
    first.index = Divided(first.index, per_word);
    return first;
  };
  return words;
}

}  // namespace

FragmentOperand::FragmentOperand(const std::string& name, const TiledOperand& operand, KernelParameters& parameters,
                                 int64_t width, int64_t extent, const FragmentSchedule& schedule,
                                 const char* copy_function)
    : bits_(hlo::BytesOf(operand.storage) == 1 ? ElementType::kU8 : ElementType::kU16), extent_(extent) {
  const int64_t per_word = 4 / hlo::BytesOf(operand.storage);
  const bool is_s8 = bits_ == ElementType::kU8, has_words = operand.run % per_word == 0;
  const bool by_k = is_s8 || operand.k_is_fastest, same_order = by_k == operand.k_is_fastest;
  if (is_s8 || has_words) in_block_ = by_k ? Word{1, per_word} : Word{per_word, 1};
  if (has_words && same_order) in_memory_ = in_block_;
  const BlockShape shape{
      width / in_block_.outer, schedule.depth / in_block_.k, schedule.items(), schedule.buffers, by_k,
      copy_function != nullptr};
  const ElementType type = has_words ? ElementType::kU32 : bits_;
  const ir::BufferRef from =
      parameters.Add(name, type, operand.elements / (has_words ? per_word : 1), operand.argument);
  if (has_words && same_order) {
    copy_ = std::make_unique<BlockCopy>(name, WordsOf(operand, per_word), from, shape, type, copy_function);
  } else if (has_words) {
    copy_ = std::make_unique<TurnedCopy>(name, operand, from, shape);
    is_turned_ = true;
  } else if (is_s8) {
    copy_ = std::make_unique<GatheredCopy>(name, operand, from, shape);
  } else {
    copy_ = std::make_unique<BlockCopy>(name, operand, from, shape, type);
  }
}

bool FragmentOperand::HasVectors(const TiledOperand& operand) {
  const bool is_in_order = operand.k_is_fastest || hlo::BytesOf(operand.storage) == 2;
  return is_in_order && operand.run % LanesOf16Bytes(operand.storage) == 0;
}

Stmt FragmentOperand::Load(const Expr& item, const Expr& batch, const Expr& outer, const Expr& k, int64_t k_end) const {
  return copy_->Load(item, {batch, Divided(outer, in_memory_.outer), Divided(k, in_memory_.k)},
                     extent_ / in_memory_.outer, k_end / in_memory_.k);
}

Stmt FragmentOperand::Store(const Expr& item, const Expr& k) const {
  return copy_->Store(item, Quotient(k, in_block_.k));
}

Expr FragmentOperand::Place(const Expr& block_k, const Expr& outer, const Expr& k) const {
  return copy_->Buffer(Quotient(block_k, in_block_.k)) +
         copy_->Place(Quotient(outer, in_block_.outer), Quotient(k, in_block_.k));
}

Expr FragmentOperand::PlaceInOrder(const Expr& block_k, const Expr& outer, const Expr& k) const {
  return copy_->Buffer(Quotient(block_k, in_block_.k)) +
         copy_->PlaceInOrder(Quotient(outer, in_block_.outer), Quotient(k, in_block_.k));
}

Expr FragmentOperand::Bits(const Expr& block_k, const Expr& outer, const Expr& k) const {
  Expr word = ir::Load(copy_->block(), Place(block_k, outer, k));
  const int64_t elements = in_block_.outer * in_block_.k;
  if (elements == 1) return word;
  const Expr number = Remainder(in_block_.k > 1 ? k : outer, elements);
  const Expr shift = ir::Cast(number * hlo::BitsOf(bits_), ElementType::kU32);
  return ir::Cast(ir::Binary(Op::kShr, word, shift), bits_);
}

}  // namespace hlorun::opencl
