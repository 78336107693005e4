// Collective thunks of hand-made plans: several partitions of one executable in one process.
#include <gmock/gmock.h>

#include "backends/collectives/job.h"
#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

using testing::ElementsAre;

constexpr int64_t kDevices = 2;

hlo::Shape Matrix(int64_t rows, int64_t columns) { return hlo::Shape(hlo::ElementType::kF32, {rows, columns}); }

CollectiveThunk Thunk1(CollectiveKind kind, Slice from, Slice to, hlo::Shape in, hlo::Shape out) {
  CollectiveThunk thunk;
  thunk.kind = kind;
  thunk.operands = {from};
  thunk.results = {to};
  thunk.operand_shapes = {std::move(in)};
  thunk.result_shapes = {std::move(out)};
  thunk.groups = {{0, 1}};
  return thunk;
}

// A plan with one collective from its parameters to its one result.
Plan OneCollective(PlanMaker& m, CollectiveThunk thunk) {
  m.Add(m.Make(std::move(thunk), "collective.1"));
  m.plan().num_partitions = kDevices;
  return m.Take();
}

using Inputs = std::vector<std::vector<float>>;  // of one device

// Results of each device.
std::vector<std::vector<float>> RunOnAll(Plan plan, const std::vector<Inputs>& inputs) {
  const auto executable = Build(std::move(plan));
  const auto job = collectives::Job::InProcess(kDevices);
  return job->OnEachLocalDevice<std::vector<float>>(
      [&](int64_t device, const std::shared_ptr<collectives::Communicator>& communicator) {
        std::vector<RunArgument> arguments;
        for (const auto& values : inputs[static_cast<size_t>(device)]) arguments.push_back({Upload(values)});
        RunOptions run;
        run.communicator = communicator;
        run.partition = device;
        return Download(executable->Run(arguments, run).at(0));
      });
}

std::vector<std::vector<float>> RunSimple(CollectiveKind kind, int64_t in, int64_t out, hlo::Shape in_shape,
                                          hlo::Shape out_shape, int64_t dimension, const std::vector<Inputs>& inputs,
                                          std::vector<std::pair<int64_t, int64_t>> pairs = {}) {
  PlanMaker m;
  const int32_t x = m.Parameter(in), y = m.Result(out);
  CollectiveThunk thunk = Thunk1(kind, m.Floats(x, in), m.Floats(y, out), std::move(in_shape), std::move(out_shape));
  thunk.dimension = dimension;
  thunk.pairs = std::move(pairs);
  return RunOnAll(OneCollective(m, thunk), inputs);
}

const std::vector<Inputs> kTwoByTwo = {{{1, 2, 3, 4}}, {{10, 20, 30, 40}}};

TEST(Collectives, AllReduce) {
  const auto y = RunSimple(CollectiveKind::kAllReduce, 4, 4, Matrix(2, 2), Matrix(2, 2), -1, kTwoByTwo);
  for (const auto& device : y) EXPECT_THAT(device, ElementsAre(11, 22, 33, 44));
}

TEST(Collectives, AllGatherAlongEitherDimension) {
  auto y = RunSimple(CollectiveKind::kAllGather, 4, 8, Matrix(2, 2), Matrix(4, 2), 0, kTwoByTwo);
  for (const auto& device : y) EXPECT_THAT(device, ElementsAre(1, 2, 3, 4, 10, 20, 30, 40));
  y = RunSimple(CollectiveKind::kAllGather, 4, 8, Matrix(2, 2), Matrix(2, 4), 1, kTwoByTwo);
  for (const auto& device : y) EXPECT_THAT(device, ElementsAre(1, 2, 10, 20, 3, 4, 30, 40));
}

TEST(Collectives, ReduceScatterAlongEitherDimension) {
  auto y = RunSimple(CollectiveKind::kReduceScatter, 4, 2, Matrix(2, 2), Matrix(1, 2), 0, kTwoByTwo);
  EXPECT_THAT(y[0], ElementsAre(11, 22));
  EXPECT_THAT(y[1], ElementsAre(33, 44));
  y = RunSimple(CollectiveKind::kReduceScatter, 4, 2, Matrix(2, 2), Matrix(2, 1), 1, kTwoByTwo);
  EXPECT_THAT(y[0], ElementsAre(11, 33));
  EXPECT_THAT(y[1], ElementsAre(22, 44));
}

