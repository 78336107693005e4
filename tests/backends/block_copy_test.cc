// Blocks of an operand on their way through local memory: each element in its place, zeros beyond the matrix, and of
// two buffers the one that keeps the block before.
#include "backends/opencl/kernels/block_copy.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "backends/opencl/kernels/index_math.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {
namespace {

constexpr int64_t kOuter = 13, kDepth = 22;  // the matrix
constexpr int64_t kItems = 24, kWidth = 16, kBlockDepth = 8, kBlocks = 3;

struct Blocks {
  bool k_is_fastest;
  int64_t buffers;
  bool block_has_k_fastest;
};

TiledOperand Matrix(bool k_is_fastest) {
  TiledOperand operand;
  operand.argument = {.kind = ArgumentRef::Kind::kOperand, .number = 0};
  operand.elements = kOuter * kDepth;
  operand.place = [k_is_fastest](const ir::Expr&, const ir::Expr& outer, const ir::Expr& k) {
    return ElementPlace{k_is_fastest ? outer * kDepth + k : k * kOuter + outer, nullptr};
  };
  operand.k_is_fastest = k_is_fastest;
  operand.run = k_is_fastest ? 2 : 1;
  return operand;
}

// Block after block, result 0 gets what the block's buffer holds, and result 1 what the buffer of the one before it
// still holds.
EmittedLaunch CopyBlocks(const Blocks& blocks, const EmitContext& context) {
  const TiledOperand operand = Matrix(blocks.k_is_fastest);
  KernelParameters parameters;
  const auto result = [&](int64_t number) {
    return parameters.Add("out" + std::to_string(number), hlo::ElementType::kF32, kBlocks * kBlockDepth * kWidth,
                          {.kind = ArgumentRef::Kind::kResult, .number = number, .written = true});
  };
  const ir::BufferRef current = result(0), before = result(1);
  const BlockCopy copy("lhs", operand, parameters.Add("in", hlo::ElementType::kF32, operand.elements, operand.argument),
                       {kWidth, kBlockDepth, kItems, blocks.buffers, blocks.block_has_k_fastest},
                       hlo::ElementType::kF32);
  const auto for_items = [](const std::function<ir::Stmt(const ir::Expr&)>& body) {
    const ir::Var item = IndexVar("item", kItems);
    return ir::For(ir::LoopRole::kVector, item, Index(0), Index(kItems), body(ir::Ref(item)));
  };
  const ir::Var k = IndexVar("k", kBlocks * kBlockDepth), group = IndexVar("group", 1);
  k->factor = kBlockDepth;
  const auto load = [&](const ir::Expr& at) {
    return for_items([&](const ir::Expr& item) { return copy.Load(item, {Index(0), Index(0), at}, kOuter, kDepth); });
  };
  const ir::Stmt read = for_items([&](const ir::Expr& item) {
    const ir::Var i = IndexVar("i", kWidth * kBlockDepth);
    const ir::Expr at = copy.Place(Remainder(ir::Ref(i), kWidth), Quotient(ir::Ref(i), kWidth));
    const ir::Expr to = ir::Ref(k) * kWidth + ir::Ref(i);
    const auto stored = [&](const ir::BufferRef& out, const ir::Expr& block) {
      return ir::Store(out, to, ir::Load(copy.block(), copy.Buffer(block) + at));
    };
    return ir::For(ir::LoopRole::kSerial, i, item, Index(kWidth * kBlockDepth),
                   ir::Block({stored(current, ir::Ref(k)), stored(before, ir::Ref(k) + kBlockDepth)}), kItems);
  });
  const ir::Stmt store = for_items([&](const ir::Expr& item) { return copy.Store(item, ir::Ref(k)); });
  const ir::Stmt block = ir::Block({store, ir::Barrier(), load(ir::Ref(k) + kBlockDepth), read, ir::Barrier()});
  const ir::Stmt body =
      ir::Block({copy.Declare(), load(Index(0)),
                 ir::For(ir::LoopRole::kSerial, k, Index(0), Index(kBlocks * kBlockDepth), block, kBlockDepth)});
  KernelDraft draft = MakeDraft(
      "copy_blocks", parameters,
      ir::Block({ir::DeclareArray(copy.block()), ir::For(ir::LoopRole::kParallel, group, Index(0), Index(1), body)}));
  draft.function.group_items = kItems;
  return MakeLaunch(draft, context);
}

void ExpectBlocks(const Blocks& blocks) {
  SCOPED_TRACE(::testing::Message() << "k fastest " << blocks.k_is_fastest << ", buffers " << blocks.buffers
                                    << ", in the block " << blocks.block_has_k_fastest);
  static LaunchRunner runner;
  DeviceSpec spec = runner.spec();
  spec.device_class = DeviceClass::kGpu;
  std::vector<float> in(kOuter * kDepth);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i + 1);
  std::vector<float> current(kBlocks * kBlockDepth * kWidth, -1), before = current;
  runner.Run({CopyBlocks(blocks, {spec, {}})}, {in.data()}, {current.data(), before.data()}, nullptr);
  const auto element = [&](int64_t k, int64_t outer) {
    if (outer >= kOuter || k >= kDepth) return 0.0F;
    return in[static_cast<size_t>(blocks.k_is_fastest ? outer * kDepth + k : k * kOuter + outer)];
  };
  for (int64_t k = 0; k < kBlocks * kBlockDepth; ++k) {
    for (int64_t outer = 0; outer < kWidth; ++outer) {
      const auto at = static_cast<size_t>(k * kWidth + outer);
      ASSERT_EQ(current[at], element(k, outer)) << k << ", " << outer;
      // Buffer number (block + 1) % 2 is that of the block before.
      if (k < kBlockDepth) continue;
      ASSERT_EQ(before[at], element(blocks.buffers == 2 ? k - kBlockDepth : k, outer)) << k << ", " << outer;
    }
  }
}

