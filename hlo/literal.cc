#include "hlo/literal.h"

#include <sys/mman.h>

#include <cstring>
#include <limits>
#include <new>

#include "hlo/error.h"
#include "hlo/map_pages.h"
#include "hlo/number_types.h"

namespace hlorun::hlo {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and what the OpenCL runtimes want for zero-copy arguments
constexpr size_t kMapThreshold = size_t{1} << 22;

// Zeroed storage.
std::shared_ptr<std::byte> Allocate(int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  if (size >= kMapThreshold) {
    std::byte* start = MapPages(size, PROT_READ | PROT_WRITE);
    if (start == nullptr) {
      Fail(ErrorCode::kResourceExhausted, "out of memory: cannot allocate {} bytes for a host array", size);
    }
    return {start, [size](std::byte* p) { munmap(p, size); }};
  }
  auto* block = static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment}));
  std::memset(block, 0, size);
  return {block, [](std::byte* p) { ::operator delete (p, std::align_val_t{kAlignment}); }};
}

template <typename T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <typename T, ElementType kType>
T FromDouble(double value) {
  if constexpr (kType == ElementType::kPred) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    if constexpr (std::is_same_v<T, uint64_t>) {
      return value >= 18446744073709551616.0 ? std::numeric_limits<uint64_t>::max()
             : value <= 0                    ? 0
                                             : static_cast<uint64_t>(value);
    } else {
      const double least = -9223372036854775808.0;
      const int64_t integer = value >= -least  ? std::numeric_limits<int64_t>::max()
                              : value <= least ? std::numeric_limits<int64_t>::min()
                                               : static_cast<int64_t>(value);
      return static_cast<T>(WrapInteger(kType, integer));
    }
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(static_cast<float>(value));
  }
}

}  // namespace

Literal::Literal(const Shape& shape) : shape_(shape) {
  if (shape.IsTuple()) {
    for (const Shape& element : shape.tuple_shapes()) elements_.emplace_back(element);
  } else {
    data_ = Allocate(shape.ByteSize());
  }
}

Literal Literal::Tuple(std::vector<Literal> elements) {
  Literal literal;
  std::vector<Shape> shapes;
  shapes.reserve(elements.size());
  for (const Literal& element : elements) shapes.push_back(element.shape());
  literal.shape_ = Shape::Tuple(std::move(shapes));
  literal.elements_ = std::move(elements);
  return literal;
}

Literal Literal::View(const Shape& shape, const void* data, std::shared_ptr<const void> owner) {
  HLORUN_CHECK(!shape.IsTuple());
  Literal literal;
  literal.shape_ = shape;
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(data));
  literal.data_ = std::shared_ptr<std::byte>(bytes, [owner = std::move(owner)](std::byte*) {});
  literal.shared_view_ = true;
  return literal;
}

void Literal::set_shape(const Shape& shape) {
  HLORUN_CHECK(shape.ByteSize() == shape_.ByteSize());
  shape_ = shape;
}

std::byte* Literal::mutable_data() {
  HLORUN_CHECK(data_ != nullptr);
  if (shared_view_ || data_.use_count() > 1) {
    std::shared_ptr<std::byte> copy = Allocate(ByteSize());
    std::memcpy(copy.get(), data_.get(), static_cast<size_t>(ByteSize()));
    data_ = std::move(copy);
    shared_view_ = false;
  }
  return data_.get();
}

double Literal::GetDouble(int64_t linear) const { return GetComplex(linear).real(); }

std::complex<double> Literal::GetComplex(int64_t linear) const {
  return VisitType(element_type(), [&]<typename T, ElementType kType>() -> std::complex<double> {
    const T value = reinterpret_cast<const T*>(data())[linear];
    if constexpr (kIsComplex<T>) {
      return {static_cast<double>(value.real()), static_cast<double>(value.imag())};
    } else if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(value);
    } else {
      return static_cast<double>(static_cast<float>(value));
    }
  });
}

int64_t Literal::GetInt(int64_t linear) const {
  return VisitType(element_type(), [&]<typename T, ElementType kType>() -> int64_t {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(reinterpret_cast<const T*>(data())[linear]);
    } else {
      Fail(ErrorCode::kInternal, "GetInt on a literal of type {}", ElementTypeName(kType));
    }
  });
}

void Literal::SetDouble(int64_t linear, double value) { SetComplex(linear, value); }

void Literal::SetComplex(int64_t linear, std::complex<double> value) {
  VisitType(element_type(), [&]<typename T, ElementType kType>() {
    T& slot = reinterpret_cast<T*>(mutable_data())[linear];
    if constexpr (kIsComplex<T>) {
      using Real = typename T::value_type;
      slot = T(static_cast<Real>(value.real()), static_cast<Real>(value.imag()));
    } else {
      slot = FromDouble<T, kType>(value.real());
    }
  });
}

void Literal::SetInt(int64_t linear, int64_t value) {
  VisitType(element_type(), [&]<typename T, ElementType kType>() {
    if constexpr (std::is_integral_v<T>) {
      reinterpret_cast<T*>(mutable_data())[linear] = static_cast<T>(WrapInteger(kType, value));
    } else {
      SetDouble(linear, static_cast<double>(value));
    }
  });
}

bool Literal::operator==(const Literal& other) const {
  if (!shape_.SameAs(other.shape_)) return false;
  if (shape_.IsTuple()) return elements_ == other.elements_;
  return data_ == other.data_ || std::memcmp(data(), other.data(), static_cast<size_t>(ByteSize())) == 0;
}

bool Literal::IsAllSame() const {
  const auto width = static_cast<size_t>(BytesOf(element_type()));
  const auto bytes = static_cast<size_t>(ByteSize());
  // Each element equals its successor when the array equals itself shifted by one element.
  return bytes <= width || std::memcmp(data(), data() + width, bytes - width) == 0;
}

size_t Literal::Hash() const {
  if (shape_.IsTuple()) {
    size_t hash = elements_.size();
    for (const Literal& element : elements_) hash = hash * 31 + element.Hash();
    return hash;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data()), static_cast<size_t>(ByteSize()));
  return std::hash<std::string_view>()(bytes) * 31 + static_cast<size_t>(element_type());
}

}  // namespace hlorun::hlo
