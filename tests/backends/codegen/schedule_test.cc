// Loop roles on GPU class: who stores what.
#include "backends/opencl/codegen/schedule.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hlorun::opencl
