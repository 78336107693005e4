// How the parts of a plan are written and read: one description for both directions, so that they cannot disagree.
//
// An archive is called with fields: archive(a, b, c). Writer appends them to a string; Reader fills them from bytes and
// throws kDataLoss rather than read past the end, make a container larger than what is left, or nest too deeply.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/opencl/plan.h"
#include "hlo/error.h"

namespace hlorun::opencl {

class Writer {
 public:
  static constexpr bool kReads = false;
  template <typename... T>
  void operator()(const T&... fields) {
    (Describe(*this, const_cast<T&>(fields)), ...);
  }
  void Raw(void* data, size_t bytes) { out_.append(static_cast<const char*>(data), bytes); }
  void Enter() {}
  void Leave() {}
  size_t Left() const { return SIZE_MAX; }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename... T>
  void operator()(T&... fields) {
    (Describe(*this, fields), ...);
  }
  void Raw(void* data, size_t bytes) {
    if (bytes > bytes_.size()) Fail(ErrorCode::kDataLoss, "the plan ends in the middle of a section");
    std::memcpy(data, bytes_.data(), bytes);
    bytes_.remove_prefix(bytes);
  }
  void Enter() {
    if (++depth_ > kDeepest) Fail(ErrorCode::kDataLoss, "the plan nests deeper than {} levels", kDeepest);
  }
  void Leave() { --depth_; }
  size_t Left() const { return bytes_.size(); }