TEST(Collectives, AllToAllAlongADimension) {
  const auto y = RunSimple(CollectiveKind::kAllToAll, 4, 4, Matrix(2, 2), Matrix(2, 2), 1, kTwoByTwo);
  EXPECT_THAT(y[0], ElementsAre(1, 10, 3, 30));
  EXPECT_THAT(y[1], ElementsAre(2, 20, 4, 40));
}

TEST(Collectives, PermuteAndBroadcast) {
  auto y = RunSimple(CollectiveKind::kCollectivePermute, 4, 4, Matrix(2, 2), Matrix(2, 2), -1, kTwoByTwo, {{0, 1}});
  EXPECT_THAT(y[0], ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(y[1], ElementsAre(1, 2, 3, 4));
  y = RunSimple(CollectiveKind::kCollectiveBroadcast, 4, 4, Matrix(2, 2), Matrix(2, 2), -1, kTwoByTwo);
  for (const auto& device : y) EXPECT_THAT(device, ElementsAre(1, 2, 3, 4));
}

TEST(Collectives, AllToAllOfATuple) {
  PlanMaker m;
  const int32_t x = m.Parameter(2), y = m.Result(2);
  CollectiveThunk thunk = Thunk1(CollectiveKind::kAllToAll, m.Floats(x, 1), m.Floats(y, 1), F32(1), F32(1));
  thunk.operands.push_back(m.Floats(x, 1, 1));
  thunk.results.push_back(m.Floats(y, 1, 1));
  thunk.operand_shapes.push_back(F32(1));
  thunk.result_shapes.push_back(F32(1));
  if (TestContext() && Upload({1}).memory.host() == nullptr) {
    GTEST_SKIP() << "cl_mem slices start at the buffer alignment";
  }
  const auto result = RunOnAll(OneCollective(m, thunk), {{{1, 2}}, {{10, 20}}});
  EXPECT_THAT(result[0], ElementsAre(1, 10));
  EXPECT_THAT(result[1], ElementsAre(2, 20));
}

// A branch that only one device takes, with a collective of a group of its own, before one of all.
TEST(Collectives, GroupsCountTheirOwn) {
  PlanMaker m;
  const int32_t x = m.Parameter(4), choice = m.Parameter(1), y = m.Result(4);
  const Slice from = m.Floats(x, 4), to = m.Floats(y, 4);
  CollectiveThunk alone = Thunk1(CollectiveKind::kAllReduce, from, to, F32(4), F32(4));
  alone.groups = {{0}, {1}};
  ConditionalThunk branches;
  branches.selector = m.Floats(choice, 1);
  branches.is_predicate = false;  // 0, or beyond all: the last
  branches.branches = {m.Seq({}), m.Seq({m.Make(alone, "collective.0")})};
  m.Add(m.Make(branches, "conditional.0"));
  const Plan plan = OneCollective(m, Thunk1(CollectiveKind::kAllReduce, from, to, F32(4), F32(4)));
  for (const auto& device : RunOnAll(plan, {{{1, 2, 3, 4}, {1}}, {{10, 20, 30, 40}, {0}}}))
    EXPECT_THAT(device, ElementsAre(11, 22, 33, 44));
}

TEST(Collectives, ReducerGivenAsAKernel) {
  PlanMaker m;
  const int32_t x = m.Parameter(4), y = m.Result(4);
  Grid grid;
  grid.groups[0] = 4;
  const int32_t sum = m.WholeKernel(
      "a_plus_b_plus_1", 3,
      "__kernel void a_plus_b_plus_1(__global const float* a, __global const float* b, __global float* out) {\n"
      "  size_t i = get_group_id(0);\n  out[i] = a[i] + b[i] + 1;\n}\n",
      grid);
  CollectiveThunk thunk = Thunk1(CollectiveKind::kAllReduce, m.Floats(x, 4), m.Floats(y, 4), F32(4), F32(4));
  thunk.reduction_kernel = sum;
  for (const auto& device : RunOnAll(OneCollective(m, thunk), {{{1, 2, 3, 4}}, {{10, 20, 30, 40}}})) {
    EXPECT_THAT(device, ElementsAre(12, 23, 34, 45));
  }
}

// Device 0 sends its row 0 to device 0 at row 1, rows 1-2 to device 1 at row 0; device 1 sends row 0 to device 1 at
// row 2.
TEST(Collectives, RaggedAllToAll) {
  const auto indices = [](std::vector<int32_t> values) {
    std::vector<float> bits(values.size());
    std::memcpy(bits.data(), values.data(), values.size() * 4);
    return bits;
  };
  PlanMaker m;
  const hlo::Shape index_shape(hlo::ElementType::kS32, {2});
  CollectiveThunk thunk;
  thunk.kind = CollectiveKind::kRaggedAllToAll;
  thunk.groups = {{0, 1}};
  for (const int64_t count : {3, 3, 2, 2, 2, 2}) {
    thunk.operands.push_back(m.Floats(m.Parameter(count), count));
    thunk.operand_shapes.push_back(count == 3 ? F32(3) : index_shape);
  }
  thunk.results = {m.Floats(m.Result(3), 3)};
  thunk.result_shapes = {F32(3)};
  const auto y =
      RunOnAll(OneCollective(m, thunk),
               {{{1, 2, 3}, {-1, -2, -3}, indices({0, 1}), indices({1, 2}), indices({1, 0}), indices({1, 0})},
                {{7, 8, 9}, {-4, -5, -6}, indices({0, 0}), indices({0, 1}), indices({0, 2}), indices({2, 1})}});
  EXPECT_THAT(y[0], ElementsAre(-1, 1, -3));
  EXPECT_THAT(y[1], ElementsAre(2, 3, 7));
}

TEST(Collectives, WithoutCommunicatorAnErrorSaysWhatToDo) {
  PlanMaker m;
  const int32_t x = m.Parameter(4), y = m.Result(4);
  const auto executable = BuildExecutable(
      OneCollective(m, Thunk1(CollectiveKind::kAllReduce, m.Floats(x, 4), m.Floats(y, 4), F32(4), F32(4))),
      TestContext(), {});
  try {
    executable->Run({{Upload({1, 2, 3, 4})}}, {}).at(0).ready->Wait();
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("collective.1"), testing::HasSubstr("mpirun")));
  }
}

