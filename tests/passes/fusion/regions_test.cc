// Regions: what joins, what stays outside, and that nothing changes but the number of launches.
#include "passes/fusion/regions.h"

#include <gtest/gtest.h>

#include "passes/control/known_trip_counts.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/hero.h"
#include "passes/pipeline.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

class FuseAndFormRegions : public Pipeline {
 public:
  FuseAndFormRegions() : Pipeline("regions") { Add<KnownTripCounts>().Add<Fusion>().Add<FormRegions>(); }
};

// Kernels that the entry computation launches; regions among them.
std::pair<int, int> Kernels(const hlo::Module& module) {
  int kernels = 0, regions = 0;
  for (const auto& instruction : module.entry()->instructions()) {
    const KernelKind kind = HeroOf(*instruction).kind;
    if (kind != KernelKind::kNone) ++kernels;
    if (kind == KernelKind::kRegion) ++regions;
  }
  return {kernels, regions};
}

// x is doubled until its sum is large; the loop's length is data. A tuple leaves the loop whole.
constexpr const char* kUnknownLoop = R"(HloModule m
  add { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT s = f32[] add(a, b) }
  test { p = (s32[], f32[4]) parameter(0)
         x = f32[4] get-tuple-element(p), index=1
         n = s32[] get-tuple-element(p), index=0
         z = f32[] constant(0)
         y = f32[4] abs(x)
         s = f32[] reduce(y, z), dimensions={0}, to_apply=add
         big = f32[] constant(100)
         more = pred[] compare(s, big), direction=LT
         ten = s32[] constant(10)
         few = pred[] compare(n, ten), direction=LT
         ROOT c = pred[] and(more, few) }
  body { p = (s32[], f32[4]) parameter(0)
         n = s32[] get-tuple-element(p), index=0
         x = f32[4] get-tuple-element(p), index=1
         one = s32[] constant(1)
         m = s32[] add(n, one)
         y = f32[4] add(x, x)
         ROOT t = (s32[], f32[4]) tuple(m, y) }
  ENTRY e { x = f32[4] parameter(0)
            zero = s32[] constant(0)
            t = (s32[], f32[4]) tuple(zero, x)
            ROOT w = (s32[], f32[4]) while(t), condition=test, body=body })";

TEST(Regions, TakesALoopWhoseLengthIsData) {
  FuseAndFormRegions pass;
  RunAndCompare(kUnknownLoop, pass);
  const auto module = RunPass(kUnknownLoop, pass);
  EXPECT_EQ(Kernels(*module), std::pair(1, 1));
}

// A large product lies between two runs of small kernels: a region before and one after, and no cycle.
TEST(Regions, StayApartWhereALargeKernelLiesBetween) {
  const char* text = R"(HloModule m
    add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[8] parameter(0)
              y = f32[300,300] parameter(1)
              z = f32[] constant(0)
              s = f32[] reduce(x, z), dimensions={0}, to_apply=add
              b = f32[8] broadcast(s), dimensions={}
              u = f32[8] divide(x, b)
              t = f32[] reduce(u, z), dimensions={0}, to_apply=add
              w = f32[300,300] broadcast(t), dimensions={}
              v = f32[300,300] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              c = f32[1,8] slice(v), slice={[0:1], [0:8]}
              d = f32[8] reshape(c)
              f = f32[] reduce(d, z), dimensions={0}, to_apply=add
              g = f32[8] broadcast(f), dimensions={}
              h = f32[8] subtract(d, g)
              i = f32[] reduce(h, z), dimensions={0}, to_apply=add
              ROOT r = (f32[8], f32[], f32[8]) tuple(u, i, h) })";
  FuseAndFormRegions pass;
  RunAndCompare(text, pass, kRounding);
  const auto [kernels, regions] = Kernels(*RunPass(text, pass));
  EXPECT_EQ(regions, 2);
  EXPECT_LE(kernels, 4);
}

TEST(Regions, LeaveLargeLoopsToTheHost) {
  const char* text = R"(HloModule m
    test { p = (s32[], f32[2048,2048]) parameter(0)
           n = s32[] get-tuple-element(p), index=0
           k = s32[] constant(3)
           ROOT c = pred[] compare(n, k), direction=LT }
    body { p = (s32[], f32[2048,2048]) parameter(0)
           n = s32[] get-tuple-element(p), index=0
           x = f32[2048,2048] get-tuple-element(p), index=1
           one = s32[] constant(1)
           m = s32[] add(n, one)
           y = f32[2048,2048] add(x, x)
           ROOT t = (s32[], f32[2048,2048]) tuple(m, y) }
    ENTRY e { x = f32[2048,2048] parameter(0)
              zero = s32[] constant(0)
              t = (s32[], f32[2048,2048]) tuple(zero, x)
              w = (s32[], f32[2048,2048]) while(t), condition=test, body=body
              ROOT r = f32[2048,2048] get-tuple-element(w), index=1 })";
  FuseAndFormRegions pass;
  EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kWhile), 1);
}

}  // namespace
}  // namespace hlorun::passes
