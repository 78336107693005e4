#include "backends/opencl/codegen/lane_exchange.h"

#include <algorithm>
#include <bit>

#include "backends/opencl/codegen/sub_groups.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;

const ExchangeForm* FormOf(const DeviceSpec& device) {
  const auto* form = std::find_if(kExchangeForms.begin(), kExchangeForms.end(),
                                  [&](const ExchangeForm& f) { return f.name == device.sub_group_moves; });
  return form == kExchangeForms.end() ? nullptr : form;
}

}  // namespace

int64_t SubGroupSizeFor(int64_t items, const DeviceSpec& device) {
  const bool has_form = FormOf(device) != nullptr || device.sub_group_moves == kPlainExchange;
  const int64_t size = device.sub_group_size;
  if (device.device_class != DeviceClass::kGpu || !has_form || size <= 1) return 1;
  return std::has_single_bit(static_cast<uint64_t>(size)) && items % size == 0 ? size : 1;
}

LaneExchange::LaneExchange(Emission& e, Expr item, int64_t group) : e_(e), item_(std::move(item)), group_(group) {
  const ExchangeForm* form = FormOf(e_.device());
  if (form != nullptr && form->names_size) e_.SubGroupOf(e_.device().sub_group_size);
}

Expr LaneExchange::Across(const Expr& value, int64_t distance) {
  return FormOf(e_.device()) != nullptr ? AcrossByFunction(value, distance) : AcrossByMemory(value, distance);
}

Value LaneExchange::Across(const Value& value, int64_t distance) {
  const Expr re = Across(value.re, distance);
  return {re, value.im ? Across(value.im, distance) : nullptr};
}

Expr LaneExchange::AcrossByFunction(const Expr& value, int64_t distance) {
  const hlo::ElementType type = value->type.element;
  const bool is_wide = hlo::BytesOf(type) == 8;
  const hlo::ElementType word = is_wide ? hlo::ElementType::kU64 : hlo::ElementType::kU32;
  const ExchangeForm& form = *FormOf(e_.device());
  const char* function = is_wide ? kExchangeWide : kExchange;
  e_.Needs({function, is_wide ? form.wide : form.word});
  const bool is_real = hlo::IsFloating(type);
  const Expr bits = is_real ? ir::BitCast(value, word) : ir::Cast(value, word);
  const Expr there = ir::Call({word, 1}, function, {bits, ir::Int(distance)});
  return e_.body().Name(is_real ? ir::BitCast(there, type) : ir::Cast(there, type));
}

Expr LaneExchange::AcrossByMemory(const Expr& value, int64_t distance) {
  const hlo::ElementType type = value->type.element;
  auto found = std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& array) { return array.first == type; });
  if (found == arrays_.end()) found = arrays_.insert(found, {type, e_.LocalArray("exchange", type, group_)});
  e_.body().Add(ir::Store(found->second, item_, value));
  e_.body().Add(ir::Barrier());
  const Expr there = ir::Binary(ir::Op::kXor, item_, ir::Int(distance, item_->type));
  Expr moved = e_.body().Name(ir::Load(found->second, there));
  e_.body().Add(ir::Barrier());
  return moved;
}

}  // namespace hlorun::opencl
