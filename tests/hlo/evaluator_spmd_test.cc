// Collectives among devices in one process, and control flow.
#include <gmock/gmock.h>

#include "tests/hlo/evaluation_text.h"

namespace hlorun::hlo {
namespace {

using testing::ElementsAre;

std::vector<Literal> OnDevices(const std::string& text, const std::vector<Literal>& per_device) {
  std::vector<std::vector<Literal>> arguments;
  for (const Literal& literal : per_device) arguments.push_back({literal});
  return EvaluateSpmd(*ParseModule(text), arguments);
}

TEST(EvaluatorSpmdTest, AllReduceInGroups) {
  const std::string text = R"(HloModule m, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[1] parameter(0)
  ROOT r = f32[1] all-reduce(x), replica_groups={{0,2},{1,3}}, channel_id=1, use_global_device_ids=true, to_apply=add })";
  const std::vector<Literal> r = OnDevices(text, {Floats({1}), Floats({2}), Floats({4}), Floats({8})});
  EXPECT_EQ(r[0].GetDouble(0), 5);
  EXPECT_EQ(r[1].GetDouble(0), 10);
  EXPECT_EQ(r[2].GetDouble(0), 5);
  EXPECT_EQ(r[3].GetDouble(0), 10);
}

TEST(EvaluatorSpmdTest, BroadcastGivesZerosToThoseInNoGroup) {
  const std::string text = R"(HloModule m, replica_count=4
ENTRY e { x = f32[2] parameter(0)
  ROOT r = f32[2] collective-broadcast(x), replica_groups={{1,0}} })";
  const std::vector<Literal> r = OnDevices(text, {Floats({1, 2}), Floats({3, 4}), Floats({5, 6}), Floats({7, 8})});
  EXPECT_THAT(Numbers(r[0]), ElementsAre(3, 4));
  EXPECT_THAT(Numbers(r[1]), ElementsAre(3, 4));
  EXPECT_THAT(Numbers(r[2]), ElementsAre(0, 0));
  EXPECT_THAT(Numbers(r[3]), ElementsAre(0, 0));
}

TEST(EvaluatorSpmdTest, GatherExchangeAndPermute) {
  const std::string text = R"(HloModule m, num_partitions=2
ENTRY e { x = f32[2] parameter(0)
  g = f32[4] all-gather(x), replica_groups={{0,1}}, dimensions={0}, channel_id=1, use_global_device_ids=true
  a = f32[2] all-to-all(x), replica_groups={{0,1}}, dimensions={0}, channel_id=2
  p = f32[2] collective-permute(x), source_target_pairs={{0,1}}, channel_id=3
  i = u32[] partition-id()
  ROOT t = (f32[4], f32[2], f32[2], u32[]) tuple(g, a, p, i) })";
  const std::vector<Literal> r = OnDevices(text, {Floats({1, 2}), Floats({3, 4})});
  EXPECT_THAT(Numbers(r[1].elements()[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Numbers(r[0].elements()[1]), ElementsAre(1, 3));
  EXPECT_THAT(Numbers(r[1].elements()[1]), ElementsAre(2, 4));
  EXPECT_THAT(Numbers(r[0].elements()[2]), ElementsAre(0, 0));
  EXPECT_THAT(Numbers(r[1].elements()[2]), ElementsAre(1, 2));
  EXPECT_EQ(r[1].elements()[3].GetInt(0), 1);
}

TEST(EvaluatorSpmdTest, CollectiveInALoop) {
  const std::string text = R"(HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
body { s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], f32[]) tuple(n, y) }
cond { s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT p = pred[] compare(i, three), direction=LT }
ENTRY e { x = f32[] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[]) tuple(z, x)
  w = (s32[], f32[]) while(s), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=1 })";
  const std::vector<Literal> r =
      OnDevices(text, {Literal::Scalar(ElementType::kF32, 1.0), Literal::Scalar(ElementType::kF32, 2.0)});
  EXPECT_EQ(r[0].GetDouble(0), 12);
}

TEST(EvaluatorSpmdTest, ADeviceThatNeverComesIsAnError) {
  const std::string text = R"(HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
yes { x = f32[] parameter(0)
  ROOT y = f32[] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add }
no { ROOT x = f32[] parameter(0) }
ENTRY e { x = f32[] parameter(0)
  i = u32[] partition-id()
  z = u32[] constant(0)
  p = pred[] compare(i, z), direction=EQ
  ROOT r = f32[] conditional(p, x, x), true_computation=yes, false_computation=no })";
  const Literal one = Literal::Scalar(ElementType::kF32, 1.0);
  EXPECT_THROW(OnDevices(text, {one, one}), Error);
}

TEST(EvaluatorControlTest, ConditionalIndexOutOfRangeTakesTheLast) {
  const std::string text = R"(HloModule m
a { x = f32[] parameter(0)
  ROOT r = f32[] negate(x) }
b { ROOT x = f32[] parameter(0) }
ENTRY e { i = s32[] parameter(0)
  x = f32[] parameter(1)
  ROOT r = f32[] conditional(i, x, x), branch_computations={a, b} })";
  const Literal x = Literal::Scalar(ElementType::kF32, 3.0);
  EXPECT_EQ(EvaluateText(text, {Literal::Scalar(ElementType::kS32, 0), x}).GetDouble(0), -3);
  EXPECT_EQ(EvaluateText(text, {Literal::Scalar(ElementType::kS32, -7), x}).GetDouble(0), 3);
}

}  // namespace
}  // namespace hlorun::hlo
