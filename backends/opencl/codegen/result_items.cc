#include "backends/opencl/codegen/result_items.h"

#include "backends/opencl/codegen/ceil_div.h"

namespace hlorun::opencl {

void ResultItems::Open() {
  IndexMath& math = e_.math();
  group_var_ = e_.IndexVar("group", CeilDiv(size_.results, size_.across));
  item_var_ = e_.IndexVar("item", size_.group());
  e_.values().Open();
  const int64_t inner = size_.is_rows ? size_.items : size_.across;
  const Index item = math.Of(item_var_);
  const ir::Expr low = math.ToExpr(math.Mod(item, inner)), high = math.ToExpr(math.FloorDiv(item, inner));
  lane_ = Named("lane", size_.is_rows ? low : high, size_.items);
  across_ = Named("across", size_.is_rows ? high : low, size_.across);
  result_ = math.Add(math.Mul(math.Of(group_var_), size_.across), across_);
  if (size_.results % size_.across == 0) return;
  has_result_ = e_.body().Name(math.Within(result_, 0, size_.results), "m");
  result_ = Named("result", ir::Min(math.ToExpr(result_), e_.IndexInt(size_.results - 1)), size_.results);
}

Index ResultItems::Named(const std::string& name, const ir::Expr& value, int64_t extent) {
  if (extent == 1) return 0;
  const ir::Var variable = e_.IndexVar(name, extent);
  e_.body().Add(ir::Let(variable, value));
  return e_.math().Of(variable);
}

ir::Stmt ResultItems::Close() {
  const ir::Stmt body =
      ir::For(ir::LoopRole::kVector, item_var_, e_.IndexInt(0), e_.IndexInt(size_.group()), e_.values().Close());
  return ir::For(ir::LoopRole::kParallel, group_var_, e_.IndexInt(0), e_.IndexInt(group_var_->max + 1), body);
}

LaneTeam ResultItems::Team() const {
  return {.lane = lane_,
          .items = size_.items,
          .first = size_.is_rows ? e_.math().Mul(across_, size_.items) : across_,
          .stride = size_.is_rows ? 1 : size_.across,
          .group = size_.group()};
}

void ResultItems::OnFirstLaneOfEach(const std::function<void()>& body) {
  const ir::Expr is_first = e_.values().Both(has_result_, e_.math().Within(lane_, 0, 1));
  e_.values().Open();
  body();
  const ir::Stmt stores = e_.values().Close();
  e_.body().Add(is_first ? ir::If(is_first, stores) : stores);
}

}  // namespace hlorun::opencl
