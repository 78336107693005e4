#include "backends/opencl/runtime/marked_instructions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlorun::opencl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What NVIDIA's driver gives as a binary (580.159), in short.
TEST(MarkedInstructions, BecomeInstructionsOfTheirTarget) {
  const std::string ptx =
      ".version 9.0\n.target sm_90, texmode_independent\n.entry k(\n)\n{\n"
      "\t// begin inline asm\n\t//@hlorun wgmma.fence.sync.aligned;\n\t// end inline asm\n"
      "\t//@hlorun wgmma.commit_group.sync.aligned;\n}\n";
  EXPECT_EQ(WithMarkedInstructions(ptx + '\0'),
            ".version 9.0\n.target sm_90a, texmode_independent\n.entry k(\n)\n{\n"
            "\t// begin inline asm\n\twgmma.fence.sync.aligned;\n\t// end inline asm\n"
            "\twgmma.commit_group.sync.aligned;\n}\n");
}

TEST(MarkedInstructions, ATargetThatHasThemStays) {
  EXPECT_EQ(WithMarkedInstructions(".target sm_90a\n"), ".target sm_90a\n");
  EXPECT_EQ(WithMarkedInstructions(".target sm_80\n"), ".target sm_80\n");  // its assembler refuses them
}

// All that a device does not compile for is a comment to its compiler, and one line.
TEST(MarkedInstructions, OfWideFragments) {
  const WideFragments functions(true, 64, {true, 64}, {false, 32});
  EXPECT_EQ(functions.Multiply(), "hl_wide_bf16_64_k64_o32");
  const std::string source = functions.MultiplySource();
  EXPECT_THAT(source, HasSubstr("__asm__ volatile(\"//@hlorun { .reg .pred p; setp.ne.b32 p, %2, 0; wgmma."));
  EXPECT_THAT(source, HasSubstr("m64n64k16.f32.bf16.bf16 {hl_wide_sum0,hl_wide_sum1,"));
  EXPECT_THAT(source, HasSubstr(",hl_wide_sum31}, %0, %1, p, 1, 1, 0, 1; }"));
  EXPECT_THAT(source, Not(HasSubstr("hl_wide_sum32")));
  EXPECT_THAT(WideFragments::WaitSource(), HasSubstr("\"//@hlorun wgmma.wait_group.sync.aligned 0;\""));
}

// "Matrix descriptor format" of the PTX manual: distances over 16 from bits 16 and 32 on, the swizzling mode in 62 and
// 63 (1: lines of 128 bytes, 2: 64, 3: 32).
TEST(MarkedInstructions, DescriptorsOfOperands) {
  const auto descriptor = [](bool k_is_fastest, int64_t depth) {
    const std::string text = WideOperand{k_is_fastest, depth}.descriptor();
    return std::stoull(text.substr(0, text.size() - 2));
  };
  const auto expected = [](uint64_t piece, uint64_t eights, uint64_t mode) {
    return piece / 16 << 16U | eights / 16 << 32U | mode << 62U;
  };
  EXPECT_EQ(descriptor(true, 64), expected(16, 1024, 1));
  EXPECT_EQ(descriptor(true, 32), expected(16, 512, 2));
  EXPECT_EQ(descriptor(true, 16), expected(16, 256, 3));
  EXPECT_EQ(descriptor(false, 64), expected(8192, 1024, 1));
  EXPECT_EQ(descriptor(false, 16), expected(2048, 1024, 1));
}

}  // namespace
}  // namespace hlorun::opencl
