#include "driver/arrays/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "driver/arrays/bounds.h"
#include "hlo/error.h"
#include "hlo/reader.h"

namespace hlorun {
namespace {

using hlo::ElementType;

constexpr std::string_view kMagic("\x93NUMPY", 6);

// The text after `'key':` in the header's dictionary, up to the end of the value.
std::string_view HeaderValue(std::string_view header, std::string_view key, const std::string& name) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    const size_t at = header.find(quoted);
    if (at == std::string_view::npos) continue;
    size_t begin = header.find(':', at + quoted.size());
    if (begin == std::string_view::npos) break;
    begin = header.find_first_not_of(' ', begin + 1);
    if (begin == std::string_view::npos) break;
    const char first = header[begin];
    size_t end = std::string_view::npos;
    if (first == '(') end = header.find(')', begin);
    if (first == '\'' || first == '"') end = header.find(first, begin + 1);
    if (first == '[') Invalid("{}: structured arrays are not supported; save a plain array", name);
    if (first != '(' && first != '\'' && first != '"') end = header.find_first_of(",}", begin) - 1;
    if (end == std::string_view::npos) break;
    return header.substr(begin, end - begin + 1);
  }
  Invalid("{}: not a valid .npy file: its header has no {}", name, key);
}

void ParseDescr(std::string_view descr, NpyArray& array, const std::string& name) {
  if (descr.size() >= 2) descr = descr.substr(1, descr.size() - 2);  // quotes
  if (descr.size() < 2) Invalid("{}: cannot read the type \"{}\"", name, descr);
  if (descr[0] == '<' || descr[0] == '>' || descr[0] == '|' || descr[0] == '=') {
    array.big_endian = descr[0] == '>';
    descr.remove_prefix(1);
  }
  array.kind = descr.empty() ? '?' : descr[0];
  const std::string_view digits = descr.substr(std::min<size_t>(1, descr.size()));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), array.item_bytes);
  if (error != std::errc{} || end != digits.data() + digits.size() || array.item_bytes < 1 || array.item_bytes > 16 ||
      std::string_view("biufcV").find(array.kind) == std::string_view::npos) {
    Invalid("{}: elements of type \"{}\" are not numbers", name, descr);
  }
}

void ParseShapeTuple(std::string_view tuple, NpyArray& array, const std::string& name) {
  tuple = tuple.substr(1, tuple.size() - 2);
  while (true) {
    while (!tuple.empty() && (tuple.front() == ' ' || tuple.front() == ',')) tuple.remove_prefix(1);
    if (tuple.empty()) return;
    int64_t dimension = 0;
    const auto [end, error] = std::from_chars(tuple.data(), tuple.data() + tuple.size(), dimension);
    if (error != std::errc{} || dimension < 0) Invalid("{}: cannot read the array's shape", name);
    array.dimensions.push_back(dimension);
    tuple.remove_prefix(static_cast<size_t>(end - tuple.data()));
    if (!tuple.empty() && tuple.front() == 'L') tuple.remove_prefix(1);
  }
}

void SwapBytes(std::string& bytes, int width) {
  for (size_t i = 0; i + static_cast<size_t>(width) <= bytes.size(); i += static_cast<size_t>(width)) {
    std::reverse(bytes.begin() + static_cast<int64_t>(i), bytes.begin() + static_cast<int64_t>(i) + width);
  }
}

std::string FortranToC(const NpyArray& array) {
  const auto width = static_cast<size_t>(array.item_bytes);
  std::string out(array.bytes.size(), '\0');
  hlo::Dims strides(array.dimensions.size(), 1);
  for (size_t d = 1; d < strides.size(); ++d) strides[d] = strides[d - 1] * array.dimensions[d - 1];
  hlo::Dims index(array.dimensions.size(), 0);
  if (out.empty()) return out;
  size_t to = 0;
  do {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d) from += index[d] * strides[d];
    std::memcpy(out.data() + to, array.bytes.data() + static_cast<size_t>(from) * width, width);
    to += width;
  } while (hlo::NextIndex(index, array.dimensions));
  return out;
}

