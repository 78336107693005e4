#include "backends/opencl/codegen/schedule.h"

#include <algorithm>

#include "backends/opencl/codegen/widen.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

constexpr int64_t kMaxGroups = 65535;  // PoCL compiles a kernel again beyond (experiments/memory, part 6)
constexpr int64_t kMaxGpuGroups = 1 << 20;

const Expr& GroupId() {
  static const Expr id = Call(kIndex32, "get_group_id", {Int(0)});
  return id;
}
const Expr& LaneId() {
  static const Expr id = Call(kIndex32, "get_local_id", {Int(0)});
  return id;
}
// One node, by which a guard is known again.
const Expr& IsFirstLane() {
  static const Expr is_first = Compare(Op::kEq, LaneId(), Int(0));
  return is_first;
}

int64_t ConstantExtent(const Stmt& loop) {
  const Expr extent = Sub(loop->end, loop->begin);
  HLORUN_CHECK(extent->kind == ExprKind::kIntConstant && IsIntConstant(loop->step, 1));
  return extent->integer;
}

// Where a group's share of `total` iterations begins: shares differ by one iteration at most.
Expr FirstOfShare(const Expr& group, int64_t total, int64_t groups, const Type& type) {
  if (total % groups == 0) return Mul(Cast(group, type.element), Int(total / groups, type));
  const Expr before = Mul(Cast(group, ElementType::kS64), Int(total, kIndex));
  return Cast(Binary(Op::kFloorDiv, before, Int(groups, kIndex)), type.element);
}

bool IsConstantLoop(const Stmt& loop) { return Sub(loop->end, loop->begin)->kind == ExprKind::kIntConstant; }

// What a group walks of a nest whose ends are known at run time only: an equal share of what is there.
Stmt RuntimeNest(const std::vector<Stmt>& loops, const Stmt& inner, int64_t most, int64_t groups, const Expr& group) {
  const Type type = most < (int64_t{1} << 30) ? kIndex32 : kIndex;
  std::vector<Stmt> statements;
  const auto name = [&](const std::string& prefix, const Expr& value) {
    const Var variable = MakeVar(prefix, type);
    statements.push_back(Let(variable, value));
    return Ref(variable);
  };
  std::vector<Expr> extents, strides(loops.size());
  for (size_t i = 0; i < loops.size(); ++i) {
    extents.push_back(name("loop_extent" + std::to_string(i), Cast(Sub(loops[i]->end, loops[i]->begin), type.element)));
  }
  Expr total = Int(1, type);
  for (size_t i = loops.size(); i-- > 0;) {
    strides[i] = total;
    total = name("loop_total" + std::to_string(i), Mul(total, extents[i]));
  }
  const Expr share = name("share", Binary(Op::kFloorDiv, total + (groups - 1), Int(groups, type)));
  const Expr begin = name("share_begin", Mul(Cast(group, type.element), share));
  const Var at = MakeVar("group_item", type);
  std::vector<Stmt> body;
  for (size_t i = 0; i < loops.size(); ++i) {
    Expr value = i + 1 == loops.size() ? Ref(at) : Binary(Op::kFloorDiv, Ref(at), strides[i]);
    if (i > 0) value = Binary(Op::kFloorMod, value, extents[i]);
    body.push_back(Let(loops[i]->var, Add(Cast(value, loops[i]->var->type.element), loops[i]->begin)));
  }
  body.push_back(inner);
  statements.push_back(For(LoopRole::kSerial, at, begin, Min(begin + share, total), Block(std::move(body))));
  return Block(std::move(statements));
}

// What a group walks of a nest of known size: its one iteration where there is a group for each, or its share.
std::vector<Stmt> ConstantNest(const std::vector<Stmt>& loops, const Stmt& inner, int64_t total, int64_t groups) {
  const Type type = total < (int64_t{1} << 30) ? kIndex32 : kIndex;
  const Var at = MakeVar("group_item", type);
  std::vector<Stmt> body;
  int64_t stride = total;
  for (const Stmt& loop : loops) {
    const int64_t extent = ConstantExtent(loop);
    stride /= std::max<int64_t>(extent, 1);
    Expr value = Binary(Op::kFloorDiv, Ref(at), Int(std::max<int64_t>(stride, 1), type));
    if (loop != loops.front()) value = Binary(Op::kFloorMod, value, Int(std::max<int64_t>(extent, 1), type));
    body.push_back(Let(loop->var, Add(Cast(value, loop->var->type.element), loop->begin)));
  }
  body.push_back(inner);
  if (total == groups) {
    body.insert(body.begin(), Let(at, Cast(GroupId(), type.element)));
    return body;
  }
  const auto first = [&](const Expr& group) { return FirstOfShare(group, total, groups, type); };
  return {For(LoopRole::kSerial, at, first(GroupId()), first(GroupId() + 1), Block(std::move(body)))};
}

// Rewrites the loops of a body that is not parallel.
class RoleLowering {
 public:
  explicit RoleLowering(int64_t lanes) : lanes_(lanes) {}

