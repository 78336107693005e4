// Loop roles on GPU class: who stores what.
#include "backends/opencl/codegen/schedule.h"

#include <gtest/gtest.h>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

int64_t Guards(const ir::Stmt& s) {
  int64_t guards = s->kind == ir::StmtKind::kIf ? 1 : 0;
  for (const ir::Stmt& b : s->body) guards += Guards(b);
  return guards;
}

int64_t GuardsOf(const ir::Stmt& body) {
  DeviceSpec device;
  device.device_class = DeviceClass::kGpu;
  ir::Function function;
  function.name = "f";
  function.body = body;
  return Guards(Schedule(function, device).function.body);
}

TEST(Schedule, AStoreOutsideTheLanesLoopsIsGuardedOnce) {
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 2, ir::Buffer::Space::kGlobal, true);
  const ir::Stmt store = ir::Store(out, ir::Int(0), ir::Real(1)), other = ir::Store(out, ir::Int(1), ir::Real(2));
  EXPECT_EQ(GuardsOf(ir::Block({store, other})), 2);
  EXPECT_EQ(GuardsOf(OnFirstLane(ir::Block({store, other}))), 1);
}

TEST(Schedule, NothingIsDealtToLanesOfWhichOneRuns) {
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 64, ir::Buffer::Space::kGlobal, true);
  const ir::Var i = ir::MakeIndex("i", 0, 63, ir::kIndex32);
  const ir::Stmt loop =
      ir::For(ir::LoopRole::kVector, i, ir::Int(0), ir::Int(64), ir::Store(out, ir::Ref(i), ir::Real(1)), 1, 1);
  DeviceSpec device;
  device.device_class = DeviceClass::kGpu;
  ir::Function function;
  function.name = "f";
  function.body = OnFirstLane(loop);
  const ir::Stmt walked = Schedule(function, device).function.body->body[0];
  ASSERT_EQ(walked->kind, ir::StmtKind::kFor);
  EXPECT_TRUE(ir::IsIntConstant(walked->step, 1));
}

int64_t Count(const ir::Stmt& s, ir::StmtKind kind) {
  int64_t count = s->kind == kind ? 1 : 0;
  for (const ir::Stmt& b : s->body) count += Count(b, kind);
  return count;
}

// A kernel of `groups` groups, in each of which every item fills its place of a local array and reads it.
ir::Stmt ScheduledTurns(int64_t groups) {
  DeviceSpec device;
  device.device_class = DeviceClass::kGpu;
  const ir::BufferRef local = ir::MakeBuffer("local", hlo::ElementType::kF32, 128, ir::Buffer::Space::kLocal, true);
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 128, ir::Buffer::Space::kGlobal, true);
  const ir::Var item = ir::MakeIndex("item", 0, 127, ir::kIndex32);
  const ir::Var group = ir::MakeIndex("group", 0, groups - 1, ir::kIndex32);
  const ir::Stmt items =
      ir::For(ir::LoopRole::kVector, item, ir::Int(0), ir::Int(128),
              ir::Block({ir::Store(local, ir::Ref(item), ir::Real(1)), ir::Barrier(),
                         ir::Store(out, ir::Ref(item), ir::Load(local, ir::Int(127) - ir::Ref(item)))}));
  ir::Function function;
  function.name = "f";
  function.body =
      ir::Block({ir::DeclareArray(local), ir::For(ir::LoopRole::kParallel, group, ir::Int(0), ir::Int(groups), items)});
  return Schedule(function, device).function.body;
}

TEST(Schedule, OneIterationAnItemNeedsNoLoop) {
  const ir::Stmt once = ScheduledTurns(4);
  EXPECT_EQ(Count(once, ir::StmtKind::kFor), 0);
  EXPECT_EQ(Count(once, ir::StmtKind::kIf), 0);
  EXPECT_EQ(Count(once, ir::StmtKind::kBarrier), 1);
}

TEST(Schedule, TurnsOfAGroupMeetWhereTheyShareLocalMemory) {
  const ir::Stmt turns = ScheduledTurns(int64_t{3} << 20);
  EXPECT_EQ(Count(turns, ir::StmtKind::kFor), 1);
  EXPECT_EQ(Count(turns, ir::StmtKind::kBarrier), 2);
}

TEST(Schedule, RefusesGroupsThatTheDeviceDoesNotHave) {
  DeviceSpec device;
  device.device_class = DeviceClass::kGpu;
  device.max_work_group_size = 50;
  ir::Function function;
  function.name = "f";
  function.body = ir::Block({});
  function.group_items = 64;
  EXPECT_THROW(Schedule(function, device), Error);
  function.group_items = 50;
  EXPECT_EQ(Schedule(function, device).grid.local[0], 50);
}

}  // namespace
}  // namespace hlorun::opencl