 private:
  static constexpr int kDeepest = 256;
  std::string_view bytes_;
  int depth_ = 0;
};

template <typename A, typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
void Describe(A& archive, T& value) {
  archive.Raw(&value, sizeof(value));
}

template <typename A>
void DescribeSize(A& archive, size_t& size) {
  uint64_t count = size;
  Describe(archive, count);
  // Every element takes a byte at least.
  if (A::kReads && count > archive.Left())
    Fail(ErrorCode::kDataLoss, "the plan names {} elements where {} bytes are left", count, archive.Left());
  size = static_cast<size_t>(count);
}

template <typename A>
void Describe(A& archive, std::string& text) {
  size_t size = text.size();
  DescribeSize(archive, size);
  if constexpr (A::kReads) text.resize(size);
  archive.Raw(text.data(), size);
}

template <typename A>
void Describe(A& archive, std::vector<bool>& flags) {
  size_t size = flags.size();
  DescribeSize(archive, size);
  if constexpr (A::kReads) flags.resize(size);
  for (size_t i = 0; i < size; ++i) {
    uint8_t flag = flags[i] ? 1 : 0;
    Describe(archive, flag);
    flags[i] = flag != 0;
  }
}

template <typename A, typename T>
void Describe(A& archive, std::vector<T>& values) {
  size_t size = values.size();
  DescribeSize(archive, size);
  if constexpr (A::kReads) values.resize(size);
  for (T& value : values) Describe(archive, value);
}

template <typename A, typename T, size_t N>
void Describe(A& archive, std::array<T, N>& values) {
  for (T& value : values) Describe(archive, value);
}

template <typename A, typename T, typename U>
void Describe(A& archive, std::pair<T, U>& pair) {
  archive(pair.first, pair.second);
}

template <typename A>
void Describe(A& archive, std::shared_ptr<Sequence>& sequence) {
  if constexpr (A::kReads) sequence = std::make_shared<Sequence>();
  Describe(archive, *sequence);
}

template <typename A>
void Describe(A& archive, hlo::Layout& layout) {
  archive(layout.minor_to_major, layout.tiling, layout.annotations, layout.memory_space, layout.element_size_in_bits);
}

template <typename A>
void Describe(A& archive, hlo::Shape& shape) {
  archive.Enter();
  hlo::ElementType type = shape.element_type();
  hlo::Dims dimensions = shape.dimensions();
  std::vector<bool> dynamic;
  for (int64_t d = 0; d < shape.rank(); ++d) dynamic.push_back(shape.is_dynamic_dimension(d));
  std::vector<hlo::Shape> elements = shape.tuple_shapes();
  bool has_layout = shape.has_layout();
  archive(type, dimensions, dynamic, elements, has_layout);
  hlo::Layout layout = shape.layout().value_or(hlo::Layout{});
  if (has_layout) archive(layout);
  if constexpr (A::kReads) {
    if (dynamic.size() != dimensions.size())
      Fail(ErrorCode::kDataLoss, "the plan holds a shape that contradicts itself");
    shape = elements.empty() ? hlo::Shape(type, std::move(dimensions)) : hlo::Shape::Tuple(std::move(elements));
    for (size_t d = 0; d < dynamic.size(); ++d) {
      if (dynamic[d]) shape.set_dynamic_dimension(static_cast<int64_t>(d), true);
    }
    if (has_layout) shape.set_layout(std::move(layout));
  }
  archive.Leave();
}

template <typename A>
void Describe(A& archive, Slice& slice) {
  archive(slice.allocation, slice.offset, slice.bytes);
}
template <typename A>
void Describe(A& archive, Grid& grid) {
  archive(grid.groups, grid.local);
}
template <typename A>
void Describe(A& archive, LaunchThunk& t) {
  archive(t.kernel, t.grid, t.arguments, t.written, t.has_effect);
}
template <typename A>
void Describe(A& archive, CopyThunk& t) {
  archive(t.from, t.to);
}
template <typename A>
void Describe(A& archive, WriteThunk& t) {
  archive(t.value, t.bytes, t.to);
}
template <typename A>
void Describe(A& archive, CollectiveThunk& t) {
  archive(t.kind, t.groups, t.pairs, t.operands, t.results, t.operand_shapes, t.result_shapes, t.dimension, t.reduction,
          t.reduction_kernel, t.ticket);
}
template <typename A>
void Describe(A& archive, AwaitThunk& t) {
  archive(t.ticket);
}
template <typename A>
void Describe(A& archive, WhileThunk& t) {
  archive(t.condition, t.body, t.predicate, t.trip_count, t.ahead, t.at_most);
}
template <typename A>
void Describe(A& archive, ConditionalThunk& t) {
  archive(t.selector, t.is_predicate, t.branches);
}
template <typename A>
void Describe(A& archive, HostCallThunk& t) {
  archive(t.target, t.config, t.operands, t.results, t.operand_shapes, t.result_shapes);
}
template <typename A>
void Describe(A& archive, TransferThunk& t) {
  archive(t.to_program, t.channel, t.pairs, t.arrays, t.shapes);
}

template <typename A>
void Describe(A& archive, LibraryThunk& t) {
  archive(t.type, t.batch, t.m, t.n, t.k, t.lhs_transposed, t.rhs_transposed, t.lhs, t.rhs, t.out);
  for (int64_t& number : t.numbers) archive(number);
}

// Makes the alternative number `kind` of a variant; false when there is none.
template <typename Variant, size_t I = 0>
bool Emplace(Variant& variant, uint8_t kind) {
  if constexpr (I < std::variant_size_v<Variant>) {
    if (kind != I) return Emplace<Variant, I + 1>(variant, kind);
    variant.template emplace<I>();
    return true;
  }
  return false;
}

template <typename A>
void Describe(A& archive, Thunk& thunk) {
  auto kind = static_cast<uint8_t>(thunk.work.index());
  archive(kind);
  if (A::kReads && !Emplace(thunk.work, kind))
    Fail(ErrorCode::kDataLoss, "the plan holds a thunk of unknown kind {}", kind);
  std::visit([&](auto& work) { Describe(archive, work); }, thunk.work);
  archive(thunk.label, thunk.op_name, thunk.flops, thunk.bytes, thunk.bytes_written, thunk.arithmetic, thunk.role);
}

template <typename A>
void Describe(A& archive, Sequence& sequence) {
  archive.Enter();
  archive(sequence.thunks);
  archive.Leave();
}

template <typename A>
void Describe(A& archive, Kernel& kernel) {
  archive(kernel.name, kernel.source, kernel.grids, kernel.parameter_count, kernel.foreign);
}
template <typename A>
void Describe(A& archive, ArrayInfo& array) {
  archive(array.name, array.op_name, array.shape, array.parameter, array.index, array.donated, array.sharding);
}
template <typename A>
void Describe(A& archive, passes::Allocation& allocation) {
  archive(allocation.kind, allocation.index, allocation.bytes, allocation.aliased_argument);
}
template <typename A>
void Describe(A& archive, passes::MemoryStatistics& m) {
  archive(m.arena_bytes, m.argument_bytes, m.constant_bytes, m.result_bytes, m.largest_live_bytes, m.peak_bytes);
}

template <typename A>
void Describe(A& archive, DeviceSpec& spec) {
  std::string json = A::kReads ? "" : spec.ToJson();
  archive(json);
  if constexpr (A::kReads) spec = DeviceSpec::FromJson(json, DeviceSpec{});
}

template <typename A>
void Describe(A& archive, passes::Remark& r) {
  archive(r.subject, r.instruction, r.source, r.choice, r.reason, r.cost, r.advice, r.host_waits, r.warns);
}
template <typename A>
void Describe(A& archive, passes::DimensionOfLeaf& d) {
  archive(d.leaf, d.dimension);
}
template <typename A>
void Describe(A& archive, passes::SizeSignature& sizes) {
  archive(sizes.parameters, sizes.results, sizes.equal, sizes.whole_results);
}

// Everything but the constants and the module's text, which have sections of their own.
template <typename A>
void Describe(A& archive, Plan& plan) {
  archive(plan.module_name, plan.device, plan.allocations, plan.kernels, plan.of_constants, plan.once,
          plan.constant_parameters, plan.entry, plan.parameters, plan.results, plan.sizes, plan.result_slices,
          plan.memory, plan.replica_count, plan.num_partitions, plan.host_thunks, plan.tuning, plan.remarks);
}

}  // namespace hlorun::opencl
