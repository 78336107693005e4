// Schedule, copy insertion and buffer assignment: text in, facts about the plan out. Every plan is run on symbols.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/generic_context.h"
#include "tests/passes/memory/planned_module.h"
#include "tests/passes/memory/symbolic_run.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

const hlo::Instruction* Find(const hlo::Module& module, std::string_view name) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->name() == name) return instruction.get();
    }
  }
  ADD_FAILURE() << "no instruction " << name;
  return nullptr;
}

Planned Checked(std::string_view text) {
  Planned planned = PlanMemory(text);
  EXPECT_EQ(CheckSymbolically(*planned.module, planned.buffers, planned.kernels), "") << planned.buffers.ToString();
  return planned;
}

TEST(BufferAssignment, ElementwiseChainTakesThePlaceOfItsOperand) {
  const Planned planned = Checked(R"(HloModule m
ENTRY e {
  x = f32[256] parameter(0)
  a = f32[256] negate(x)
  b = f32[256] exponential(a)
  ROOT c = f32[256] add(b, x)
})");
  EXPECT_EQ(planned.buffers.statistics().arena_bytes, 0);  // all in the result's memory
  EXPECT_EQ(planned.buffers.statistics().peak_bytes, 2048);
  EXPECT_EQ(planned.buffers.SliceOf(Find(*planned.module, "a")), planned.buffers.SliceOf(Find(*planned.module, "c")));
}

TEST(BufferAssignment, OperandReadElsewhereIsNotTaken) {
  const Planned planned = Checked(R"(HloModule m
ENTRY e {
  x = f32[16,16] parameter(0)
  a = f32[16,16] negate(x)
  t = f32[16,16] transpose(a), dimensions={1,0}
  ROOT c = f32[16,16] add(t, a)
})");
  EXPECT_FALSE(planned.buffers.SliceOf(Find(*planned.module, "a"))
                   .Overlaps(planned.buffers.SliceOf(Find(*planned.module, "t"))));
}

TEST(BufferAssignment, ResultsMayBeArgumentsConstantsAndDuplicates) {
  const Planned planned = Checked(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  c = f32[8] constant({1,2,3,4,5,6,7,8})
  n = f32[8] negate(x)
  u = (f32[8]) tuple(n)
  ROOT r = (f32[8], f32[8], f32[8], (f32[8])) tuple(x, c, n, u)
})");
  const auto& buffers = planned.buffers;
  const auto kind = [&](int leaf) {
    return buffers.allocations()[static_cast<size_t>(buffers.results()[static_cast<size_t>(leaf)].allocation)].kind;
  };
  EXPECT_EQ(kind(0), Allocation::Kind::kArgument);
  EXPECT_EQ(kind(1), Allocation::Kind::kConstant);
  EXPECT_EQ(kind(2), Allocation::Kind::kResult);
  EXPECT_EQ(kind(3), Allocation::Kind::kResult);
  EXPECT_NE(buffers.results()[2].allocation, buffers.results()[3].allocation);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 1);
}

TEST(BufferAssignment, DonatedArgumentIsUpdatedInPlace) {
  const Planned planned = Checked(R"(HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }
ENTRY e {
  x = f32[8] parameter(0)
  s = f32[8] parameter(1)
  n = f32[8] add(s, x)
  ROOT r = (f32[8], f32[8]) tuple(n, x)
})");
  const Slice slice = planned.buffers.results()[0];
  EXPECT_EQ(planned.buffers.allocations()[static_cast<size_t>(slice.allocation)].aliased_argument, 1);
  EXPECT_EQ(planned.buffers.SliceOf(Find(*planned.module, "s")), slice);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 0);
}

TEST(BufferAssignment, DonatedArgumentReadAfterTheWriteCostsACopy) {
  const Planned planned = Checked(R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  s = f32[4,4] parameter(0)
  n = f32[4,4] transpose(s), dimensions={1,0}
  m = f32[4,4] add(n, s)
  ROOT r = (f32[4,4], f32[4,4]) tuple(n, m)
})");
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 1);
}

