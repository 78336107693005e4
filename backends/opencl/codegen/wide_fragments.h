// Matrix instructions of Hopper GPUs ("wgmma" of the PTX manual): 128 work-items, four sub-groups, multiply 64 rows of
// lhs by all columns of a tile, 16 of k at a time, both operands straight from local memory, while they go on. Their
// sums lie in registers that the compiler does not know of: they have names in the text of the kernel's PTX.
//
// They belong to a target ("sm_90a") that NVIDIA's OpenCL C does not compile for. But its binaries are PTX text, which
// it takes back with another target: so the instructions are written as comments, and runtime/marked_instructions makes
// them instructions. A driver that does otherwise refuses such programs: believed only after a probe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hlorun::opencl {

// In front of an instruction that is a comment as yet.
inline constexpr const char* kInstructionMark = "//@hlorun ";

// How an operand lies in local memory: a swizzled block (BlockShape) from a multiple of 1024 bytes on.
struct WideOperand {
  bool k_is_fastest = true;
  int64_t depth =
      64;  // of a block: 16, 32 or 64; its lines, along k, have as many elements, or else 64 of the other side
  bool operator==(const WideOperand&) const = default;

  std::string name() const { return (k_is_fastest ? "k" : "o") + std::to_string(depth); }
  // The constant part of a matrix descriptor: distances of pieces and of eights of lines, in units of 16 bytes, and the
  // swizzling mode of lines of 128, 64 or 32 bytes.
  std::string descriptor() const {
    const int64_t line = k_is_fastest ? 2 * depth : 128;
    const uint64_t mode = line == 128 ? 1 : line == 64 ? 2 : 3;
    const auto piece = static_cast<uint64_t>(k_is_fastest ? 1 : depth * 128 / 16);
    const auto eights = static_cast<uint64_t>(8 * line / 16);
    return std::to_string(piece << 16U | eights << 32U | mode << 62U) + "UL";
  }
};

// The functions of a kernel whose tiles have so many columns; of bf16, or else f16.
class WideFragments {
 public:
  WideFragments(bool is_bf16, int64_t columns, WideOperand lhs, WideOperand rhs)
      : type_(is_bf16 ? "bf16" : "f16"), columns_(columns), lhs_(lhs), rhs_(rhs) {}

  // (): names the registers. In the kernel's outermost block, once.
  std::string Begin() const { return "hl_wide_begin_" + std::to_string(columns_); }
  std::string BeginSource() const {
    std::string source =
        Head("void", Begin(), "void") + Asm(".reg .f32 " + Register("<" + std::to_string(sums()) + ">"));
    for (int64_t i = 0; i < sums(); ++i) source += Asm("mov.f32 " + Register(i) + ", 0f00000000");
    return source + "}\n";
  }

  // (ulong lhs, ulong rhs): begins to add the products of 16 of k from these addresses (ir::Address) on: where the
  // block's vectors would lie if none changed places.
  std::string Multiply() const {
    return "hl_wide_" + type_ + "_" + std::to_string(columns_) + "_" + lhs_.name() + "_" + rhs_.name();
  }
  std::string MultiplySource() const {
    std::string registers;
    for (int64_t i = 0; i < sums(); ++i) registers += (i == 0 ? "" : ",") + Register(i);
    const auto descriptor = [](const std::string& at, const WideOperand& operand) {
      return "\"l\"(" + operand.descriptor() + " | ((" + at + " >> 4) & 0x3fffUL))";
    };
    const auto turned = [](const WideOperand& operand) { return std::string(operand.k_is_fastest ? ", 0" : ", 1"); };
    return Head("void", Multiply(), "ulong lhs, ulong rhs") +
           MarkedAsm("{ .reg .pred p; setp.ne.b32 p, %2, 0; wgmma.mma_async.sync.aligned.m64n" +
                         std::to_string(columns_) + "k16.f32." + type_ + "." + type_ + " {" + registers +
                         "}, %0, %1, p, 1, 1" + turned(lhs_) + turned(rhs_) + "; }",
                     descriptor("lhs", lhs_) + ", " + descriptor("rhs", rhs_) + ", \"r\"(1)") +
           "}\n";
  }

  // (): in front of the first Multiply behind a barrier; behind the last one.
  static std::string Open() { return "hl_wide_open"; }
  static std::string OpenSource() {
    return Head("void", Open(), "void") + MarkedAsm("wgmma.fence.sync.aligned;", "") + "}\n";
  }
  static std::string Close() { return "hl_wide_close"; }
  static std::string CloseSource() {
    return Head("void", Close(), "void") + MarkedAsm("wgmma.commit_group.sync.aligned;", "") + "}\n";
  }
  // (): returns once all products are added; what was copied to local memory before is then seen by those that begin
  // behind a barrier.
  static std::string Wait() { return "hl_wide_wait"; }
  static std::string WaitSource() {
    return Head("void", Wait(), "void") + MarkedAsm("wgmma.wait_group.sync.aligned 0;", "") +
           Asm("fence.proxy.async.shared::cta") + "}\n";
  }

  // All of them, by name and source.
  std::vector<std::pair<std::string, std::string>> functions() const {
    std::vector<std::pair<std::string, std::string>> all = {{Begin(), BeginSource()},
                                                            {Multiply(), MultiplySource()},
                                                            {Open(), OpenSource()},
                                                            {Close(), CloseSource()},
                                                            {Wait(), WaitSource()}};
    for (int64_t eight = 0; 8 * eight < columns_; ++eight) all.emplace_back(Sums(eight), SumsSource(eight));
    return all;
  }

  // (): of each eight columns, sums of rows g and g + 8 of a sub-group's 16, two each, as kFragmentBf16 has them.
  static std::string Sums(int64_t eight) { return "hl_wide_sums_" + std::to_string(eight); }
  static std::string SumsSource(int64_t eight) {
    std::string source = Head("float4", Sums(eight), "void") + "  float4 s;\n";
    for (int64_t i = 0; i < 4; ++i)
      source += "  __asm__ volatile(\"mov.f32 %0, " + Register(4 * eight + i) + ";\" : \"=f\"(s.s" + std::to_string(i) +
                "));\n";
    return source + "  return s;\n}\n";
  }

 private:
  int64_t sums() const { return columns_ / 2; }  // of a work-item
  static std::string Register(const std::string& which) { return "hl_wide_sum" + which; }
  static std::string Register(int64_t which) { return Register(std::to_string(which)); }
  static std::string Head(const std::string& type, const std::string& name, const std::string& parameters) {
    return "static inline __attribute__((always_inline)) " + type + " " + name + "(" + parameters + ") {\n";
  }
  static std::string Asm(const std::string& instruction) {
    return "  __asm__ volatile(\"" + instruction + ";\" : : : \"memory\");\n";
  }
  static std::string MarkedAsm(const std::string& instruction, const std::string& operands) {
    return "  __asm__ volatile(\"" + std::string(kInstructionMark) + instruction + "\" : : " + operands +
           " : \"memory\");\n";
  }

  std::string type_;
  int64_t columns_;
  WideOperand lhs_, rhs_;
};

}  // namespace hlorun::opencl
