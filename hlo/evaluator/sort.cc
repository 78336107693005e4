// sort and topk.
#include <bit>
#include <cstring>
#include <numeric>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_kernels.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/scalar_function.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/evaluator/top_k.h"
#include "hlo/number_types.h"

namespace hlorun::hlo {
namespace {

// One line of each operand along the sorted dimension, packed.
class Lines {
 public:
  Lines(std::span<Literal> operands, int64_t dimension) : length_(operands[0].shape().dimension(dimension)) {
    for (Literal& operand : operands) {
      bytes_.push_back(BytesOf(operand.element_type()));
      data_.push_back(operand.mutable_data());
      packed_.emplace_back(static_cast<size_t>(length_ * bytes_.back()));
      sorted_.emplace_back(packed_.back().size());
    }
    stride_ = operands[0].shape().Strides()[static_cast<size_t>(dimension)];
  }

  void Load(int64_t offset) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      CopyStrided(data_[i], {offset, {stride_}}, packed_[i].data(), {0, {1}}, Dims{length_}, bytes_[i]);
    }
  }
  void StoreInOrder(int64_t offset, const std::vector<int64_t>& order) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const auto bytes = static_cast<size_t>(bytes_[i]);
      for (size_t k = 0; k < order.size(); ++k) {
        std::memcpy(sorted_[i].data() + k * bytes, packed_[i].data() + static_cast<size_t>(order[k]) * bytes, bytes);
      }
      CopyStrided(sorted_[i].data(), {0, {1}}, data_[i], {offset, {stride_}}, Dims{length_}, bytes_[i]);
    }
  }
  const void* Element(size_t operand, int64_t k) const { return packed_[operand].data() + k * bytes_[operand]; }
  size_t operand_count() const { return bytes_.size(); }

 private:
  int64_t length_;
  int64_t stride_ = 1;
  std::vector<int> bytes_;
  std::vector<std::byte*> data_;
  std::vector<std::vector<std::byte>> packed_, sorted_;
};

}  // namespace

// Always stable. The comparator is taken at its word; one that is no strict weak order gives some permutation.
Literal EvaluateSort(OpCall& call) {
  const auto& sort = call.As<attr::Sort>();
  const Shape shape = call.operand(0).shape();
  const int64_t length = shape.dimension(sort.dimension);
  ScalarFunction comparator(call.evaluation, *call.instruction.called());
  Lines lines(call.operands, sort.dimension);
  std::vector<const void*> inputs(2 * lines.operand_count());
  auto less = [&](int64_t a, int64_t b) {
    for (size_t i = 0; i < lines.operand_count(); ++i) {
      inputs[2 * i] = lines.Element(i, a);
      inputs[2 * i + 1] = lines.Element(i, b);
    }
    bool result = false;
    void* output = &result;
    comparator.Run(inputs, {&output, 1}, 1);
    return result;
  };
  const int64_t stride = shape.Strides()[static_cast<size_t>(sort.dimension)];
  std::vector<int64_t> order(static_cast<size_t>(length));
  const int64_t elements = shape.ElementCount();
  for (int64_t outer = 0; elements > 0 && outer < elements / (length * stride); ++outer) {
    for (int64_t inner = 0; inner < stride; ++inner) {
      const int64_t offset = outer * length * stride + inner;
      lines.Load(offset);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), less);
      lines.StoreInOrder(offset, order);
    }
  }
  if (!call.shape.IsTuple()) return std::move(call.operands[0]);
  return Literal::Tuple({call.operands.begin(), call.operands.end()});
}

namespace {

// A key that orders a real value by total order: NaN above infinity, -0 below +0.
template <typename T>
requires(!Complex<T>) auto OrderKey(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, double>) {
    const auto bits = std::bit_cast<int64_t>(value);
    return bits < 0 ? bits ^ std::numeric_limits<int64_t>::max() : bits;
  } else {
    const auto bits = std::bit_cast<int32_t>(static_cast<float>(value));
    return bits < 0 ? bits ^ std::numeric_limits<int32_t>::max() : bits;
  }
}

}  // namespace

Literal TopK(const Literal& operand, int64_t k, bool largest) {
  const int64_t length = operand.shape().dimensions().back();
  Dims dimensions = operand.shape().dimensions();
  dimensions.back() = k;
  Literal values(Shape(operand.element_type(), dimensions));
  Literal indices(Shape(ElementType::kS32, dimensions));
  VisitType(operand.element_type(), [&]<typename T, ElementType kType>() {
    if constexpr (requires(T x) { OrderKey(x); }) {
      const T* in = operand.values<T>().data();
      T* out = values.mutable_values<T>().data();
      int32_t* places = indices.mutable_values<int32_t>().data();
      std::vector<int32_t> order(static_cast<size_t>(length));
      for (int64_t row = 0; length > 0 && row < operand.ElementCount() / length; ++row) {
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
          const auto key_a = OrderKey(in[row * length + a]);
          const auto key_b = OrderKey(in[row * length + b]);
          return largest ? key_a > key_b : key_a < key_b;
        });
        for (int64_t i = 0; i < k; ++i) {
          places[row * k + i] = order[static_cast<size_t>(i)];
          out[row * k + i] = in[row * length + order[static_cast<size_t>(i)]];
        }
      }
    } else {
      Fail(ErrorCode::kUnimplemented, "topk of {} is not defined", ElementTypeName(kType));
    }
  });
  return Literal::Tuple({std::move(values), std::move(indices)});
}

Literal EvaluateTopK(OpCall& call) {
  const auto& top = call.As<attr::TopK>();
  return TopK(call.operand(0), top.k, top.largest);
}

}  // namespace hlorun::hlo
