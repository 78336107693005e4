// Every collective on 2, 3, 4 and 8 devices, over MPI and in process: the evaluator's values, and the same bits
// everywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "driver/arrays/array_set.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using testing_support::CommandResult;
using testing_support::Mpirun;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

class MpiCollectivesTest : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t n() const { return GetParam(); }

  std::string Module() const {
    std::string ring, pairs;
    for (int64_t d = 0; d < n(); ++d) ring += fmt::format("{}{{{},{}}}", d > 0 ? "," : "", d, (d + 1) % n());
    for (int64_t d = 0; d < n(); d += 2)
      pairs += fmt::format("{}{{{}{}}}", d > 0 ? "," : "", d, d + 1 < n() ? fmt::format(",{}", d + 1) : "");
    return fmt::format(R"(HloModule every_collective, num_partitions={0}
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }}
largest {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }}
ENTRY main {{
  x = f32[{1},3] parameter(0)
  sum = f32[{1},3] all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups=[1,{0}]<=[{0}]
  pairs = f32[{1},3] all-reduce(x), channel_id=2, use_global_device_ids=true, to_apply=largest, replica_groups={{{2}}}
  gathered = f32[{1},{3}] all-gather(x), channel_id=3, use_global_device_ids=true, dimensions={{1}}, replica_groups=[1,{0}]<=[{0}]
  scattered = f32[2,3] reduce-scatter(x), channel_id=4, use_global_device_ids=true, to_apply=add, dimensions={{0}}, replica_groups=[1,{0}]<=[{0}]
  exchanged = f32[{1},3] all-to-all(x), channel_id=5, dimensions={{0}}, replica_groups=[1,{0}]<=[{0}]
  moved = f32[{1},3] collective-permute(x), channel_id=6, source_target_pairs={{{5}}}
  root = f32[{1},3] collective-broadcast(x), channel_id=7, replica_groups=[1,{0}]<=[{0}]
  id = u32[] partition-id()
  two = u32[] constant(2)
  zero = u32[] constant(0)
  own = u32[] multiply(id, two)
  whole = f32[{1},3] all-reduce(x), channel_id=8, use_global_device_ids=true, to_apply=largest, replica_groups=[1,{0}]<=[{0}]
  kept = f32[2,3] dynamic-slice(whole, own, zero), dynamic_slice_sizes={{2,3}}
  y = f32[{1},3] multiply(x, x)
  z = f32[{1},2] slice(y), slice={{[0:{1}], [1:3]}}
  sum_y = f32[{1},2] all-reduce(z), channel_id=9, use_global_device_ids=true, to_apply=add, replica_groups=[1,{0}]<=[{0}]
  gathered_y = f32[{1},{4}] all-gather(z), channel_id=10, use_global_device_ids=true, dimensions={{1}}, replica_groups=[1,{0}]<=[{0}]
  scattered_y = f32[2,2] reduce-scatter(z), channel_id=11, use_global_device_ids=true, to_apply=add, dimensions={{0}}, replica_groups=[1,{0}]<=[{0}]
  ROOT all = (f32[{1},3], f32[{1},3], f32[{1},{3}], f32[2,3], f32[{1},3], f32[{1},3], f32[{1},3], u32[], f32[2,3], f32[{1},2], f32[{1},{4}], f32[2,2]) tuple(sum, pairs, gathered, scattered, exchanged, moved, root, id, kept, sum_y, gathered_y, scattered_y)
}}
)",
                       n(), 2 * n(), pairs, 3 * n(), 2 * n(), ring);
  }
};

TEST_P(MpiCollectivesTest, HasTheEvaluatorsValuesAndTheSameBitsInEveryJob) {
  const TemporaryFolder folder;
  const std::string text = Module(), path = folder.Write("module.hlo", text);
  std::vector<std::vector<hlo::Literal>> arguments;
  for (int64_t d = 0; d < n(); ++d) {
    hlo::Literal x(hlo::ParseShape(fmt::format("f32[{},3]", 2 * n())));
    for (int64_t i = 0; i < x.ElementCount(); ++i) x.SetDouble(i, 1.0 / static_cast<double>(3 * i + 7 * d + 1));
    SaveArrays(folder / fmt::format("in/rank_{}", d), {x});
    arguments.push_back({std::move(x)});
  }
  const std::vector<hlo::Literal> expected = hlo::EvaluateSpmd(*hlo::ParseModule(text), arguments);
  for (int64_t d = 0; d < n(); ++d)
    SaveArrays(folder / fmt::format("expected/rank_{}", d), expected[static_cast<size_t>(d)].elements());

  std::vector<std::pair<std::string, std::string>> jobs = {
      {"in_process", fmt::format(HLORUN_BINARY " --devices={}", n())},
      {"mpi", Mpirun(static_cast<int>(n())) + HLORUN_BINARY},
      {"messages", "HLORUN_NODE_WINDOW=0 " + Mpirun(static_cast<int>(n())) + HLORUN_BINARY}};
  if (n() % 2 == 0)
    jobs.emplace_back("mixed", Mpirun(static_cast<int>(n() / 2)) + HLORUN_BINARY " --devices_per_rank=2");
  for (const auto& [name, command] : jobs) {
    const CommandResult result =
        RunCommand(command + " --inputs=" + (folder / "in") + " --expect=" + (folder / "expected") +
                   " --outputs=" + (folder / name) + " " + path);
    ASSERT_EQ(result.exit_code, 0) << name << "\n" << result.err;
    EXPECT_EQ(RunCommand("diff -r " + (folder / name) + " " + (folder / "in_process")).exit_code, 0) << name;
  }
}

// On one clock: what all ranks add up ends on none before all have come to it.
TEST_P(MpiCollectivesTest, TheTraceShowsEveryRank) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("module.hlo", Module()), trace = folder / "trace.json";
  const CommandResult run =
      testing_support::HlorunRanks(static_cast<int>(n()), "--iterations=1 --trace=" + trace + " " + path);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::vector<std::map<std::string, std::pair<double, double>>> times(static_cast<size_t>(n()));
  const nlohmann::json written = nlohmann::json::parse(ReadAll(trace));
  for (const auto& event : written["traceEvents"]) {
    if (event["ph"] != "X" || event["tid"] != 2) continue;
    times.at(event["pid"])[event["name"]] = {event["ts"], event["ts"].get<double>() + event["dur"].get<double>()};
  }
  for (const auto& rank : times) ASSERT_EQ(rank.size(), times[0].size());
  ASSERT_GE(times[0].size(), 8u);
  for (const auto& [name, first] : times[0]) {
    if (!name.starts_with("sum")) continue;
    for (const auto& rank : times) EXPECT_LE(rank.at(name).first, first.second) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MpiCollectivesTest, ::testing::Values(2, 3, 4, 8));

}  // namespace
}  // namespace hlorun