// Kernels and collectives in turn, and each partition's own number.
TEST(Collectives, InsideALoopWithPartitionIds) {
  PlanMaker m;
  const int32_t x = m.Parameter(1), arena = m.Arena(256), y = m.Result(1);
  const Slice id = m.Bytes(arena, 0, 4);
  const int32_t add_id = m.Kernel2("add_id", "*y += *(__global const int*)x;", 1);
  m.Add(m.Make(CopyThunk{m.Floats(x, 1), m.Floats(y, 1)}, "copy"));
  m.Add(m.Make(WriteThunk{WriteThunk::Value::kPartitionId, "", id}, "partition-id"));
  WhileThunk loop;
  loop.condition = m.Seq({});
  loop.body =
      m.Seq({m.Launch(add_id, id, m.Floats(y, 1)),
             m.Make(Thunk1(CollectiveKind::kAllReduce, m.Floats(y, 1), m.Floats(y, 1), F32(1), F32(1)), "all-reduce")});
  loop.predicate = id;
  loop.trip_count = 3;
  m.Add(m.Make(loop, "while"));
  m.plan().num_partitions = kDevices;
  // y <- 2 y + 1, three times, from 1 on both.
  for (const auto& device : RunOnAll(m.Take(), {{{1}}, {{1}}})) EXPECT_THAT(device, ElementsAre(15));
}

// Each device has an arena of its own, in which its first run makes what is made of constants.
TEST(ConstantWork, IsDoneOnEachDevice) {
  PlanMaker m;
  const int32_t x = m.Parameter(2), c = m.Constant({3, 4}), arena = m.Arena(4096), y = m.Result(2);
  const int32_t square = m.Kernel2("square", "*y = *x * *x;", 2), add_to = m.Kernel2("add_to", "*y += *x;", 2);
  const Slice squares = m.Bytes(arena, 0, 8);
  m.Add(m.Make(CopyThunk{m.Floats(x, 2), m.Floats(y, 2)}, "copy"));
  m.Add(m.Launch(add_to, squares, m.Floats(y, 2)));
  m.plan().of_constants.thunks = {m.Launch(square, m.Floats(c, 2), squares)};
  m.plan().num_partitions = kDevices;
  EXPECT_THAT(RunOnAll(m.Take(), {{{1, 2}}, {{10, 20}}}), ElementsAre(ElementsAre(10, 18), ElementsAre(19, 36)));
}

}  // namespace
}  // namespace hlorun::opencl
