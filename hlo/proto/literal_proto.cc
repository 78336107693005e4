#include "hlo/proto/literal_proto.h"

#include <cstring>
#include <numeric>

#include "hlo/error.h"
#include "hlo/proto/shape_proto.h"

namespace hlorun::hlo {
namespace {

using Message = proto::LiteralProto;
template <typename T>
using Repeated = google::protobuf::RepeatedField<T>;

// Where the elements of one type lie in the message, as bytes. Complex numbers are pairs in a field of reals.
struct Field {
  ElementType type;
  std::string_view (*read)(const Message&);
  void (*write)(std::string_view bytes, Message*);
};

template <typename T>
std::string_view BytesOfField(const Repeated<T>& field) {
  return {reinterpret_cast<const char*>(field.data()), static_cast<size_t>(field.size()) * sizeof(T)};
}

template <typename T>
void FillField(std::string_view bytes, Repeated<T>* field) {
  field->Resize(static_cast<int>(bytes.size() / sizeof(T)), T{});
  std::memcpy(field->mutable_data(), bytes.data(), bytes.size());
}

#define NUMBERS(type, field)                                                               \
  {                                                                                        \
    ElementType::type, [](const Message& m) { return BytesOfField(m.field()); },           \
        [](std::string_view bytes, Message* m) { FillField(bytes, m->mutable_##field()); } \
  }
#define BYTES(type, field)                                                                     \
  {                                                                                            \
    ElementType::type, [](const Message& m) { return std::string_view(m.field()); },           \
        [](std::string_view bytes, Message* m) { m->set_##field(bytes.data(), bytes.size()); } \
  }
constexpr Field kFields[] = {
    NUMBERS(kPred, preds),
    BYTES(kS8, s8s),
    BYTES(kS16, s16s),
    NUMBERS(kS32, s32s),
    NUMBERS(kS64, s64s),
    BYTES(kU8, u8s),
    BYTES(kU16, u16s),
    NUMBERS(kU32, u32s),
    NUMBERS(kU64, u64s),
    BYTES(kF16, f16s),
    NUMBERS(kF32, f32s),
    NUMBERS(kF64, f64s),
    NUMBERS(kC64, c64s),
    BYTES(kBF16, bf16s),
    NUMBERS(kC128, c128s),
    BYTES(kF8E5M2, f8e5m2s),
    BYTES(kF8E4M3FN, f8e4m3fns),
    BYTES(kS4, s4s),
    BYTES(kU4, u4s),
    BYTES(kF8E4M3B11FNUZ, f8e4m3b11fnuzs),
    BYTES(kF8E5M2FNUZ, f8e5m2fnuzs),
    BYTES(kF8E4M3FNUZ, f8e4m3fnuzs),
    BYTES(kS2, s2s),
    BYTES(kU2, u2s),
    BYTES(kF8E4M3, f8e4m3s),
    BYTES(kF8E3M4, f8e3m4s),
    BYTES(kS1, s1s),
    BYTES(kU1, u1s),
    BYTES(kF4E2M1FN, f4e2m1fns),
    BYTES(kF8E8M0FNU, f8e8m0fnus),
};
#undef NUMBERS
#undef BYTES

const Field& FieldOf(ElementType type) {
  for (const Field& field : kFields) {
    if (field.type == type) return field;
  }
  Invalid("a literal cannot hold elements of type {}", ElementTypeName(type));
}

// Visits the row-major linear index of each element in memory order of `layout`.
template <typename Visit>
void ForEachInLayoutOrder(const Shape& shape, const Layout& layout, const Visit& visit) {
  const Dims strides = shape.Strides();
  Dims dims, dim_strides;  // most major first
  for (auto it = layout.minor_to_major.rbegin(); it != layout.minor_to_major.rend(); ++it) {
    dims.push_back(shape.dimension(*it));
    dim_strides.push_back(strides[static_cast<size_t>(*it)]);
  }
  if (shape.ElementCount() == 0) return;
  Dims index(dims.size(), 0);
  do {
    visit(std::inner_product(index.begin(), index.end(), dim_strides.begin(), int64_t{0}));
  } while (NextIndex(index, dims));
}

bool IsPermuted(const Shape& shape) { return shape.has_layout() && !shape.layout()->IsRowMajor(); }

// Elements of 4 bits and less: a byte each, of which the low bits count, or packed, the first in the low bits.
void UnpackNarrow(std::string_view bytes, Literal* literal) {
  const int bits = BitsOf(literal->element_type());
  const bool is_signed = IsSigned(literal->element_type());
  const bool packed = static_cast<int64_t>(bytes.size()) != literal->ElementCount();
  const auto per_byte = static_cast<size_t>(packed ? 8 / bits : 1);
  auto* out = reinterpret_cast<uint8_t*>(literal->mutable_data());
  for (size_t i = 0; i < static_cast<size_t>(literal->ElementCount()); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i / per_byte]);
    auto value = static_cast<uint8_t>((byte >> (i % per_byte * static_cast<size_t>(bits))) & ((1u << bits) - 1));
    const bool negative = is_signed && (value >> (bits - 1)) != 0;
    if (negative) value = static_cast<uint8_t>(value | (0xFFu << bits));
    out[i] = value;
  }
}

void CheckSize(const Shape& shape, size_t bytes) {
  const auto full = static_cast<size_t>(shape.ByteSize());
  const int bits = BitsOf(shape.element_type());
  const auto packed = static_cast<size_t>((shape.ElementCount() * bits + 7) / 8);
  if (bytes != full && (bits >= 8 || bytes != packed)) {
    Invalid("a literal of {} must hold {} bytes, but holds {}", shape.ToString(false), full, bytes);
  }
}

Literal ToRowMajor(const Literal& in_layout_order, const Shape& shape) {
  Literal literal(shape);
  const auto width = static_cast<size_t>(BytesOf(shape.element_type()));
  const std::byte* from = in_layout_order.data();
  std::byte* to = literal.mutable_data();
  ForEachInLayoutOrder(shape, *shape.layout(), [&](int64_t linear) {
    std::memcpy(to + static_cast<size_t>(linear) * width, from, width);
    from += width;
  });
  return literal;
}

}  // namespace

Literal LiteralFromProto(const Message& message) {
  const Shape shape = ShapeFromProto(message.shape());
  if (shape.IsTuple()) {
    if (static_cast<size_t>(message.tuple_literals_size()) != shape.tuple_shapes().size()) {
      Invalid("a literal of {} holds {} elements", shape.ToString(false), message.tuple_literals_size());
    }
    std::vector<Literal> elements;
    for (const Message& element : message.tuple_literals()) elements.push_back(LiteralFromProto(element));
    Literal literal = Literal::Tuple(std::move(elements));
    if (!literal.shape().SameAs(shape)) {
      Invalid("a literal of {} holds {}", shape.ToString(false), literal.shape().ToString(false));
    }
    return literal;
  }
  if (shape.IsToken()) return Literal(shape);
  const std::string_view bytes = FieldOf(shape.element_type()).read(message);
  CheckSize(shape, bytes.size());
  Literal literal(shape);
  if (BitsOf(shape.element_type()) < 8) {
    UnpackNarrow(bytes, &literal);
  } else if (!bytes.empty()) {
    std::memcpy(literal.mutable_data(), bytes.data(), bytes.size());
  }
  return IsPermuted(shape) ? ToRowMajor(literal, shape) : literal;
}

void LiteralToProto(const Literal& literal, const Shape& shape, Message* message) {
  ShapeToProto(shape, message->mutable_shape());
  if (shape.IsTuple()) {
    for (size_t i = 0; i < literal.elements().size(); ++i) {
      LiteralToProto(literal.elements()[i], shape.tuple_shapes()[i], message->add_tuple_literals());
    }
    return;
  }
  if (shape.IsToken()) return;
  const auto width = static_cast<size_t>(BytesOf(shape.element_type()));
  const auto size = static_cast<size_t>(literal.ByteSize());
  std::string_view bytes(reinterpret_cast<const char*>(literal.data()), size);
  std::string scratch;
  if (IsPermuted(shape)) {
    scratch.reserve(size);
    ForEachInLayoutOrder(shape, *shape.layout(), [&](int64_t linear) {
      scratch.append(bytes.substr(static_cast<size_t>(linear) * width, width));
    });
    bytes = scratch;
  }
  const int bits = BitsOf(shape.element_type());
  if (bits < 8) {
    if (scratch.empty()) scratch = bytes;
    for (char& c : scratch) c = static_cast<char>(static_cast<uint8_t>(c) & ((1u << bits) - 1));
    bytes = scratch;
  }
  FieldOf(shape.element_type()).write(bytes, message);
}

}  // namespace hlorun::hlo