  Stmt Lower(const Stmt& s, bool in_lanes) const {
    if (s->kind == StmtKind::kFor) return LowerFor(s, in_lanes);
    if (s->kind == StmtKind::kBarrier && lanes_ == 1) return Block({});
    if (s->kind == StmtKind::kStore && lanes_ > 1 && !in_lanes && s->buffer->space != Buffer::Space::kPrivate) {
      return OnFirstLane(s);
    }
    if (s->body.empty()) return s;
    StmtNode node = *s;
    const bool one_lane = s->kind == StmtKind::kIf && s->value == IsFirstLane();
    for (Stmt& b : node.body) b = Lower(b, in_lanes || one_lane);
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
      // Without a loop, which a compiler would have to see through, barriers may stand in the body too.
      if (ConstantDifference(s->end, s->begin) == lanes_ && IsIntConstant(s->step, 1))
        return Scope(Block({Let(s->var, Add(s->begin, lane)), body}));
      return For(LoopRole::kSerial, s->var, Add(s->begin, lane), s->end, body, lanes_);
    }
    const Stmt loop = For(s->role, s->var, s->begin, s->end, body, s->step->integer, s->width);
    if (s->role == LoopRole::kVector && (lanes_ == 1 || (in_lanes && s->width > 1)))
      return WidenVectorLoop(s->pairs ? WithPairs(loop) : loop);
    return Unrolled(For(LoopRole::kSerial, s->var, s->begin, s->end, body, s->step->integer), s->unroll);
  }

  int64_t lanes_;
};

int64_t LocalBytes(const Stmt& s) {
  int64_t bytes = 0;
  if (s->kind == StmtKind::kDeclareArray && s->buffer->space == Buffer::Space::kLocal) {
    bytes = s->buffer->size * hlo::BytesOf(s->buffer->storage);
  }
  for (const Stmt& b : s->body) bytes += LocalBytes(b);
  return bytes;
}

void CheckLimits(const Function& function, int64_t group, const DeviceSpec& device) {
  if (group > device.max_work_group_size) {
    Fail(ErrorCode::kInternal, "kernel {} asks for groups of {} work-items, {} has groups of {}", function.name, group,
         device.name, device.max_work_group_size);
  }
  if (const int64_t bytes = LocalBytes(function.body); bytes > device.local_memory_bytes) {
    Fail(ErrorCode::kInternal, "kernel {} asks for {} bytes of local memory, {} has {}", function.name, bytes,
         device.name, device.local_memory_bytes);
  }
}

// The parallel nest, outermost first, what stands before it, and what is in it.
struct Nest {
  std::vector<Stmt> before, loops;
  Stmt body;
};
Nest NestOf(const Stmt& function_body) {
  Nest nest{{}, {}, function_body};
  while (true) {
    const Stmt body = nest.body;
    const std::vector<Stmt> here = body->kind == StmtKind::kBlock ? body->body : std::vector<Stmt>{body};
    if (here.empty() || here.back()->kind != StmtKind::kFor || here.back()->role != LoopRole::kParallel) return nest;
    nest.before.insert(nest.before.end(), here.begin(), here.end() - 1);
    nest.loops.push_back(here.back());
    nest.body = here.back()->body[0];
  }
}

}  // namespace

Stmt OnFirstLane(const Stmt& body) { return If(IsFirstLane(), body); }

int VectorLanes(const DeviceSpec& device, int64_t element_bytes) {
  const int64_t lanes = device.vector_bytes / std::max<int64_t>(element_bytes, 4);
  return lanes >= 16 ? 16 : lanes >= 8 ? 8 : lanes >= 4 ? 4 : lanes >= 2 ? 2 : 1;
}

int64_t GroupLanes(const DeviceSpec& device) {
  return device.device_class == DeviceClass::kGpu ? std::min<int64_t>(128, device.max_work_group_size) : 1;
}

ScheduledKernel Schedule(const Function& function, const DeviceSpec& device) {
  const bool has_own_group = device.device_class == DeviceClass::kGpu && function.group_items > 0;
  const int64_t lanes = has_own_group ? function.group_items : GroupLanes(device);
  CheckLimits(function, lanes, device);
  ScheduledKernel out{function, {}};
  out.grid.local[0] = lanes;
  Nest nest = NestOf(function.body);
  // A group's turns use the same local arrays.
  const bool meets = lanes > 1 && LocalBytes(function.body) > 0;
  const Stmt inner = RoleLowering(lanes).Lower(nest.body, /*in_lanes=*/false);
  const Stmt turn = meets ? Block({inner, Barrier()}) : inner;
  if (nest.loops.empty()) {
    out.function.body = inner;
    return out;
  }

  int64_t total = 1;
  for (const Stmt& loop : nest.loops)
    total *= IsConstantLoop(loop) ? ConstantExtent(loop) : std::max<int64_t>(1, loop->var->max + 1);
  const int64_t wanted = lanes > 1 ? kMaxGpuGroups : std::min(kMaxGroups, device.compute_units * kGroupsPerUnit);
  const int64_t grain = lanes > 1 ? 1 : std::max<int64_t>(1, function.grain);
  const int64_t groups = std::clamp<int64_t>(total / grain, 1, wanted);
  out.grid.groups[0] = groups;
  if (std::all_of(nest.loops.begin(), nest.loops.end(), IsConstantLoop)) {
    const std::vector<Stmt> share = ConstantNest(nest.loops, total == groups ? inner : turn, total, groups);
    nest.before.insert(nest.before.end(), share.begin(), share.end());
  } else {
    nest.before.push_back(RuntimeNest(nest.loops, turn, total, groups, GroupId()));
  }
  out.function.body = Block(std::move(nest.before));
  return out;
}

}  // namespace hlorun::opencl
