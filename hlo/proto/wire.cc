#include "hlo/proto/wire.h"

#include <cstdint>
#include <optional>

#include "hlo/opcode.h"

namespace hlorun::hlo {
namespace {

// A cursor over the fields of one message in protocol buffer wire format.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view bytes) : bytes_(bytes) {}

  // Moves to the next field; false at the end, or where the bytes are no field.
  bool Next() {
    const std::optional<uint64_t> tag = Varint();
    if (!tag.has_value() || *tag >> 3 == 0 || *tag >> 3 > kMaxField) return false;
    number_ = static_cast<int>(*tag >> 3);
    value_ = {};
    switch (*tag & 7) {
      case 0: return Varint().has_value();
      case 1: return Skip(8);
      case 5: return Skip(4);
      case 2: {
        const std::optional<uint64_t> size = Varint();
        if (!size.has_value()) return false;
        value_ = bytes_.substr(at_, *size);  // what is there of it, if it is cut off
        at_ += value_.size();
        return true;
      }
      default: return false;
    }
  }
  int number() const { return number_; }
  std::string_view value() const { return value_; }  // of a length-delimited field

 private:
  static constexpr uint64_t kMaxField = 200;  // beyond all field numbers of HLO's messages

  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool Skip(size_t count) {
    if (bytes_.size() - at_ < count) return false;
    at_ += count;
    return true;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  int number_ = 0;
  std::string_view value_;
};

// The first length-delimited field `number` of a message.
std::optional<std::string_view> FirstField(std::string_view bytes, int number) {
  FieldCursor cursor(bytes);
  while (cursor.Next()) {
    if (cursor.number() == number && !cursor.value().empty()) return cursor.value();
  }
  return std::nullopt;
}

constexpr int kModuleComputations = 3;
constexpr int kComputationInstructions = 2;
constexpr int kInstructionOpcode = 2;
constexpr int kWrapped = 1;  // HloProto.hlo_module, HloSnapshot.hlo

bool LooksLikeModule(std::string_view bytes) {
  const auto computation = FirstField(bytes, kModuleComputations);
  if (!computation.has_value()) return false;
  const auto instruction = FirstField(*computation, kComputationInstructions);
  if (!instruction.has_value()) return false;
  const auto opcode = FirstField(*instruction, kInstructionOpcode);
  return opcode.has_value() && OpcodeFromName(*opcode).has_value();
}

}  // namespace

WireKind SniffWire(std::string_view bytes) {
  if (LooksLikeModule(bytes)) return WireKind::kModule;
  const auto inner = FirstField(bytes, kWrapped);
  if (!inner.has_value()) return WireKind::kUnknown;
  if (LooksLikeModule(*inner)) return WireKind::kHlo;
  const auto innermost = FirstField(*inner, kWrapped);
  return innermost.has_value() && LooksLikeModule(*innermost) ? WireKind::kSnapshot : WireKind::kUnknown;
}

}  // namespace hlorun::hlo
