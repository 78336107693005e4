// Products of slices leave loops where that pays, and only there.
#include "passes/control/slices_after_products.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "passes/control/loop_invariants.h"
#include "passes/generic_context.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

// A loop of `trips` over xs, whose slice of `sizes`, as `row`, meets w in `product`; the results are summed.
std::string Loop(int64_t trips, const std::string& start, const std::string& xs, const std::string& sizes,
                 const std::string& row, const std::string& w, const std::string& product,
                 const std::string& next_w = "w") {
  return fmt::format(R"(HloModule m
    condition {{ p = (s32[], f32[3,5], f32[{1}], f32[{4}]) parameter(0)
                 i = s32[] get-tuple-element(p), index=0
                 n = s32[] constant({0})
                 ROOT c = pred[] compare(i, n), direction=LT }}
    body {{ p = (s32[], f32[3,5], f32[{1}], f32[{4}]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            sum = f32[3,5] get-tuple-element(p), index=1
            xs = f32[{1}] get-tuple-element(p), index=2
            w = f32[{4}] get-tuple-element(p), index=3
            one = s32[] constant(1)
            zero = s32[] constant(0)
            last = s32[] constant(7)
            back = s32[] subtract(last, i)
            j = s32[] add(i, one)
            slice = f32[{2}] dynamic-slice(xs, {6}), dynamic_slice_sizes={{{2}}}
            x = f32[{3}] reshape(slice)
            y = f32[3,5] {5}
            v = f32[{4}] negate(w)
            next = f32[3,5] add(sum, y)
            ROOT t = (s32[], f32[3,5], f32[{1}], f32[{4}]) tuple(j, next, xs, {7}) }}
    ENTRY e {{ xs = f32[{1}] parameter(0)
               w = f32[{4}] parameter(1)
               z = s32[] constant(0)
               sum = f32[3,5] parameter(2)
               t = (s32[], f32[3,5], f32[{1}], f32[{4}]) tuple(z, sum, xs, w)
               l = (s32[], f32[3,5], f32[{1}], f32[{4}]) while(t), condition=condition, body=body
               ROOT r = f32[3,5] get-tuple-element(l), index=1 }})",
                     trips, xs, sizes, row, w, product, start, next_w);
}

constexpr char kDot[] = "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}";

struct Case {
  const char* name;
  std::string text;
  bool leaves;
};

TEST(SliceAfterProducts, OneProductInFrontOfTheLoop) {
  const Case cases[] = {
      {"forward", Loop(8, "i, zero, zero", "8,3,4", "1,3,4", "3,4", "4,5", kDot), true},
      {"backward", Loop(8, "back, zero, zero", "8,3,4", "1,3,4", "3,4", "4,5", kDot), true},
      {"beyond the end", Loop(11, "i, i, zero", "8,3,4", "1,3,4", "3,4", "4,5", kDot), true},
      {"rows outermost", Loop(8, "zero, i, zero", "3,8,4", "3,1,4", "3,4", "4,5", kDot), true},
      {"along the last",
       Loop(8, "zero, zero, i", "4,3,8", "4,3,1", "4,3", "4,5",
            "dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
       true},
      {"on the right",
       Loop(8, "i, zero, zero", "8,4,5", "1,4,5", "4,5", "3,4",
            "dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
       true},
      {"few trips", Loop(3, "i, zero, zero", "8,3,4", "1,3,4", "3,4", "4,5", kDot), false},
      {"weights that change", Loop(8, "i, zero, zero", "8,3,4", "1,3,4", "3,4", "4,5", kDot, "v"), false},
      {"two rows at once", Loop(4, "i, zero, zero", "8,3,2", "2,3,2", "3,4", "4,5", kDot), false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    SliceAfterProducts pass;
    RunAndCompare(c.text, pass, kRounding);
    const auto module = RunPass(c.text, pass);
    GenericKernelModel kernels;
    GenericContext context(kernels);
    HoistLoopInvariants hoist;
    hoist.Run(*module, context);
    const auto& there = module->entry()->instructions();
    const bool left = std::any_of(there.begin(), there.end(), [](const auto& i) { return i->Is(Opcode::kDot); });
    EXPECT_EQ(left, c.leaves);
  }
}

}  // namespace
}  // namespace hlorun::passes
