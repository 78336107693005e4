#include "hlo/text/literal_text.h"

#include <charconv>
#include <cstring>
#include <limits>

#include "hlo/number_types.h"
#include "hlo/text/printer.h"

namespace hlorun::hlo {
namespace {

template <typename T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

int MantissaBits(ElementType type) {
  switch (type) {
    case ElementType::kF64: return 52;
    case ElementType::kF32: return 23;
    case ElementType::kF16: return 10;
    case ElementType::kBF16: return 7;
    default: return NarrowFormatOf(type).mantissa_bits;
  }
}

// An integer of as many bits as T, to look at a float's representation.
template <typename T>
using BitsOfT = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// The type's NaN with the given sign and payload, where the type has room for them.
template <typename T, ElementType kType>
T MakeNan(bool negative, std::optional<uint64_t> payload) {
  T nan;
  if constexpr (std::is_same_v<T, double>) {
    nan = std::numeric_limits<double>::quiet_NaN();
  } else {
    nan = T(std::numeric_limits<float>::quiet_NaN());
  }
  using Bits = BitsOfT<T>;
  Bits bits;
  std::memcpy(&bits, &nan, sizeof bits);
  constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
  // Only formats with an infinity have more than one NaN pattern.
  bool has_room = true;
  bool is_signed = true;
  if constexpr (sizeof(T) == 1) {
    const NarrowFormat& format = NarrowFormatOf(kType);
    has_room = format.has_infinity;
    is_signed = !format.is_fnuz && !format.is_unsigned;
  }
  if (is_signed) {
    const Bits sign = static_cast<Bits>(Bits{1} << (kBits - 1));
    bits = static_cast<Bits>(negative ? bits | sign : bits & ~sign);
  }
  if (payload && has_room) {
    const Bits mask = static_cast<Bits>((Bits{1} << MantissaBits(kType)) - 1);
    bits = static_cast<Bits>((bits & ~mask) | (static_cast<Bits>(*payload) & mask));
  }
  std::memcpy(static_cast<void*>(&nan), &bits, sizeof bits);
  return nan;
}

template <typename T>
double ToDouble(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

// Reads the elements of one array.
template <typename T, ElementType kType>
class ElementReader {
 public:
  explicit ElementReader(Lexer& lexer) : lexer_(lexer) {}

  T Read() {
    if constexpr (kIsComplex<T>) {
      using Real = typename T::value_type;
      lexer_.Expect('(', "'(' of a complex number");
      const Real real = ReadReal<Real, RealOf()>();
      lexer_.Expect(',', "',' between the parts of a complex number");
      const Real imaginary = ReadReal<Real, RealOf()>();
      lexer_.Expect(')', "')' of a complex number");
      return T(real, imaginary);
    } else if constexpr (kType == ElementType::kPred) {
      return lexer_.ExpectBool("true, false, 1 or 0");
    } else if constexpr (std::is_integral_v<T>) {
      return ReadInteger();
    } else {
      return ReadReal<T, kType>();
    }
  }

 private:
  static constexpr ElementType RealOf() { return kType == ElementType::kC128 ? ElementType::kF64 : ElementType::kF32; }

  T ReadInteger() {
    if (lexer_.Peek().kind != TokenKind::kWord) lexer_.FailExpected("an integer");
    const std::string_view word = lexer_.Peek().text;
    using Wide = std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>;
    Wide value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool whole = end == word.data() + word.size();
    bool fits = error == std::errc();
    if constexpr (!std::is_same_v<T, uint64_t>) {
      fits = fits && WrapInteger(kType, value) == value;
    }
    const bool negative_unsigned = std::is_unsigned_v<T> && !word.empty() && word.front() == '-' && word.size() > 1;
    if (!whole && !negative_unsigned) lexer_.FailExpected("an integer");
    if (!fits || negative_unsigned) {
      lexer_.FailHere(fmt::format("{} is out of the range of {}", word, ElementTypeName(kType)));
    }
    lexer_.Next();
    return static_cast<T>(value);
  }

  template <typename Real, ElementType kRealType>
  Real ReadReal() {
    if (lexer_.Peek().kind != TokenKind::kWord) lexer_.FailExpected("a number");
    const std::string_view word = lexer_.Peek().text;
    if (word == "nan" || word == "-nan") return ReadNan<Real, kRealType>();
    if (word == "inf" || word == "-inf") {
      lexer_.Next();
      const double infinity = std::numeric_limits<double>::infinity();
      return Real(static_cast<Narrowed<Real>>(word.front() == '-' ? -infinity : infinity));
    }
    const std::optional<double> value = ParseDouble(word);
    // "infinity" and "nan(...)" are from_chars's, not HLO's.
    const bool is_number = value && word.find('n') == std::string_view::npos;
    if (!is_number) lexer_.FailExpected("a number");
    const Real result = Real(static_cast<Narrowed<Real>>(*value));
    if (!std::isfinite(ToDouble(result))) {
      lexer_.FailHere(fmt::format("{} is out of the range of {}", word, ElementTypeName(kRealType)));
    }
    lexer_.Next();
    return result;
  }

  template <typename Real>
  using Narrowed = std::conditional_t<std::is_same_v<Real, double>, double, float>;

  template <typename Real, ElementType kRealType>
  Real ReadNan() {
    const bool negative = lexer_.Next().text.front() == '-';
    std::optional<uint64_t> payload;
    if (lexer_.Accept('(')) {
      std::string_view digits = lexer_.ExpectWord("the NaN's payload as 0x...");
      uint64_t value = 0;
      const bool hex = digits.starts_with("0x");
      if (hex) digits.remove_prefix(2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
      if (error != std::errc() || end != digits.data() + digits.size())
        lexer_.FailHere("the NaN's payload is no number");
      // A payload of zero would be infinity.
      if (value == 0 || value >> MantissaBits(kRealType) != 0) {
        lexer_.FailHere(
            fmt::format("a NaN of {} has no payload {}{}", ElementTypeName(kRealType), hex ? "0x" : "", digits));
      }
      payload = value;
      lexer_.Expect(')', "')' behind the NaN's payload");
    }
    return MakeNan<Real, kRealType>(negative, payload);
  }

  Lexer& lexer_;
};

// Reads { {1, 2}, {3, 4} } without recursion: `counts` holds how many elements each open brace has seen.
template <typename T, ElementType kType>
void ReadArray(Lexer& lexer, const Shape& shape, T* out) {
  ElementReader<T, kType> reader(lexer);
  const auto rank = static_cast<size_t>(shape.rank());
  if (rank == 0) {
    *out = reader.Read();
    return;
  }
  std::vector<int64_t> counts;
  const Dims& dims = shape.dimensions();
  do {
    if (lexer.Is('}') && !counts.empty()) {
      const size_t open = counts.size() - 1;
      if (counts[open] != dims[open]) {
        lexer.FailHere(fmt::format("expected {} elements in dimension {} of {}, but found {}", dims[open], open,
                                   shape.ToString(false), counts[open]));
      }
      counts.pop_back();
      if (!counts.empty()) ++counts.back();
      lexer.Next();
      if (!counts.empty()) lexer.Accept(',');
      continue;
    }
    if (!counts.empty() && counts.back() >= dims[counts.size() - 1]) {
      lexer.FailExpected(fmt::format("'}}' after the {} elements of dimension {} of {}", dims[counts.size() - 1],
                                     counts.size() - 1, shape.ToString(false)));
    }
    if (counts.size() < rank) {
      lexer.Expect('{',
                   fmt::format("'{{' of dimension {} of a constant of shape {}", counts.size(), shape.ToString(false)));
      counts.push_back(0);
      continue;
    }
    *out++ = reader.Read();
    ++counts.back();
    if (!lexer.Is('}')) lexer.Expect(',', "',' or '}' in a constant");
  } while (!counts.empty());
}

bool AcceptElision(Lexer& lexer) {
  if (!lexer.Is('{')) return false;
  Lexer ahead = lexer;
  ahead.Next();
  if (!ahead.AcceptWord("...")) return false;
  ahead.Expect('}', "'}' of an elided constant");
  lexer = ahead;
  return true;
}

constexpr std::string_view kElidedMessage =
    "the exporter has elided this constant's value: export again with large constants kept (XLA: "
    "XLA_FLAGS=--xla_dump_large_constants, or print_large_constants=True in HloPrintOptions for to_string), or pass "
    "--fill_elided to run with made-up values";

}  // namespace

Literal ElidedValues::Make(const Shape& shape) {
  Literal literal(shape);
  const auto bytes = static_cast<size_t>(literal.ByteSize());
  std::byte* data = literal.mutable_data();
  const bool pred = shape.element_type() == ElementType::kPred;
  for (size_t i = 0; i < bytes / 4; ++i) {
    const uint32_t value = pred ? word_ % 2 : word_;
    std::memcpy(data + 4 * i, &value, 4);
    ++word_;
  }
  for (size_t i = 0; i < bytes % 4; ++i) {
    data[bytes / 4 + i] = std::byte{pred ? static_cast<uint8_t>(byte_ % 2) : byte_};
    ++byte_;
  }
  if (IsInteger(shape.element_type()) && BitsOf(shape.element_type()) < 8) {
    for (int64_t i = 0; i < literal.ElementCount(); ++i) literal.SetInt(i, static_cast<int64_t>(data[i]));
  }
  return literal;
}

Literal ReadLiteral(Lexer& lexer, const Shape& shape, ElidedValues* elided) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    lexer.Expect('(', "'(' of a tuple constant");
    for (const Shape& element : shape.tuple_shapes()) {
      if (!elements.empty()) lexer.Expect(',', "',' between the elements of a tuple constant");
      elements.push_back(ReadLiteral(lexer, element, elided));
    }
    lexer.Expect(')', "')' of a tuple constant");
    return Literal::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) lexer.FailHere(fmt::format("a constant cannot have shape {}", shape.ToString(false)));
  const size_t start = lexer.offset();
  if (AcceptElision(lexer)) {
    if (elided == nullptr) lexer.FailAt(start, std::string(kElidedMessage));
    return elided->Make(shape);
  }
  // An element takes a character at least, so that a short text cannot ask for terabytes.
  if (shape.ElementCount() > static_cast<int64_t>(lexer.text().size())) {
    lexer.FailHere(
        fmt::format("this text is too short for the {} elements of {}", shape.ElementCount(), shape.ToString(false)));
  }
  Literal literal(shape);
  VisitType(shape.element_type(), [&]<typename T, ElementType kType>() {
    ReadArray<T, kType>(lexer, shape, reinterpret_cast<T*>(literal.mutable_data()));
  });
  return literal;
}

namespace {

std::string FormatDigits(double value, int digits) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits);
  return std::string(buffer, end);
}

