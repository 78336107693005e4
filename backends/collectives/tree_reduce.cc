#include "backends/collectives/tree_reduce.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "hlo/error.h"
#include "hlo/number_types.h"

namespace hlorun::collectives {
namespace {

using hlo::ElementType;
using hlo::Opcode;

template <typename T>
constexpr bool kIsComplex = false;
template <typename T>
constexpr bool kIsComplex<std::complex<T>> = true;

// HLO's maximum and minimum hand NaN on.
template <typename T>
T Maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  }
  return a < b ? b : a;
}
template <typename T>
T Minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  }
  return b < a ? b : a;
}

// a[i] = a[i] op b[i] over the type that the reduction computes in.
template <typename T>
void Combine(Opcode opcode, T* a, const T* b, int64_t count) {
  const auto each = [&](auto&& op) {
    for (int64_t i = 0; i < count; ++i) a[i] = static_cast<T>(op(a[i], b[i]));
  };
  switch (opcode) {
    case Opcode::kAdd:
      if constexpr (std::is_same_v<T, bool>) return each([](T x, T y) { return x || y; });
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        using U = std::make_unsigned_t<T>;
        return each([](T x, T y) { return static_cast<U>(static_cast<U>(x) + static_cast<U>(y)); });
      }
      if constexpr (!std::is_integral_v<T>) return each([](T x, T y) { return x + y; });
      break;
    case Opcode::kMultiply:
      if constexpr (std::is_same_v<T, bool>) return each([](T x, T y) { return x && y; });
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        return each([](T x, T y) { return static_cast<uint64_t>(x) * static_cast<uint64_t>(y); });
      }
      if constexpr (!std::is_integral_v<T>) return each([](T x, T y) { return x * y; });
      break;
    case Opcode::kMaximum:
      if constexpr (!kIsComplex<T>) return each(Maximum<T>);
      break;
    case Opcode::kMinimum:
      if constexpr (!kIsComplex<T>) return each(Minimum<T>);
      break;
    case Opcode::kAnd:
      if constexpr (std::is_integral_v<T>) return each([](T x, T y) { return x & y; });
      break;
    case Opcode::kOr:
      if constexpr (std::is_integral_v<T>) return each([](T x, T y) { return x | y; });
      break;
    case Opcode::kXor:
      if constexpr (std::is_integral_v<T>) return each([](T x, T y) { return x ^ y; });
      break;
    default: break;
  }
  Fail(ErrorCode::kUnimplemented, "a collective cannot reduce with {} over this element type", hlo::OpcodeName(opcode));
}

int64_t LeftSize(int64_t n) {
  int64_t left = 1;
  while (left * 2 < n) left *= 2;
  return left;
}

constexpr int64_t kBlock = 4096;  // elements a tree is evaluated for at once: the stack of partial sums stays in L1/L2

// a[i] = a[i] op b[i] for a block.
template <typename C>
using Join = std::function<void(C* a, const C* b, int64_t count)>;

// tree(lo, hi) of one block, in the computation type C; partial results are stacked by depth.
template <typename T, typename C>
void Tree(const std::vector<const T*>& parts, int64_t lo, int64_t hi, int64_t begin, int64_t count, const Join<C>& join,
          std::vector<std::unique_ptr<C[]>>& stack, size_t depth) {
  while (stack.size() <= depth) stack.push_back(std::make_unique<C[]>(kBlock));
  C* out = stack[depth].get();
  if (hi - lo == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<C>(parts[static_cast<size_t>(lo)][begin + i]);
    return;
  }
  const int64_t mid = lo + LeftSize(hi - lo);
  Tree<T, C>(parts, lo, mid, begin, count, join, stack, depth);
  Tree<T, C>(parts, mid, hi, begin, count, join, stack, depth + 1);
  join(out, stack[depth + 1].get(), count);
}

// One binary for all machines, with the widest vectors of each.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define HLORUN_FOR_EACH_VECTOR_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HLORUN_FOR_EACH_VECTOR_WIDTH
#endif

HLORUN_FOR_EACH_VECTOR_WIDTH void AddPair(const float* a, const float* b, float* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}
HLORUN_FOR_EACH_VECTOR_WIDTH void AddPair(const double* a, const double* b, double* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}
#undef HLORUN_FOR_EACH_VECTOR_WIDTH

// Two parts, computed in the type that they are stored in: one pass.
template <typename T>
bool ReducePair(std::span<const std::byte* const> parts, std::byte* out, int64_t count, Opcode opcode) {
  if constexpr (std::is_floating_point_v<T>) {
    if (parts.size() != 2 || opcode != Opcode::kAdd) return false;
    AddPair(reinterpret_cast<const T*>(parts[0]), reinterpret_cast<const T*>(parts[1]), reinterpret_cast<T*>(out),
            count);
    return true;
  }
  return false;
}

// What stores an element of a type that is narrower than a byte.
template <typename T, ElementType kType>
T Stored(T value) {
  if constexpr (std::is_integral_v<T> && kType != ElementType::kPred) {
    if (hlo::BitsOf(kType) < 8) return static_cast<T>(hlo::WrapInteger(kType, value));
  }
  return value;
}

template <typename T, ElementType kType, typename C>
void ReduceAll(std::span<const std::byte* const> parts, std::byte* out, int64_t count, const Join<C>& join) {
  std::vector<const T*> typed;
  for (const std::byte* part : parts) typed.push_back(reinterpret_cast<const T*>(part));
  std::vector<std::unique_ptr<C[]>> stack;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    Tree<T, C>(typed, 0, static_cast<int64_t>(parts.size()), begin, n, join, stack, 0);
    for (int64_t i = 0; i < n; ++i)
      reinterpret_cast<T*>(out)[begin + i] = Stored<T, kType>(static_cast<T>(stack[0][static_cast<size_t>(i)]));
  }
}

}  // namespace

void TreeReduce(std::span<const std::byte* const> parts, std::byte* out, int64_t count, const Reduction& reduction) {
  hlo::VisitType(reduction.type, [&]<typename T, ElementType kType>() {
    if (reduction.custom) {
      // The module's own computation: it works on the storage type.
      ReduceAll<T, kType, T>(parts, out, count, [&](T* a, const T* b, int64_t n) {
        reduction.custom(reinterpret_cast<std::byte*>(a), reinterpret_cast<const std::byte*>(b), n);
      });
      return;
    }
    if (ReducePair<T>(parts, out, count, reduction.opcode)) return;
    using C = std::conditional_t<std::is_arithmetic_v<T> || kIsComplex<T>, T, float>;
    ReduceAll<T, kType, C>(parts, out, count,
                           [&](C* a, const C* b, int64_t n) { Combine<C>(reduction.opcode, a, b, n); });
  });
}

}  // namespace hlorun::collectives