struct NumpyType {
  char kind;
  int bytes;
};

// How NumPy stores an element type ('V' where it has none of that name).
NumpyType NumpyTypeOf(ElementType type) {
  const int bytes = hlo::BytesOf(type);
  switch (hlo::ClassOf(type)) {
    case hlo::TypeClass::kPredicate: return {'b', 1};
    case hlo::TypeClass::kSigned: return {'i', bytes};
    case hlo::TypeClass::kUnsigned: return {'u', bytes};
    case hlo::TypeClass::kComplex: return {'c', bytes};
    default:
      if (type == ElementType::kBF16) return {'V', 2};
      return {bytes == 1 ? 'u' : 'f', bytes};
  }
}

bool SameStorage(const NpyArray& array, ElementType type) {
  const NumpyType wanted = NumpyTypeOf(type);
  if (array.item_bytes != wanted.bytes) return false;
  if (array.kind == wanted.kind) return true;
  if (wanted.bytes == 1) {
    // A byte of any name for the types that NumPy lacks; true bytes and booleans only among themselves.
    return type != ElementType::kPred && array.kind != 'b' &&
           (array.kind == 'V' || hlo::BitsOf(type) < 8 || hlo::IsFloating(type));
  }
  return array.kind == 'V';
}

// Bytes of types that have fewer values than a byte: NumPy's booleans are true unless 0, and ml_dtypes leaves the high
// bits of its narrow integers (kind 'V') open.
void NarrowBytes(const NpyArray& array, const hlo::Shape& shape, std::string& bytes) {
  const ElementType type = shape.element_type();
  const int bits = type == ElementType::kPred ? 1 : hlo::BitsOf(type);
  if (bits >= 8 || hlo::BytesOf(type) != 1) return;
  const bool is_signed = hlo::ClassOf(type) == hlo::TypeClass::kSigned;
  const int least = is_signed ? -(1 << (bits - 1)) : 0, most = least + (1 << bits) - 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    int value = is_signed ? static_cast<signed char>(bytes[i]) : static_cast<unsigned char>(bytes[i]);
    if (array.kind == 'b') value = value != 0 ? 1 : 0;
    if (array.kind == 'V') {
      value &= (1 << bits) - 1;
      if (value > most) value -= 1 << bits;
    }
    if (value < least || value > most)
      Invalid("element {} is {}, which does not fit {}", i, value, hlo::ElementTypeName(type));
    bytes[i] = static_cast<char>(value);
  }
}

bool NarrowIntegers(const NpyArray& array, ElementType type, std::string& bytes) {
  const bool to_signed = type == ElementType::kS32 && array.kind == 'i' && array.item_bytes == 8;
  const bool to_unsigned = type == ElementType::kU32 && array.kind == 'u' && array.item_bytes == 8;
  if (!to_signed && !to_unsigned) return false;
  const size_t count = bytes.size() / 8;
  std::string narrow(count * 4, '\0');
  for (size_t i = 0; i < count; ++i) {
    uint64_t wide = 0;
    std::memcpy(&wide, bytes.data() + i * 8, 8);
    const auto low = static_cast<uint32_t>(wide);
    const uint64_t back = to_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(low))) : low;
    if (back != wide) {
      Invalid("element {} is {}, which does not fit {}", i,
              to_signed ? fmt::format("{}", static_cast<int64_t>(wide)) : fmt::format("{}", wide),
              hlo::ElementTypeName(type));
    }
    std::memcpy(narrow.data() + i * 4, &low, 4);
  }
  bytes = std::move(narrow);
  return true;
}

}  // namespace

std::string NpyArray::TypeName() const {
  switch (kind) {
    case 'b': return "bool";
    case 'i': return fmt::format("int{}", item_bytes * 8);
    case 'u': return fmt::format("uint{}", item_bytes * 8);
    case 'f': return fmt::format("float{}", item_bytes * 8);
    case 'c': return fmt::format("complex{}", item_bytes * 8);
    default: return fmt::format("V{}", item_bytes);
  }
}

