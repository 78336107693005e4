#include "backends/opencl/codegen/schedule.h"

#include <algorithm>

#include "backends/opencl/codegen/widen.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

constexpr int64_t kGroupsPerUnit = 8;        // enough to even out what the cores cannot share
constexpr int64_t kMaxGroups = 65535;        // PoCL compiles a kernel again beyond (experiments/memory, part 6)
constexpr int64_t kMaxGpuGroups = 1 << 20;

const Expr& GroupId() {
  static const Expr id = Call(kIndex32, "get_group_id", {Int(0)});
  return id;
}
const Expr& LaneId() {
  static const Expr id = Call(kIndex32, "get_local_id", {Int(0)});
  return id;
}

int64_t ConstantExtent(const Stmt& loop) {
  const Expr extent = Sub(loop->end, loop->begin);
  HLORUN_CHECK(extent->kind == ExprKind::kIntConstant && IsIntConstant(loop->step, 1));
  return extent->integer;
}

// Rewrites the loops of a body that is not parallel.
class RoleLowering {
 public:
  explicit RoleLowering(int64_t lanes) : lanes_(lanes) {}

  Stmt Lower(const Stmt& s, bool in_lanes) const {
    if (s->kind == StmtKind::kFor) return LowerFor(s, in_lanes);
    if (s->kind == StmtKind::kBarrier && lanes_ == 1) return Block({});
    if (s->kind == StmtKind::kStore && lanes_ > 1 && !in_lanes && s->buffer->space != Buffer::Space::kPrivate) {
      return If(Compare(Op::kEq, LaneId(), Int(0)), s);
    }
    if (s->body.empty()) return s;
    StmtNode node = *s;
    for (Stmt& b : node.body) b = Lower(b, in_lanes);
    if (s->kind == StmtKind::kBlock) return Block(std::move(node.body));
    return std::make_shared<const StmtNode>(std::move(node));
  }

 private:
  Stmt LowerFor(const Stmt& s, bool in_lanes) const {
    if (s->role == LoopRole::kUnroll) {
      std::vector<Stmt> copies;
      for (int64_t i = 0; i < ConstantExtent(s); ++i) {
        copies.push_back(Lower(Substitute(s->body[0], s->var, Add(s->begin, Int(i, s->var->type))), in_lanes));
      }
      return Block(std::move(copies));
    }
    const bool deal = s->role == LoopRole::kVector && lanes_ > 1 && !in_lanes;
    const Stmt body = Lower(s->body[0], in_lanes || deal);
    if (deal) {
      const Expr lane = Cast(LaneId(), s->var->type.element);
      return For(LoopRole::kSerial, s->var, Add(s->begin, lane), s->end, body, lanes_);
    }
    const Stmt loop = For(s->role, s->var, s->begin, s->end, body, s->step->integer, s->width);
    if (s->role == LoopRole::kVector && lanes_ == 1) return WidenVectorLoop(loop);
    return For(LoopRole::kSerial, s->var, s->begin, s->end, body, s->step->integer);
  }

  int64_t lanes_;
};

}  // namespace

int VectorLanes(const DeviceSpec& device, int64_t element_bytes) {
  const int64_t lanes = device.vector_bytes / std::max<int64_t>(element_bytes, 4);
  return lanes >= 16 ? 16 : lanes >= 8 ? 8 : lanes >= 4 ? 4 : lanes >= 2 ? 2 : 1;
}

int64_t GroupLanes(const DeviceSpec& device) {
  return device.device_class == DeviceClass::kGpu ? std::min<int64_t>(128, device.max_work_group_size) : 1;
}

ScheduledKernel Schedule(const Function& function, const DeviceSpec& device) {
  const int64_t lanes = GroupLanes(device);
  ScheduledKernel out{function, {}};
  out.grid.local[0] = lanes;

  // The parallel nest, outermost first, and what stands before it.
  std::vector<Stmt> before, loops;
  Stmt body = function.body;
  while (true) {
    std::vector<Stmt> here = body->kind == StmtKind::kBlock ? body->body : std::vector<Stmt>{body};
    if (here.empty() || here.back()->kind != StmtKind::kFor || here.back()->role != LoopRole::kParallel) break;
    before.insert(before.end(), here.begin(), here.end() - 1);
    loops.push_back(here.back());
    body = loops.back()->body[0];
  }
  const Stmt inner = RoleLowering(lanes).Lower(body, /*in_lanes=*/false);
  if (loops.empty()) {
    out.function.body = inner;
    return out;
  }

  int64_t total = 1;
  for (const Stmt& loop : loops) total *= ConstantExtent(loop);
  const int64_t wanted = lanes > 1 ? kMaxGpuGroups : std::min(kMaxGroups, device.compute_units * kGroupsPerUnit);
  const int64_t grain = lanes > 1 ? 1 : std::max<int64_t>(1, function.grain);
  const int64_t groups = std::clamp<int64_t>(total / grain, 1, wanted);
  const int64_t chunk = total == 0 ? 1 : (total + groups - 1) / groups;
  out.grid.groups[0] = std::max<int64_t>(1, (total + chunk - 1) / chunk);

  const Type type = total < (int64_t{1} << 30) ? kIndex32 : kIndex;
  const Var at = MakeVar("group_item", type);
  std::vector<Stmt> decode;
  int64_t stride = total;
  for (const Stmt& loop : loops) {
    const int64_t extent = ConstantExtent(loop);
    stride /= std::max<int64_t>(extent, 1);
    Expr value = Binary(Op::kFloorDiv, Ref(at), Int(std::max<int64_t>(stride, 1), type));
    if (loop != loops.front()) value = Binary(Op::kFloorMod, value, Int(std::max<int64_t>(extent, 1), type));
    decode.push_back(Let(loop->var, Add(Cast(value, loop->var->type.element), loop->begin)));
  }
  const Expr begin = Mul(Cast(GroupId(), type.element), Int(chunk, type));
  std::vector<Stmt> result = before;
  if (chunk == 1 && total > 0) {
    result.push_back(Let(at, begin));
    result.insert(result.end(), decode.begin(), decode.end());
    result.push_back(inner);
  } else {
    decode.push_back(inner);
    result.push_back(For(LoopRole::kSerial, at, begin, Min(begin + chunk, Int(total, type)), Block(std::move(decode))));
  }
  out.function.body = Block(std::move(result));
  return out;
}

}  // namespace hlorun::opencl