TEST(BufferAssignment, ExchangedDonatedArguments) {
  Checked(R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT r = (f32[4], f32[4]) tuple(b, a)
})");
}

// A loop that negates its array ten times: condition=cond, body=body.
constexpr const char* kNegatingLoop = R"(HloModule m
cond {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[64] negate(x)
  ROOT t = (s32[], f32[64]) tuple(j, y)
}
)";
std::string WithNegatingLoop(const std::string& entry) { return kNegatingLoop + entry; }

TEST(CopyInsertion, LoopOverAnArgumentCopiesItOnce) {
  const Planned planned = Checked(WithNegatingLoop(R"(ENTRY e {
  x = f32[64] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[64]) tuple(zero, x)
  w = (s32[], f32[64]) while(t), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1
})"));
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 2);  // of the constant and of the argument
}

TEST(CopyInsertion, InvariantCarriesAreNotCopied) {
  const Planned planned = Checked(R"(HloModule m
cond {
  p = (s32[], f32[64], (f32[64])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[64], (f32[64])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  u = (f32[64]) get-tuple-element(p), index=2
  y = f32[64] get-tuple-element(u), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  z = f32[64] add(x, y)
  v = (f32[64]) tuple(z)
  ROOT t = (s32[], f32[64], (f32[64])) tuple(j, x, v)
}
ENTRY e {
  x = f32[64] parameter(0)
  i = s32[] parameter(1)
  u = (f32[64]) tuple(x)
  t = (s32[], f32[64], (f32[64])) tuple(i, x, u)
  w = (s32[], f32[64], (f32[64])) while(t), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1
})");
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 2);  // leaf 0 and leaf 2
  EXPECT_EQ(planned.buffers.SliceOf(Find(*planned.module, "w"), 1),
            planned.buffers.SliceOf(Find(*planned.module, "t"), 1));
}

TEST(CopyInsertion, ExchangedCarries) {
  const Planned planned = Checked(R"(HloModule m
cond {
  p = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  y = f32[64] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[64], f32[64]) tuple(j, y, x)
}
ENTRY e {
  i = s32[] parameter(0)
  a = f32[64] parameter(1)
  b = f32[64] parameter(2)
  t = (s32[], f32[64], f32[64]) tuple(i, a, b)
  ROOT w = (s32[], f32[64], f32[64]) while(t), condition=cond, body=body
})");
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 6);  // three that enter, three for the exchange
}

TEST(CopyInsertion, SharedInitialValueAndValueUsedAfterTheLoop) {
  Checked(R"(HloModule m
cond {
  p = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  y = f32[64] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[64] add(x, y)
  b = f32[64] multiply(x, y)
  ROOT t = (s32[], f32[64], f32[64]) tuple(j, a, b)
}
ENTRY e {
  i = s32[] parameter(0)
  a = f32[64] parameter(1)
  s = f32[64] negate(a)
  t = (s32[], f32[64], f32[64]) tuple(i, s, s)
  w = (s32[], f32[64], f32[64]) while(t), condition=cond, body=body
  x = f32[64] get-tuple-element(w), index=1
  ROOT r = f32[64] add(x, s)
})");
}

