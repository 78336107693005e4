// rng-bit-generator, bit for bit as XLA:CPU's; rng and its state.
//
// Philox4x32-10 and Threefry2x32-20: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "hlo/error.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/number_types.h"

namespace hlorun::hlo {
namespace {

struct PhiloxBlock {
  uint32_t words[4];
};

PhiloxBlock Philox(RngState counter, uint64_t key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  uint32_t c[4] = {static_cast<uint32_t>(counter.low), static_cast<uint32_t>(counter.low >> 32),
                   static_cast<uint32_t>(counter.high), static_cast<uint32_t>(counter.high >> 32)};
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * c[0];
    const uint64_t product1 = kMultiplier1 * c[2];
    const uint32_t next0 = static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key0;
    const uint32_t next2 = static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key1;
    c[0] = next0;
    c[1] = static_cast<uint32_t>(product1);
    c[2] = next2;
    c[3] = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

struct ThreefryPair {
  uint32_t words[2];
};

ThreefryPair Threefry(uint64_t counter, uint64_t key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const auto key0 = static_cast<uint32_t>(key);
  const auto key1 = static_cast<uint32_t>(key >> 32);
  const uint32_t schedule[3] = {key0, key1, 0x1BD11BDA ^ key0 ^ key1};
  uint32_t x = static_cast<uint32_t>(counter) + schedule[0];
  uint32_t y = static_cast<uint32_t>(counter >> 32) + schedule[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (const int rotation : kRotations[group % 2]) {
      x += y;
      y = std::rotl(y, rotation) ^ x;
    }
    x += schedule[(group + 1) % 3];
    y += schedule[(group + 2) % 3] + group + 1;
  }
  return {{x, y}};
}

// Types narrower than 32 bits take the low bits of a 32-bit word each.
void StoreWord(Literal& bits, int64_t i, uint32_t word) {
  const int bytes = BytesOf(bits.element_type());
  std::memcpy(bits.mutable_data() + i * bytes, &word, static_cast<size_t>(std::min(bytes, 4)));
}
void StorePair(Literal& bits, int64_t i, uint32_t low, uint32_t high) {
  const uint32_t words[2] = {low, high};
  std::memcpy(bits.mutable_data() + i * 8, words, 8);
}

// The words of consecutive blocks, in row-major order. Returns the number of blocks used.
int64_t FillPhilox(Literal& bits, RngState counter, uint64_t key) {
  const int64_t count = bits.ElementCount();
  const bool wide = BytesOf(bits.element_type()) == 8;
  const int64_t per_block = wide ? 2 : 4;
  const int64_t blocks = (count + per_block - 1) / per_block;
  for (int64_t b = 0; b < blocks; ++b) {
    const PhiloxBlock block = Philox(counter.Advanced(static_cast<uint64_t>(b)), key);
    for (int64_t i = b * per_block; i < std::min(count, (b + 1) * per_block); ++i) {
      const int64_t word = i - b * per_block;
      if (wide) {
        StorePair(bits, i, block.words[2 * word], block.words[2 * word + 1]);
      } else {
        StoreWord(bits, i, block.words[word]);
      }
    }
  }
  return blocks;
}

// The dimension along which the two words of a pair lie side by side: the first of even size, else the largest.
size_t PairedDimension(const Dims& dimensions) {
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d] % 2 == 0) return d;
  }
  return static_cast<size_t>(std::max_element(dimensions.begin(), dimensions.end()) - dimensions.begin());
}

// Returns the number of counters used.
int64_t FillThreefry(Literal& bits, uint64_t counter, uint64_t key) {
  const int64_t count = bits.ElementCount();
  if (BytesOf(bits.element_type()) == 8) {
    for (int64_t i = 0; i < count; ++i) {
      const ThreefryPair pair = Threefry(counter + static_cast<uint64_t>(i), key);
      StorePair(bits, i, pair.words[0], pair.words[1]);
    }
    return count;
  }
  const Dims& dimensions = bits.shape().dimensions();
  if (dimensions.empty()) {
    StoreWord(bits, 0, Threefry(counter, key).words[0]);
    return 1;
  }
  const size_t paired = PairedDimension(dimensions);
  Dims halves = dimensions;
  halves[paired] = (halves[paired] + 1) / 2;
  const Dims half_strides = Shape(ElementType::kU32, halves).Strides();
  Dims index(dimensions.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t half = 0;
    for (size_t d = 0; d < index.size(); ++d) half += (d == paired ? index[d] / 2 : index[d]) * half_strides[d];
    StoreWord(bits, i, Threefry(counter + static_cast<uint64_t>(half), key).words[index[paired] % 2]);
    NextIndex(index, dimensions);
  }
  return CheckedProduct(halves);
}