NpyArray ParseNpy(std::string contents, const std::string& name) {
  if (contents.size() < 10 || contents.compare(0, 6, kMagic) != 0) Invalid("{}: not a .npy file", name);
  const int major = static_cast<unsigned char>(contents[6]);
  if (major < 1 || major > 3) Invalid("{}: .npy version {} is unknown", name, major);
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (contents.size() < 8 + length_bytes) Invalid("{}: the file is truncated", name);
  size_t header_bytes = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    header_bytes |= static_cast<size_t>(static_cast<unsigned char>(contents[8 + i])) << (8 * i);
  }
  const size_t start = 8 + length_bytes + header_bytes;
  if (contents.size() < start) Invalid("{}: the file is truncated", name);
  const std::string_view header = std::string_view(contents).substr(8 + length_bytes, header_bytes);
  NpyArray array;
  ParseDescr(HeaderValue(header, "descr", name), array, name);
  array.fortran_order = HeaderValue(header, "fortran_order", name).starts_with("True");
  const std::string_view shape = HeaderValue(header, "shape", name);
  if (shape.size() < 2 || shape[0] != '(') Invalid("{}: cannot read the array's shape", name);
  ParseShapeTuple(shape, array, name);
  hlo::Dims factors = array.dimensions;
  factors.push_back(array.item_bytes);
  const int64_t wanted = hlo::CheckedProduct(factors);
  if (static_cast<int64_t>(contents.size() - start) < wanted) {
    Invalid("{}: the file is truncated: {} bytes of elements, {} expected", name, contents.size() - start, wanted);
  }
  contents.erase(0, start);
  contents.resize(static_cast<size_t>(wanted));
  array.bytes = std::move(contents);
  return array;
}

NpyArray ReadNpy(const std::string& path) { return ParseNpy(hlo::ReadFileOrStdin(path), path); }

hlo::Literal ToLiteral(const NpyArray& array, const hlo::Shape& shape) {
  const auto describe = [&] { return fmt::format("{}[{}]", array.TypeName(), fmt::join(array.dimensions, ",")); };
  const hlo::Shape actual(shape.element_type(), array.dimensions);
  CheckBounds(actual, shape, "the array");
  if (!FitsBounds(actual, shape)) {
    Invalid("the array is {}, the module wants {}", describe(), shape.ToString(false));
  }
  std::string bytes = array.bytes;
  if (array.big_endian && array.item_bytes > 1)
    SwapBytes(bytes, array.kind == 'c' ? array.item_bytes / 2 : array.item_bytes);
  if (array.fortran_order && array.dimensions.size() > 1) {
    NpyArray swapped = array;
    swapped.bytes = std::move(bytes);
    bytes = FortranToC(swapped);
  }
  if (!SameStorage(array, shape.element_type()) && !NarrowIntegers(array, shape.element_type(), bytes)) {
    Invalid("the array is {}, the module wants {}", describe(), shape.ToString(false));
  }
  NarrowBytes(array, actual, bytes);
  hlo::Literal literal(actual);
  HLORUN_CHECK(static_cast<int64_t>(bytes.size()) == literal.ByteSize());
  if (!bytes.empty()) std::memcpy(literal.mutable_data(), bytes.data(), bytes.size());
  return literal;
}

std::string NpyHeader(const hlo::Shape& shape) {
  const NumpyType type = NumpyTypeOf(shape.element_type());
  std::string dims;
  for (int64_t d : shape.dimensions()) dims += fmt::format("{}, ", d);
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.resize(dims.size() - 1);
  std::string header = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   type.bytes == 1 ? '|' : '<', type.kind, type.bytes, dims);
  const size_t prefix = kMagic.size() + 4;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  std::string text(kMagic);
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 0xFF);
  text += static_cast<char>(header.size() >> 8);
  return text + header;
}

}  // namespace hlorun