TEST(CopyInsertion, LoopInALoopUpdatesOneBuffer) {
  const Planned planned = Checked(R"(HloModule m
inner_cond {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
inner_body {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[1] constant({5})
  y = f32[64] dynamic-update-slice(x, u, i)
  ROOT t = (s32[], f32[64]) tuple(j, y)
}
outer_cond {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
outer_body {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  s = (s32[], f32[64]) tuple(zero, x)
  w = (s32[], f32[64]) while(s), condition=inner_cond, body=inner_body
  y = f32[64] get-tuple-element(w), index=1
  ROOT t = (s32[], f32[64]) tuple(j, y)
}
ENTRY e {
  i = s32[] parameter(0)
  a = f32[64] parameter(1)
  t = (s32[], f32[64]) tuple(i, a)
  w = (s32[], f32[64]) while(t), condition=outer_cond, body=outer_body
  ROOT r = f32[64] get-tuple-element(w), index=1
})");
  // What enters the outer loop, and the inner counter.
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 3);
  EXPECT_EQ(planned.buffers.SliceOf(Find(*planned.module, "r")), planned.buffers.results()[0]);
}

TEST(CopyInsertion, BranchesThatReturnWhatTheyAreGiven) {
  Checked(R"(HloModule m
t {
  p = (f32[64], f32[64]) parameter(0)
  a = f32[64] get-tuple-element(p), index=0
  b = f32[64] get-tuple-element(p), index=1
  ROOT r = (f32[64], f32[64]) tuple(b, a)
}
f {
  p = (f32[64], f32[64]) parameter(0)
  a = f32[64] get-tuple-element(p), index=0
  b = f32[64] get-tuple-element(p), index=1
  c = f32[64] constant({...})
  s = f32[64] add(a, c)
  ROOT r = (f32[64], f32[64]) tuple(s, b)
}
ENTRY e {
  q = pred[] parameter(0)
  x = f32[64] parameter(1)
  a = f32[64] negate(x)
  b = f32[64] exponential(x)
  t = (f32[64], f32[64]) tuple(a, b)
  ROOT c = (f32[64], f32[64]) conditional(q, t, t), true_computation=t, false_computation=f
})");
}

TEST(CopyInsertion, ConditionalInALoop) {
  Checked(R"(HloModule m
t {
  a = f32[64] parameter(0)
  ROOT r = f32[64] negate(a)
}
f {
  ROOT a = f32[64] parameter(0)
}
cond {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  one = s32[] constant(1)
  five = s32[] constant(5)
  j = s32[] add(i, one)
  q = pred[] compare(i, five), direction=LT
  y = f32[64] conditional(q, x, x), true_computation=t, false_computation=f
  ROOT r = (s32[], f32[64]) tuple(j, y)
}
ENTRY e {
  i = s32[] parameter(0)
  a = f32[64] parameter(1)
  t = (s32[], f32[64]) tuple(i, a)
  ROOT w = (s32[], f32[64]) while(t), condition=cond, body=body
})");
}

TEST(FlattenControl, SharedBodiesAreCloned) {
  const Planned planned = Checked(WithNegatingLoop(R"(ENTRY e {
  x = f32[64] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[64]) tuple(zero, x)
  w = (s32[], f32[64]) while(t), condition=cond, body=body
  y = f32[64] get-tuple-element(w), index=1
  u = (s32[], f32[64]) tuple(zero, y)
  v = (s32[], f32[64]) while(u), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(v), index=1
})"));
  EXPECT_EQ(planned.module->ControlComputations().size(), 5u);
}

TEST(Schedule, ReadersComeBeforeTheUpdateInPlace) {
  const Planned planned = Checked(R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  x = f32[1024] parameter(0)
  u = f32[1] parameter(1)
  i = s32[] parameter(2)
  d = f32[1024] dynamic-update-slice(x, u, i)
  s = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}
  ROOT r = (f32[1024], f32[1]) tuple(d, s)
})");
  EXPECT_EQ(CountOf(*planned.module, Opcode::kCopy), 0);
}

TEST(Schedule, SmallResultsBeforeLargeOnes) {
  // Both arms make a large array and shrink it: one after the other they need one large array.
  const Planned planned = Checked(R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[] parameter(0)
  zero = f32[] constant(0)
  b1 = f32[4096] broadcast(x), dimensions={}
  b2 = f32[4096] broadcast(x), dimensions={}
  b3 = f32[4096] broadcast(x), dimensions={}
  r1 = f32[] reduce(b1, zero), dimensions={0}, to_apply=add
  r2 = f32[] reduce(b2, zero), dimensions={0}, to_apply=add
  r3 = f32[] reduce(b3, zero), dimensions={0}, to_apply=add
  s = f32[] add(r1, r2)
  ROOT t = f32[] add(s, r3)
})");
  EXPECT_LT(planned.buffers.statistics().arena_bytes, 2 * 4096 * 4);
}

