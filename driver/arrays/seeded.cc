#include "driver/arrays/seeded.h"
#include "hlo/number_types.h"

#include <cmath>
#include <numbers>

namespace hlorun {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): one multiplication chain a number, seekable, good enough for test data.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  float Uniform() { return static_cast<float>(Bits() >> 40) * 0x1p-24f; }  // [0, 1)
  // Box-Muller, both values used.
  float Normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const float radius = std::sqrt(-2.0f * std::log(1.0f - Uniform()));
    const float angle = 2.0f * std::numbers::pi_v<float> * Uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  uint64_t state_;
  float spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace

hlo::Literal SeededLiteral(const hlo::Shape& shape, int64_t slot, const SeedOptions& options) {
  hlo::Literal literal(shape.WithoutLayout());
  if (shape.IsToken()) return literal;
  Generator generator(options.seed * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(slot) * 0xD1B54A32D192ED03 + 1);
  const bool is_data = options.normal.contains(slot);
  float deviation = 1;
  if (!is_data && shape.rank() >= 2) {
    double fan_in = 1;
    for (int64_t d = 0; d + 1 < shape.rank(); ++d) fan_in *= static_cast<double>(shape.dimension(d));
    deviation = static_cast<float>(std::max(0.02, std::pow(std::max(fan_in, 1.0), -0.5)));
  }
  const bool uniform = !is_data && shape.rank() < 2;
  const auto real = [&] { return uniform ? generator.Uniform() + 0.5f : generator.Normal() * deviation; };
  const int64_t count = literal.ElementCount();
  hlo::VisitType(shape.element_type(), [&]<typename T, hlo::ElementType kType>() {
    T* values = reinterpret_cast<T*>(literal.mutable_data());
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        values[i] = (generator.Bits() >> 63) != 0;
      } else if constexpr (std::is_integral_v<T>) {
        const auto limit = static_cast<uint64_t>(std::max<int64_t>(options.integers, 1));
        values[i] = static_cast<T>(hlo::WrapInteger(kType, static_cast<int64_t>(generator.Bits() % limit)));
      } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
        const float re = real();
        values[i] = T(re, real());
      } else if constexpr (std::is_same_v<T, double>) {
        values[i] = static_cast<double>(real());
      } else {
        values[i] = T(real());
      }
    }
  });
  return literal;
}

}  // namespace hlorun