TEST(BlockCopy, EachBlockInOneBufferOrInTwoInTurn) {
  for (const bool k_is_fastest : {false, true}) {
    for (const int64_t buffers : {1, 2}) {
      for (const bool block_has_k_fastest : {false, true}) ExpectBlocks({k_is_fastest, buffers, block_has_k_fastest});
    }
  }
}

// Of a swizzled block each element has a place of its own, and the vectors that work-items next to each other load, of
// a column of vectors or of a line, lie in different banks.
TEST(BlockCopy, SwizzledVectorsLieInDifferentBanks) {
  constexpr int64_t kVector = 4, kVectorsOfBanks = 8;  // words
  struct Sides {
    int64_t width, depth;
  };
  for (const Sides sides : {Sides{64, 32}, {64, 16}, {64, 8}, {128, 32}, {32, 64}}) {
    for (const bool k_is_fastest : {true, false}) {
      const BlockShape shape{sides.width, sides.depth, 32, 2, k_is_fastest, true};
      TiledOperand operand = Matrix(k_is_fastest);
      operand.run = kVector;
      const BlockCopy copy("lhs", operand, ir::MakeBuffer("in", hlo::ElementType::kU32, operand.elements), shape,
                           hlo::ElementType::kU32, "copy");
      const int64_t lines = k_is_fastest ? sides.width : sides.depth, length = sides.width * sides.depth / lines;
      const auto place = [&](int64_t line, int64_t along) {
        return (k_is_fastest ? copy.Place(Index(line), Index(along)) : copy.Place(Index(along), Index(line)))->integer;
      };
      std::set<int64_t> places;
      for (int64_t line = 0; line < lines; ++line) {
        for (int64_t along = 0; along < length; ++along) {
          EXPECT_EQ(place(line, along), place(line, along / kVector * kVector) + along % kVector);
          places.insert(place(line, along));
        }
      }
      EXPECT_EQ(static_cast<int64_t>(places.size()), lines * length);
      EXPECT_EQ(*places.rbegin(), lines * length - 1);
      for (int64_t along = 0; along < length; along += kVector) {
        std::set<int64_t> banks;
        for (int64_t line = 0; line < kVectorsOfBanks; ++line)
          banks.insert(place(line, along) / kVector % kVectorsOfBanks);
        EXPECT_EQ(static_cast<int64_t>(banks.size()), kVectorsOfBanks) << sides.width << " x " << sides.depth;
      }
    }
  }
}

}  // namespace
}  // namespace hlorun::opencl