TEST(SymbolicRun, FindsAnOverwrittenOperand) {
  // The checker itself must be able to fail: with a kernel model that lets a transpose write over its operand.
  struct Reckless : GenericKernelModel {
    bool MayShareBuffer(const hlo::Instruction&, int64_t, int64_t) const override { return true; }
  };
  const auto module = hlo::ParseModule(R"(HloModule m
ENTRY e {
  x = f32[4,4] parameter(0)
  a = f32[4,4] negate(x)
  t = f32[4,4] transpose(a), dimensions={1,0}
  ROOT c = f32[4,4] transpose(t), dimensions={1,0}
})");
  const Reckless reckless;
  GenericContext context(reckless);
  Schedule().Run(*module, context);
  const BufferAssignment buffers = AssignBuffers(*module, context);
  EXPECT_THAT(CheckSymbolically(*module, buffers, GenericKernelModel()), testing::HasSubstr("lies over operand"));
}

// Kernels of products copy their rhs into scratch.
class CopyingKernels : public GenericKernelModel {
 public:
  explicit CopyingKernels(bool says_so) : says_so_(says_so) {}
  int64_t ScratchBytes(const hlo::Instruction& instruction) const override {
    return instruction.Is(Opcode::kDot) ? instruction.operand(1)->shape().ByteSize() : 0;
  }
  std::vector<int64_t> CopiedOperands(const hlo::Instruction& instruction) const override {
    return says_so_ && instruction.Is(Opcode::kDot) ? std::vector<int64_t>{1} : std::vector<int64_t>{};
  }

 private:
  bool says_so_;
};

// A step between two products by `second` and w, of `large` elements.
Planned TwoProducts(std::string_view second, int64_t large, const CopyingKernels& kernels) {
  Planned planned;
  planned.module = hlo::ParseModule(fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[8,32] parameter(0)
  v = f32[32,32] parameter(1)
  w = f32[32,32] parameter(2)
  a = f32[8,32] dot(x, {0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  b = f32[8,32,{1}] broadcast(a), dimensions={{0,1}}
  n = f32[8,32,{1}] negate(b)
  t = f32[{1},8,32] transpose(n), dimensions={{2,0,1}}
  s = f32[1,8,32] slice(t), slice={{[0:1],[0:8],[0:32]}}
  y = f32[8,32] reshape(s)
  d = f32[8,32] dot(y, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = f32[32,8] transpose(d), dimensions={{1,0}}
}})",
                                                second, large));
  GenericContext context(kernels);
  FlattenControl().Run(*planned.module, context);
  Schedule().Run(*planned.module, context);
  CopyInsertion().Run(*planned.module, context);
  planned.buffers = AssignBuffers(*planned.module, context);
  return planned;
}

TEST(BufferAssignment, ProductsThatCopyOneArrayShareScratch) {
  const CopyingKernels silent(false), kernels(true);
  // 4 KiB beside two arrays of 100 KiB: within a thirty-second.
  const MemoryStatistics apart = TwoProducts("w", 100, silent).buffers.statistics();
  const Planned together = TwoProducts("w", 100, kernels);
  const Slice scratch = together.buffers.ScratchOf(Find(*together.module, "a"));
  EXPECT_EQ(scratch, together.buffers.ScratchOf(Find(*together.module, "d")));
  for (const char* between : {"b", "n", "t", "s"})
    EXPECT_FALSE(together.buffers.SliceOf(Find(*together.module, between)).Overlaps(scratch)) << between;
  EXPECT_EQ(together.buffers.statistics().arena_bytes, apart.arena_bytes + 4096);
  EXPECT_EQ(together.buffers.statistics().largest_live_bytes, apart.largest_live_bytes);  // the copy need not stay
  // Of two arrays there is nothing to keep.
  EXPECT_EQ(TwoProducts("v", 100, kernels).buffers.statistics().arena_bytes, apart.arena_bytes);
}

TEST(BufferAssignment, SharedScratchTakesLittleMemory) {
  const CopyingKernels silent(false), kernels(true);
  const MemoryStatistics apart = TwoProducts("w", 10, silent).buffers.statistics();
  EXPECT_EQ(TwoProducts("w", 10, kernels).buffers.statistics().arena_bytes, apart.arena_bytes);
}

}  // namespace
}  // namespace hlorun::passes
