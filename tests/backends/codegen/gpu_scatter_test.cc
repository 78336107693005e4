// Scatters on GPU class, whose rows have owners among the work-items: against the evaluator, with combinations that
// show their order. Random indices are -7 to 15: many alike, some outside.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

struct NamedText {
  std::string name, text;
};

void Run(const std::vector<NamedText>& cases, int64_t group, bool in_place) {
  SCOPED_TRACE(fmt::format("groups of {}{}", group, in_place ? ", in place" : ""));
  DeviceSpec spec = GpuSpec();
  spec.max_work_group_size = group;
  KernelRunner runner(spec);
  for (const NamedText& c : cases) runner.Add(c.name, c.text);
  runner.RunAll(in_place);
}

void RunOnGpus(const std::vector<NamedText>& cases) {
  Run(cases, 128, /*in_place=*/true);
  Run(cases, 50, /*in_place=*/false);
  Run(cases, 1, /*in_place=*/false);
}

// Of s32, exact: what came before counts three times as much.
constexpr const char* kOrdered = R"(m { a = s32[] parameter(0) b = s32[] parameter(1) t = s32[] constant(3)
    p = s32[] multiply(a, t) ROOT c = s32[] add(p, b) })";
constexpr const char* kAssign = "m { a = s32[] parameter(0) ROOT b = s32[] parameter(1) }";
constexpr const char* kSum = "m { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";

// Rows of [rows, width], `stride` between those that indices name.
std::string Rows(const char* combiner, const char* type, int64_t rows, int64_t width, int64_t updates,
                 int64_t stride = 1) {
  return fmt::format(
      R"({0}
         ENTRY e {{ x = {1}[{2},{3}] parameter(0) n = s32[{4}] parameter(1) s = s32[] constant({5}) t = s32[{4}] broadcast(s), dimensions={{}}
           i = s32[{4}] multiply(n, t) u = {1}[{4},{3}] parameter(2)
           ROOT r = {1}[{2},{3}] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
             scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=m }})",
      combiner, type, rows, width, updates, stride);
}

std::string Scalars(const char* combiner, const char* type, int64_t size, int64_t updates, int64_t stride = 1) {
  return fmt::format(
      R"({0}
         ENTRY e {{ x = {1}[{2}] parameter(0) n = s32[{3}] parameter(1) s = s32[] constant({4}) t = s32[{3}] broadcast(s), dimensions={{}}
           i = s32[{3}] multiply(n, t) u = {1}[{3}] parameter(2)
           ROOT r = {1}[{2}] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
             scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=m }})",
      combiner, type, size, updates, stride);
}

TEST(GpuScatter, RowsInTheOrderOfUpdates) {
  RunOnGpus({
      {"short", Rows(kOrdered, "s32", 12, 5, 70)},
      {"one_tile", Rows(kOrdered, "s32", 12, 128, 70)},
      {"ragged_tile", Rows(kOrdered, "s32", 12, 130, 70)},
      {"tiles", Rows(kOrdered, "s32", 9, 1024, 40)},
      {"ragged_tiles", Rows(kOrdered, "s32", 9, 1100, 40)},
      {"many_rows", Rows(kOrdered, "s32", 4000, 7, 300, 271)},
      {"many_updates", Rows(kOrdered, "s32", 12, 3, 9001)},
      {"assign", Rows(kAssign, "s32", 12, 33, 500)},
      {"sum", Rows(kSum, "f32", 12, 600, 50)},
      {"few_updates", Rows(kOrdered, "s32", 12, 9000, 2)},
      {"one_row", Rows(kOrdered, "s32", 1, 700, 30)},
  });
}

TEST(GpuScatter, ScalarsInTheOrderOfUpdates) {
  RunOnGpus({
      {"ordered", Scalars(kOrdered, "s32", 14, 3000)},
      {"assign", Scalars(kAssign, "s32", 3000, 3000, 199)},
      {"many_places", Scalars(kOrdered, "s32", 200000, 5000, 12345)},
      {"sum", Scalars(kSum, "f32", 14, 300)},
  });
}