// Decimal digits that tell all values of the type apart.
int RoundTripDigits(ElementType type) {
  return static_cast<int>(std::ceil(1 + (MantissaBits(type) + 1) * 0.30102999566398120));
}

template <typename T, ElementType kType>
void AppendReal(std::string& text, T value) {
  const double wide = ToDouble(value);
  if (!std::isnan(wide)) {
    text += FormatReal(kType, wide);
    return;
  }
  BitsOfT<T> bits, plain;
  std::memcpy(&bits, &value, sizeof bits);
  const T nan = MakeNan<T, kType>(false, std::nullopt);
  std::memcpy(&plain, &nan, sizeof plain);
  const auto mask = static_cast<BitsOfT<T>>((BitsOfT<T>{1} << MantissaBits(kType)) - 1);
  text += bits >> (sizeof(T) * 8 - 1) != plain >> (sizeof(T) * 8 - 1) ? "-nan" : "nan";
  if ((bits & mask) != (plain & mask)) text += fmt::format("(0x{:x})", static_cast<uint64_t>(bits & mask));
}

template <typename T, ElementType kType>
void AppendElement(std::string& text, T value) {
  if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    constexpr ElementType kReal = std::is_same_v<Real, double> ? ElementType::kF64 : ElementType::kF32;
    text += '(';
    AppendReal<Real, kReal>(text, value.real());
    text += ", ";
    AppendReal<Real, kReal>(text, value.imag());
    text += ')';
  } else if constexpr (kType == ElementType::kPred) {
    text += value ? '1' : '0';
  } else if constexpr (std::is_integral_v<T>) {
    char buffer[24];
    if constexpr (std::is_signed_v<T>) {
      text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, static_cast<int64_t>(value)).ptr);
    } else {
      text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, static_cast<uint64_t>(value)).ptr);
    }
  } else {
    AppendReal<T, kType>(text, value);
  }
}

