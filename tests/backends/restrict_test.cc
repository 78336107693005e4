// What kernels promise of their parameters: that nothing else reaches what a restricted pointer does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/codegen/unrestricted.h"
#include "backends/opencl/compiler.h"
#include "backends/opencl/plan_builder.h"
#include "backends/opencl/plan_slices.h"
#include "hlo/text/parser.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::opencl {
namespace {

// By parameter of the kernel, as its text has them.
std::vector<bool> RestrictedParameters(const Kernel& kernel) {
  const size_t open = kernel.source.find('(', kernel.source.find(" " + kernel.name + "(")),
               close = kernel.source.find(')', open);
  std::vector<bool> restricted;
  for (size_t begin = open + 1, end = 0; begin < close; begin = end + 1) {
    end = std::min(kernel.source.find(',', begin), close);
    restricted.push_back(kernel.source.substr(begin, end - begin).find("restrict") != std::string::npos);
  }
  return restricted;
}

// Kernels that write where another parameter lies, of which one is restricted.
std::vector<std::string> BrokenPromises(const Plan& plan) {
  std::vector<std::string> broken;
  const auto check = [&](const LaunchThunk& launch) {
    const Kernel& kernel = plan.kernels[static_cast<size_t>(launch.kernel)];
    const std::vector<bool> restricted = RestrictedParameters(kernel);
    ASSERT_EQ(restricted.size(), launch.arguments.size());
    for (size_t i = 0; i < restricted.size(); ++i) {
      for (size_t j = 0; j < restricted.size() && launch.written[i]; ++j) {
        if (i != j && (restricted[i] || restricted[j]) && launch.arguments[i].Overlaps(launch.arguments[j]))
          broken.push_back(kernel.source);
      }
    }
  };
  for (const Sequence* sequence : SequencesOf(plan)) {
    for (const Thunk& thunk : sequence->thunks) {
      ForEachThunk(thunk, [&](const Thunk& inner) {
        if (const auto* launch = std::get_if<LaunchThunk>(&inner.work)) check(*launch);
      });
    }
  }
  return broken;
}

Plan PlanOf(const std::string& text) {
  return CompileModule(*hlo::ParseModule(text), DeviceSpec(), CompileOptions()).plan;
}

// The loop passes `scaled` on, so that `passed` lies where it does; one of the two is overwritten where both are read.
// As the passes left it once: they know what a plain loop passes on.
TEST(Restrict, ValuesThatALoopPassesOnAreOneArray) {
  const auto module = hlo::ParseModule(R"(HloModule m, is_scheduled=true
next { a = s32[] parameter(0)  one = s32[] constant(1)  ROOT n = s32[] add(a, one) }
less { a = s32[] parameter(0)  two = s32[] constant(2)  ROOT go = pred[] compare(a, two), direction=LT }
body {
  t = (s32[], f32[5000]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[5000] get-tuple-element(t), index=1
  n = s32[] fusion(i), kind=kLoop, calls=next
  ROOT r = (s32[], f32[5000]) tuple(n, x)
}
condition {
  t = (s32[], f32[5000]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ROOT go = pred[] fusion(i), kind=kLoop, calls=less
}
ENTRY e {
  x = f32[5000] parameter(0)
  scaled = f32[5000] cosine(x)
  zero = s32[] constant(0)
  first = s32[] copy(zero)
  t = (s32[], f32[5000]) tuple(first, scaled)
  loop = (s32[], f32[5000]) while(t), condition=condition, body=body
  passed = f32[5000] get-tuple-element(loop), index=1
  ROOT both = f32[5000] subtract(passed, scaled)
}
)");
  const DeviceSpec device;
  const CompileOptions options;
  const OpenClKernelModel kernels(device, options);
  passes::PassContext context{device, options, kernels, {}};
  const Plan plan = BuildPlan(*module, passes::AssignBuffers(*module, context), context);
  const auto* last = std::get_if<LaunchThunk>(&plan.entry.thunks.back().work);
  ASSERT_TRUE(last != nullptr && last->arguments.size() == 3) << plan.ToString();
  EXPECT_EQ(last->arguments[0], last->arguments[1]);
  EXPECT_EQ(last->arguments[0], last->arguments[2]);
  EXPECT_EQ(BrokenPromises(plan), std::vector<std::string>()) << plan.ToString();
}

// LLVM 15 moves stores across loads of several addresses at once that go through a restricted pointer (unrestricted.h).
// `most` is made in place, then picked from.
TEST(Restrict, WhatAKernelReadsBackIsNot) {
  const Plan plan = PlanOf(R"(HloModule m
body {
  t = (s32[], s32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = s32[8] get-tuple-element(t), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = s32[8] reverse(x), dimensions={0}
  z = s32[8] maximum(x, y)
  ROOT r = (s32[], s32[8]) tuple(n, z)
}
condition {
  t = (s32[], s32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = s32[8] parameter(0)
  i = s32[] parameter(1)
  t = (s32[], s32[8]) tuple(i, x)
  loop = (s32[], s32[8]) while(t), condition=condition, body=body
  most = s32[8] get-tuple-element(loop), index=1
  picked = s32[8] gather(most, x), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  ROOT r = (s32[8], s32[8]) tuple(picked, most)
})");
  ASSERT_EQ(plan.kernels.size(), 1u);
  const std::string& text = plan.kernels[0].source;
  ASSERT_THAT(text, testing::HasSubstr("(out0, at"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("restrict out0")));
  EXPECT_THAT(text, testing::HasSubstr("restrict out1"));
}

// Stores of several addresses likewise: one element in each sixteen.
TEST(Restrict, WhatALoopStoresFarApartIsNot) {
  const ir::BufferRef near = ir::MakeBuffer("near", hlo::ElementType::kS32, 64, ir::Buffer::Space::kGlobal, true),
                      far = ir::MakeBuffer("far", hlo::ElementType::kS32, 64, ir::Buffer::Space::kGlobal, true);
  const ir::Var i = ir::MakeVar("i", ir::kIndex32);
  const ir::Expr one = ir::Int(1);
  const ir::Stmt loop = ir::For(ir::LoopRole::kSerial, i, ir::Int(0, ir::kIndex32), ir::Int(4, ir::kIndex32),
                                ir::Block({ir::Store(near, ir::Ref(i), one), ir::Store(far, ir::Ref(i) * 16, one)}));
  EXPECT_EQ(Unrestricted(loop), std::set<const ir::Buffer*>{far.get()});
}

}  // namespace
}  // namespace hlorun::opencl