TEST(GpuScatter, ManyScalarsIntoFewPlaces) {
  const std::string max = "m { a = s8[] parameter(0) b = s8[] parameter(1) ROOT c = s8[] maximum(a, b) }";
  const std::string points = fmt::format(
      R"({} ENTRY e {{ x = f32[9,5,1] parameter(0) i = s32[2,130,200] parameter(1) u = f32[130,200] parameter(2)
           ROOT r = f32[9,5,1] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0,1,2}},
             scatter_dims_to_operand_dims={{1,0}}, index_vector_dim=0, to_apply=m }})",
      kSum);
  RunOnGpus({
      {"sum", Scalars(kSum, "f32", 14, 20000)},
      {"product", Scalars("m { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] multiply(b, a) }", "s32",
                          30, 17000, 2)},
      {"maximum", Scalars(max.c_str(), "s8", 2000, 16384, 131)},
      {"long_parts", Scalars("m { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }", "s32", 300,
                             2200000, 21)},
      {"points", points},
      {"ordered", Scalars(kOrdered, "s32", 14, 20000)},
  });
}

TEST(GpuScatter, OtherForms) {
  const auto windows = [](const char* shape, const char* updates, int64_t count, const char* more = "") {
    return fmt::format(
        R"({0} ENTRY e {{ x = s32[{1}] parameter(0) i = s32[{3},2] parameter(1) u = s32[{3},{2}] parameter(2)
             ROOT r = s32[{1}] scatter(x, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}},
               scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, {4} to_apply=m }})",
        kOrdered, shape, updates, count, more);
  };
  const std::string batched = fmt::format(
      R"({} ENTRY e {{ x = s32[3,11,40] parameter(0) i = s32[3,60,1] parameter(1) u = s32[3,60,40] parameter(2)
           ROOT r = s32[3,11,40] scatter(x, i, u), update_window_dims={{2}}, inserted_window_dims={{1}}, input_batching_dims={{0}},
             scatter_indices_batching_dims={{0}}, scatter_dims_to_operand_dims={{1}}, index_vector_dim=2, to_apply=m }})",
      kOrdered);
  const std::string points = fmt::format(
      R"({} ENTRY e {{ x = s32[9,5,13] parameter(0) i = s32[2,4,50] parameter(1) u = s32[5,4,50] parameter(2)
           ROOT r = s32[9,5,13] scatter(x, i, u), update_window_dims={{0}}, inserted_window_dims={{0,2}},
             scatter_dims_to_operand_dims={{2,0}}, index_vector_dim=0, to_apply=m }})",
      kOrdered);
  const char* two =
      R"(m { a = s32[] parameter(0) s = f32[] parameter(1) b = s32[] parameter(2) t = f32[] parameter(3)
           n = s32[] subtract(b, a) g = f32[] maximum(s, t) ROOT r = (s32[], f32[]) tuple(n, g) }
         ENTRY e { x = s32[10,6] parameter(0) y = f32[10,6] parameter(1) i = s32[90] parameter(2) u = s32[90,6] parameter(3) v = f32[90,6] parameter(4)
           ROOT r = (s32[10,6], f32[10,6]) scatter(x, y, i, u, v), update_window_dims={1}, inserted_window_dims={0},
             scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=m })";
  const char* complex =
      R"(m { a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] subtract(b, a) }
         ENTRY e { x = c64[10,6] parameter(0) i = s8[20] parameter(1) u = c64[20,6] parameter(2)
           ROOT r = c64[10,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
             scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=m })";
  RunOnGpus({
      {"sliding_windows", windows("12,17", "3,4", 80)},
      {"many_sliding_windows", windows("12,17", "3,4", 5000)},
      {"sliding_rows", windows("14,300", "5,300", 40)},
      {"wide_sliding_windows", windows("12,700", "1,650", 40)},
      {"whole_window", windows("3,4", "3,4", 20)},
      {"one_window", windows("12,700", "3,600", 1)},
      {"batched", batched},
      {"points", points},
      {"two_results", two},
      {"complex", complex},
      {"one_scalar", Scalars(kOrdered, "s32", 14, 1)},
  });
}

TEST(GpuScatter, UniqueIndices) {
  RunOnGpus(
      {{"rows",
        fmt::format(
            R"({} ENTRY e {{ x = s32[50,90] parameter(0) i = s32[50] iota(), iota_dimension=0 u = s32[50,90] parameter(1)
       ROOT r = s32[50,90] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}},
         index_vector_dim=1, unique_indices=true, to_apply=m }})",
            kOrdered)}});
}

}  // namespace
}  // namespace hlorun::opencl