// XLA's spacing: {1, 2}, { { 1, 2 }, { 3, 4 } } and { {1}, {2} }; from rank four on, blocks say their index: { /*i0=0*/
// { ...
template <typename T, ElementType kType>
class ArrayWriter {
 public:
  ArrayWriter(std::string& text, const Shape& shape, const T* values)
      : text_(text), dims_(shape.dimensions()), values_(values) {}

  // `index` is this block's, in the dimension before.
  void Write(size_t dimension, int64_t index) {
    if (dimension == dims_.size()) {
      AppendElement<T, kType>(text_, *values_++);
      return;
    }
    const bool innermost = dimension + 1 == dims_.size();
    if (innermost && dims_[dimension] == 0) {
      text_ += "{}";
      return;
    }
    const bool spaced = dims_.size() > 1 && !(innermost && dims_[dimension] == 1);
    text_ += spaced ? "{ " : "{";
    if (dims_.size() > 3 && dimension > 0 && !innermost) text_ += fmt::format("/*i{}={}*/ ", dimension - 1, index);
    for (int64_t i = 0; i < dims_[dimension]; ++i) {
      if (i > 0) text_ += ", ";
      Write(dimension + 1, i);
    }
    text_ += spaced ? " }" : "}";
  }

 private:
  std::string& text_;
  const Dims& dims_;
  const T* values_;
};

}  // namespace