// Types narrower than a byte keep the lowest bits of theirs.
void KeepDeclaredBits(Literal& bits) {
  const int width = BitsOf(bits.element_type());
  if (width >= 8) return;
  auto* bytes = reinterpret_cast<uint8_t*>(bits.mutable_data());
  for (int64_t i = 0; i < bits.ElementCount(); ++i) {
    bytes[i] = static_cast<uint8_t>(bytes[i] & ((1 << width) - 1));
    if (IsSigned(bits.element_type())) bits.SetInt(i, bits.GetInt(i));  // extends the sign
  }
}

}  // namespace

// (state) -> (new state, bits). The state is u64[2] or u64[3]: the key, then the counter, low word first. With two
// words, Philox takes the key as the counter's high word too. Default is Philox, as on XLA:CPU.
Literal EvaluateRngBitGenerator(OpCall& call) {
  const RngAlgorithm algorithm = call.As<attr::RngBitGenerator>().algorithm;
  const bool tuple = call.instruction.shape().IsTuple();
  Literal state = call.operand(0);
  Literal bits(tuple ? call.instruction.shape().tuple_shape(1).WithoutLayout() : call.shape);
  Literal words = state;
  if (words.element_type() == ElementType::kU32 && words.ElementCount() % 2 == 0) {
    words.set_shape(Shape(ElementType::kU64, {words.ElementCount() / 2}));  // u32[4] is u64[2], low word first
  }
  const int64_t size = words.ElementCount();
  if (words.element_type() != ElementType::kU64 || size < 2 || size > 3) {
    Invalid("{}: the state of rng-bit-generator is u64[2] or u64[3], not {}", call.instruction.name(),
            state.shape().ToString(false));
  }
  const std::span<uint64_t> values = words.mutable_values<uint64_t>();
  const uint64_t key = values[0];
  if (algorithm == RngAlgorithm::kThreeFry) {
    values[1] += static_cast<uint64_t>(FillThreefry(bits, values[1], key));
  } else {
    RngState counter{values[1], size == 3 ? values[2] : key};
    counter = counter.Advanced(static_cast<uint64_t>(FillPhilox(bits, counter, key)));
    values[1] = counter.low;
    if (size == 3) values[2] = counter.high;
  }
  KeepDeclaredBits(bits);
  words.set_shape(state.shape());
  return tuple ? Literal::Tuple({std::move(words), std::move(bits)}) : std::move(bits);
}

// Returns the run's 128-bit state, high word first, and advances it.
Literal EvaluateRngGetAndUpdateState(OpCall& call) {
  RngState& state = call.evaluation.rng_state();
  Literal result(call.shape);
  result.SetInt(0, static_cast<int64_t>(state.high));
  result.SetInt(1, static_cast<int64_t>(state.low));
  state = state.Advanced(static_cast<uint64_t>(call.As<attr::RngState>().delta));
  return result;
}

namespace {

// 53 random bits as a fraction of one.
double UniformFraction(uint64_t bits) { return std::ldexp(static_cast<double>(bits >> 11), -53); }

}  // namespace

// Numbers of the distribution (uniform in [a, b); normal of mean a and deviation b); which ones is not specified.
Literal EvaluateRng(OpCall& call) {
  const bool normal = call.As<attr::Rng>().distribution == RngDistribution::kNormal;
  Literal result(call.shape);
  RngState& state = call.evaluation.rng_state();
  const ElementType type = call.shape.element_type();
  for (int64_t i = 0; i < call.shape.ElementCount(); ++i) {
    const PhiloxBlock block = Philox(state, 0);
    state = state.Advanced(1);
    const uint64_t first = block.words[0] | (uint64_t{block.words[1]} << 32);
    const uint64_t second = block.words[2] | (uint64_t{block.words[3]} << 32);
    if (normal) {
      // Box and Muller; 1 - u is never zero.
      const double radius = std::sqrt(-2 * std::log(1 - UniformFraction(first)));
      const double value = radius * std::cos(2 * std::numbers::pi * UniformFraction(second));
      result.SetDouble(i, call.operand(0).GetDouble(0) + call.operand(1).GetDouble(0) * value);
    } else if (IsFloating(type)) {
      const double low = call.operand(0).GetDouble(0);
      const double high = call.operand(1).GetDouble(0);
      result.SetDouble(i, low + (high - low) * UniformFraction(first));
      if (result.GetDouble(i) >= high && high > low) result.SetDouble(i, low);  // rounded up to the excluded end
    } else {
      const auto low = static_cast<uint64_t>(call.operand(0).GetInt(0));
      const uint64_t range = static_cast<uint64_t>(call.operand(1).GetInt(0)) - low;
      result.SetInt(i, static_cast<int64_t>(low + (range == 0 ? 0 : first % range)));
    }
  }
  return result;
}

}  // namespace hlorun::hlo