std::string FormatReal(ElementType type, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // XLA prints "-0", but reads that as an integer without a sign; both read "-0.0" as it is meant.
  if (value == 0 && std::signbit(value)) return "-0.0";
  if (type != ElementType::kF32 && type != ElementType::kF64) return FormatDigits(value, RoundTripDigits(type));
  // The short form where it reads back to the same number, else all digits.
  const bool is_double = type == ElementType::kF64;
  std::string text = FormatDigits(value, is_double ? 15 : 6);
  const double back = *ParseDouble(text);
  if (is_double ? back == value : static_cast<float>(back) == static_cast<float>(value)) return text;
  return FormatDigits(value, is_double ? 17 : 9);
}

std::string PrintLiteral(const Literal& literal) {
  const Shape& shape = literal.shape();
  if (shape.IsTuple()) {
    std::string text = "( ";
    for (const Literal& element : literal.elements()) {
      if (text.size() > 2) text += ", ";
      text += PrintLiteral(element);
    }
    return text + " )";
  }
  std::string text;
  VisitType(shape.element_type(), [&]<typename T, ElementType kType>() {
    const T* values = reinterpret_cast<const T*>(literal.data());
    if (kType == ElementType::kPred && shape.rank() == 0) {
      text = literal.GetInt(0) != 0 ? "true" : "false";
      return;
    }
    ArrayWriter<T, kType>(text, shape, values).Write(0, 0);
  });
  return text;
}

}  // namespace hlorun::hlo
