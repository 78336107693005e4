// Shapes of operations that move elements: broadcast, slices, pad, gather, scatter, dimension sizes.
#include <algorithm>
#include <numeric>

#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo::shape_rules {
namespace {

void CheckSameType(const Query& q, int64_t a, int64_t b) {
  if (q.Array(a).element_type() != q.Array(b).element_type()) {
    q.Reject("operands {} and {} differ in element type: {} and {}", a, b, q.operand(a).ToString(false),
             q.operand(b).ToString(false));
  }
}

int64_t SingleDimension(const Query& q, int64_t rank) {
  const auto& dimensions = q.As<attr::Dimensions>().dimensions;
  if (dimensions.size() != 1) q.Reject("needs one dimension, but has {}", dimensions.size());
  CheckDimensionNumbers(q, "dimensions", dimensions, rank);
  return dimensions[0];
}

// Start indices: one scalar for each dimension, or (the older form) one array of them, from operand `first` on.
void CheckStarts(const Query& q, int64_t first, int64_t rank) {
  const int64_t count = q.operand_count() - first;
  if (count == 1 && q.Array(first).rank() == 1) {
    if (!IsInteger(q.operand(first).element_type()) || q.operand(first).dimension(0) != rank) {
      q.Reject("the start indices must be {} integers, but are {}", rank, q.operand(first).ToString(false));
    }
    return;
  }
  if (count != rank) q.Reject("needs {} start indices, one for each dimension, but has {}", rank, count);
  for (int64_t i = first; i < q.operand_count(); ++i) {
    if (!q.Array(i).IsScalar() || !IsInteger(q.operand(i).element_type())) {
      q.Reject("start index {} must be an integer scalar, but is {}", i - first, q.operand(i).ToString(false));
    }
  }
}

void CheckSorted(const Query& q, std::string_view what, const std::vector<int64_t>& dimensions) {
  if (!std::is_sorted(dimensions.begin(), dimensions.end())) {
    q.Reject("{} must be sorted, but is {{{}}}", what, fmt::join(dimensions, ","));
  }
}

// What gather and scatter share: how an array of indices selects windows of an operand.
struct IndexedWindows {
  const Shape& operand;
  const Shape& indices;
  int64_t index_vector_dim;
  const std::vector<int64_t>& index_map;         // start_index_map, scatter_dims_to_operand_dims
  const std::vector<int64_t>& dropped;           // collapsed_slice_dims, inserted_window_dims
  const std::vector<int64_t>& operand_batching;  // operand_batching_dims, input_batching_dims
  const std::vector<int64_t>& indices_batching;

  // The dimensions of the indices without the index vector's.
  std::vector<int64_t> BatchDimensions() const {
    std::vector<int64_t> batch;
    for (int64_t d = 0; d < indices.rank(); ++d) {
      if (d != index_vector_dim) batch.push_back(d);
    }
    return batch;
  }
  bool IsWindowDimension(int64_t d) const { return !Contains(dropped, d) && !Contains(operand_batching, d); }
};

void CheckIndexedWindows(const Query& q, const IndexedWindows& w) {
  if (!IsInteger(w.indices.element_type())) {
    q.Reject("the indices must be integers, but are {}", w.indices.ToString(false));
  }
  if (w.index_vector_dim < 0 || w.index_vector_dim > w.indices.rank()) {
    q.Reject("index_vector_dim is {}, but the indices {} have {} dimensions", w.index_vector_dim,
             w.indices.ToString(false), w.indices.rank());
  }
  const int64_t vector_size = w.index_vector_dim == w.indices.rank() ? 1 : w.indices.dimension(w.index_vector_dim);
  if (static_cast<int64_t>(w.index_map.size()) != vector_size) {
    q.Reject("an index vector of {} holds {} numbers, but {} operand dimensions are mapped", w.indices.ToString(false),
             vector_size, w.index_map.size());
  }
  CheckDimensionNumbers(q, "the index map", w.index_map, w.operand.rank());
  CheckDimensionNumbers(q, "the dropped dimensions", w.dropped, w.operand.rank());
  CheckDimensionNumbers(q, "the operand's batching dimensions", w.operand_batching, w.operand.rank());
  CheckDimensionNumbers(q, "the indices' batching dimensions", w.indices_batching, w.indices.rank());
  CheckSorted(q, "the list of dropped dimensions", w.dropped);
  CheckSorted(q, "the list of the operand's batching dimensions", w.operand_batching);
  if (w.operand_batching.size() != w.indices_batching.size()) {
    q.Reject("{} batching dimensions of the operand, but {} of the indices", w.operand_batching.size(),
             w.indices_batching.size());
  }
  for (size_t i = 0; i < w.operand_batching.size(); ++i) {
    const int64_t d = w.operand_batching[i];
    if (Contains(w.dropped, d) || Contains(w.index_map, d)) {
      q.Reject("operand dimension {} is a batching dimension and must not be dropped or indexed", d);
    }
    if (w.indices_batching[i] == w.index_vector_dim) {
      q.Reject("batching dimension {} of the indices is the index vector's", w.indices_batching[i]);
    }
    if (w.operand.dimension(d) != w.indices.dimension(w.indices_batching[i])) {
      q.Reject("batching dimensions differ: operand dimension {} is {}, indices dimension {} is {}", d,
               w.operand.dimension(d), w.indices_batching[i], w.indices.dimension(w.indices_batching[i]));
    }
  }
}

}  // namespace

Shape Broadcast(const Query& q) {
  const Shape& operand = q.Array(0);
  const Shape result = q.Declared();
  const auto& dimensions = q.As<attr::Dimensions>().dimensions;
  if (!result.IsArray() || result.element_type() != operand.element_type()) {
    q.Reject("the operand is {}, but the result {}", operand.ToString(false), result.ToString(false));
  }
  if (static_cast<int64_t>(dimensions.size()) != operand.rank()) {
    q.Reject("dimensions must name a result dimension for each of the operand's {}, but name {}", operand.rank(),
             dimensions.size());
  }
  CheckDimensionNumbers(q, "dimensions", dimensions, result.rank());
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const int64_t d = dimensions[static_cast<size_t>(i)];
    if (operand.dimension(i) != result.dimension(d)) {
      q.Reject("operand dimension {} is {}, but result dimension {} is {}", i, operand.dimension(i), d,
               result.dimension(d));
    }
  }
  return result;
}

Shape Reshape(const Query& q) {
  const Shape& operand = q.Array(0);
  const Shape result = q.Declared();
  if (!result.IsArray() || result.element_type() != operand.element_type()) {
    q.Reject("the operand is {}, but the result {}", operand.ToString(false), result.ToString(false));
  }
  if (operand.ElementCount() != result.ElementCount()) {
    q.Reject("{} has {} elements, but the result {} has {}", operand.ToString(false), operand.ElementCount(),
             result.ToString(false), result.ElementCount());
  }
  return result;
}

Shape DynamicReshape(const Query& q) {
  const Shape& operand = q.Array(0);
  const Shape result = q.Declared();
  if (!result.IsArray() || result.element_type() != operand.element_type()) {
    q.Reject("the operand is {}, but the result {}", operand.ToString(false), result.ToString(false));
  }
  if (operand.ElementCount() != result.ElementCount()) {
    q.Reject("{} has {} elements at most, but the result {} has {}", operand.ToString(false), operand.ElementCount(),
             result.ToString(false), result.ElementCount());
  }
  if (q.operand_count() != 1 + result.rank()) {
    q.Reject("needs {} sizes, one for each result dimension, but has {}", result.rank(), q.operand_count() - 1);
  }
  for (int64_t i = 1; i < q.operand_count(); ++i) {
    if (!q.operand(i).IsScalar() || q.operand(i).element_type() != ElementType::kS32) {
      q.Reject("size {} must be s32[], but is {}", i - 1, q.operand(i).ToString(false));
    }
  }
  return result;
}

Shape Bitcast(const Query& q) {
  const Shape& operand = q.Array(0);
  const Shape result = q.Declared();
  if (!result.IsArray() || operand.ByteSize() != result.ByteSize()) {
    q.Reject("the operand {} and the result {} differ in bytes", operand.ToString(false), result.ToString(false));
  }
  return result;
}

Shape Transpose(const Query& q) {
  const Shape& operand = q.Array(0);
  const auto& permutation = q.As<attr::Dimensions>().dimensions;
  if (static_cast<int64_t>(permutation.size()) != operand.rank()) {
    q.Reject("dimensions must be a permutation of the {} dimensions of {}, but has {}", operand.rank(),
             operand.ToString(false), permutation.size());
  }
  CheckDimensionNumbers(q, "dimensions", permutation, operand.rank());
  Shape result = operand.WithoutLayout();
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const int64_t from = permutation[static_cast<size_t>(i)];
    result.mutable_dimensions()[static_cast<size_t>(i)] = operand.dimension(from);
    result.set_dynamic_dimension(i, operand.is_dynamic_dimension(from));
  }
  return result;
}

Shape Reverse(const Query& q) {
  CheckDimensionNumbers(q, "dimensions", q.As<attr::Dimensions>().dimensions, q.Array(0).rank());
  return q.operand(0).WithoutLayout();
}

Shape Slice(const Query& q) {
  const Shape& operand = q.Array(0);
  const auto& [starts, limits, strides] = q.As<attr::Slice>();
  const auto rank = static_cast<size_t>(operand.rank());
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank) {
    q.Reject("needs start, limit and stride for each of the {} dimensions of {}", rank, operand.ToString(false));
  }
  Shape result = operand.WithoutLayout();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = operand.dimensions()[i];
    if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > size || strides[i] <= 0) {
      q.Reject("[{}:{}:{}] does not fit into dimension {} of {}: 0 <= start <= limit <= {} and stride > 0 must hold",
               starts[i], limits[i], strides[i], i, operand.ToString(false), size);
    }
    const int64_t extent = limits[i] - starts[i];
    const int64_t count = extent == 0 ? 0 : (extent - 1) / strides[i] + 1;
    result.mutable_dimensions()[i] = count;
    // One element out of a dynamic dimension has a static size.
    if (count == 1) result.set_dynamic_dimension(static_cast<int64_t>(i), false);
  }
  return result;
}

Shape Pad(const Query& q) {
  const Shape& operand = q.Array(0);
  CheckSameType(q, 0, 1);
  if (!q.operand(1).IsScalar()) q.Reject("the padding value must be a scalar, but is {}", q.operand(1).ToString(false));
  const auto& padding = q.As<attr::Pad>().padding;
  if (static_cast<int64_t>(padding.size()) != operand.rank()) {
    q.Reject("padding has {} dimensions, but the operand {} has {}", padding.size(), operand.ToString(false),
             operand.rank());
  }
  Shape result = operand.WithoutLayout();
  for (size_t i = 0; i < padding.size(); ++i) {
    const auto& [low, high, interior] = padding[i];
    if (interior < 0) q.Reject("interior padding of dimension {} is {}, but must not be negative", i, interior);
    const int64_t size = operand.dimensions()[i];
    int64_t padded = 0;
    bool overflow = __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), interior, &padded);
    overflow |= __builtin_add_overflow(padded, size, &padded);
    overflow |= __builtin_add_overflow(padded, low, &padded);
    overflow |= __builtin_add_overflow(padded, high, &padded);
    if (overflow || padded < 0) {
      q.Reject("padding {}_{}_{} of dimension {} of {} gives no valid size", low, high, interior, i,
               operand.ToString(false));
    }
    result.mutable_dimensions()[i] = padded;
  }
  return result;
}

Shape Concatenate(const Query& q) {
  Shape result = q.Array(0).WithoutLayout();
  const int64_t dimension = SingleDimension(q, result.rank());
  int64_t total = result.dimension(dimension);
  for (int64_t i = 1; i < q.operand_count(); ++i) {
    const Shape& other = q.Array(i);
    CheckSameType(q, 0, i);
    bool fits = other.rank() == result.rank();
    for (int64_t d = 0; fits && d < result.rank(); ++d)
      fits = d == dimension || other.dimension(d) == result.dimension(d);
    if (!fits) {
      q.Reject("operands must agree in all dimensions but {}: {} and {}", dimension, q.operand(0).ToString(false),
               other.ToString(false));
    }
    total += other.dimension(dimension);
    CopyDynamic(other, &result);
  }
  result.mutable_dimensions()[static_cast<size_t>(dimension)] = total;
  return result;
}

Shape Iota(const Query& q) {
  const Shape result = q.Declared();
  if (!result.IsArray() || result.element_type() == ElementType::kPred) {
    q.Reject("the result must be an integer, floating or complex array, but is {}", result.ToString(false));
  }
  SingleDimension(q, result.rank());
  return result;
}

Shape DynamicSlice(const Query& q) {
  const Shape& operand = q.Array(0);
  CheckStarts(q, 1, operand.rank());
  const auto& sizes = q.As<attr::DynamicSlice>().sizes;
  if (static_cast<int64_t>(sizes.size()) != operand.rank()) {
    q.Reject("needs {} sizes, one for each dimension of {}, but has {}", operand.rank(), operand.ToString(false),
             sizes.size());
  }
  Shape result(operand.element_type(), sizes);
  for (int64_t i = 0; i < operand.rank(); ++i) {
    if (result.dimension(i) < 0 || result.dimension(i) > operand.dimension(i)) {
      q.Reject("size {} does not fit into dimension {} of {}", result.dimension(i), i, operand.ToString(false));
    }
    // A whole dynamic dimension stays dynamic; a part of it has the size asked for.
    if (operand.is_dynamic_dimension(i) && result.dimension(i) == operand.dimension(i) && result.dimension(i) > 1) {
      result.set_dynamic_dimension(i, true);
    }
  }
  return result;
}

Shape DynamicUpdateSlice(const Query& q) {
  const Shape& operand = q.Array(0);
  const Shape& update = q.Array(1);
  CheckSameType(q, 0, 1);
  CheckStarts(q, 2, operand.rank());
  bool fits = update.rank() == operand.rank();
  for (int64_t d = 0; fits && d < operand.rank(); ++d) fits = update.dimension(d) <= operand.dimension(d);
  if (!fits) q.Reject("the update {} does not fit into {}", update.ToString(false), operand.ToString(false));
  Shape result = operand.WithoutLayout();
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (update.is_dynamic_dimension(d) && update.dimension(d) == operand.dimension(d)) {
      result.set_dynamic_dimension(d, true);
    }
  }
  return result;
}

Shape Gather(const Query& q) {
  const auto& g = q.As<attr::Gather>();
  const IndexedWindows w{q.Array(0),
                         q.Array(1),
                         g.index_vector_dim,
                         g.start_index_map,
                         g.collapsed_slice_dims,
                         g.operand_batching_dims,
                         g.start_indices_batching_dims};
  CheckIndexedWindows(q, w);
  if (static_cast<int64_t>(g.slice_sizes.size()) != w.operand.rank()) {
    q.Reject("needs {} slice sizes, one for each dimension of {}, but has {}", w.operand.rank(),
             w.operand.ToString(false), g.slice_sizes.size());
  }
  std::vector<int64_t> window_dimensions;
  for (int64_t d = 0; d < w.operand.rank(); ++d) {
    const int64_t size = g.slice_sizes[static_cast<size_t>(d)];
    if (size < 0 || size > w.operand.dimension(d)) {
      q.Reject("slice size {} does not fit into dimension {} of {}", size, d, w.operand.ToString(false));
    }
    if (w.IsWindowDimension(d)) {
      window_dimensions.push_back(d);
    } else if (size > 1) {
      q.Reject("dimension {} is collapsed or batching, so its slice size must be 1, but is {}", d, size);
    }
  }
  const std::vector<int64_t> batch = w.BatchDimensions();
  const auto rank = static_cast<int64_t>(g.offset_dims.size() + batch.size());
  CheckDimensionNumbers(q, "offset_dims", g.offset_dims, rank);
  CheckSorted(q, "offset_dims", g.offset_dims);
  if (g.offset_dims.size() != window_dimensions.size()) {
    q.Reject("offset_dims has {} dimensions, but a slice keeps {} of the operand's", g.offset_dims.size(),
             window_dimensions.size());
  }
  Shape result(w.operand.element_type(), Dims(static_cast<size_t>(rank)));
  size_t next_window = 0;
  size_t next_batch = 0;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t& size = result.mutable_dimensions()[static_cast<size_t>(d)];
    if (Contains(g.offset_dims, d)) {
      const int64_t from = window_dimensions[next_window++];
      size = g.slice_sizes[static_cast<size_t>(from)];
      result.set_dynamic_dimension(d, w.operand.is_dynamic_dimension(from) && size == w.operand.dimension(from));
    } else {
      const int64_t from = batch[next_batch++];
      size = w.indices.dimension(from);
      result.set_dynamic_dimension(d, w.indices.is_dynamic_dimension(from));
    }
  }
  return result;
}

Shape Scatter(const Query& q) {
  if (q.operand_count() < 3 || q.operand_count() % 2 == 0) {
    q.Reject("needs n operands, the indices and n updates, but has {} operands", q.operand_count());
  }
  const int64_t n = q.operand_count() / 2;
  const auto& s = q.As<attr::Scatter>();
  const IndexedWindows w{q.Array(0),
                         q.Array(n),
                         s.index_vector_dim,
                         s.scatter_dims_to_operand_dims,
                         s.inserted_window_dims,
                         s.input_batching_dims,
                         s.scatter_indices_batching_dims};
  CheckIndexedWindows(q, w);
  const std::vector<int64_t> batch = w.BatchDimensions();
  std::vector<int64_t> window_dimensions;
  for (int64_t d = 0; d < w.operand.rank(); ++d) {
    if (w.IsWindowDimension(d)) window_dimensions.push_back(d);
  }
  if (s.update_window_dims.size() != window_dimensions.size()) {
    q.Reject("update_window_dims has {} dimensions, but a window keeps {} of the operand's",
             s.update_window_dims.size(), window_dimensions.size());
  }
  const auto update_rank = static_cast<int64_t>(s.update_window_dims.size() + batch.size());
  CheckDimensionNumbers(q, "update_window_dims", s.update_window_dims, update_rank);
  CheckSorted(q, "update_window_dims", s.update_window_dims);
  std::vector<Shape> results;
  std::vector<ElementType> types;
  for (int64_t i = 0; i < n; ++i) {
    const Shape& operand = q.Array(i);
    const Shape& update = q.Array(n + 1 + i);
    if (operand.dimensions() != w.operand.dimensions()) {
      q.Reject("operands differ in dimensions: {} and {}", w.operand.ToString(false), operand.ToString(false));
    }
    if (!SameTypeIgnoringPrecision(update.element_type(), operand.element_type())) {
      q.Reject("the updates {} cannot be combined with {}", update.ToString(false), operand.ToString(false));
    }
    if (update.dimensions() != q.Array(n + 1).dimensions()) {
      q.Reject("updates differ in dimensions: {} and {}", q.Array(n + 1).ToString(false), update.ToString(false));
    }
    if (update.rank() != update_rank) {
      q.Reject("the updates {} must have {} dimensions: {} of windows and {} of indices", update.ToString(false),
               update_rank, s.update_window_dims.size(), batch.size());
    }
    size_t next_window = 0;
    size_t next_batch = 0;
    for (int64_t d = 0; d < update_rank; ++d) {
      if (Contains(s.update_window_dims, d)) {
        const int64_t bound = operand.dimension(window_dimensions[next_window++]);
        if (update.dimension(d) > bound) {
          q.Reject("window dimension {} of the updates {} exceeds the operand's {}", d, update.ToString(false), bound);
        }
      } else if (const int64_t expected = w.indices.dimension(batch[next_batch++]); update.dimension(d) != expected) {
        q.Reject("dimension {} of the updates {} must be {} as in the indices {}", d, update.ToString(false), expected,
                 w.indices.ToString(false));
      }
    }
    results.push_back(operand.WithoutLayout());
    types.push_back(operand.element_type());
  }
  ReducerTypes(q, 0, types);  // may be of another precision: what it gives is rounded to the operand's type
  return OneOrTuple(std::move(results));
}

Shape GetDimensionSize(const Query& q) {
  SingleDimension(q, q.Array(0).rank());
  return Shape::Scalar(ElementType::kS32);
}

Shape SetDimensionSize(const Query& q) {
  Shape result = q.Array(0).WithoutLayout();
  const int64_t dimension = SingleDimension(q, result.rank());
  if (!q.Array(1).IsScalar() || q.operand(1).element_type() != ElementType::kS32) {
    q.Reject("the size must be s32[], but is {}", q.operand(1).ToString(false));
  }
  // A size that is known to be the bound makes the dimension static again, which only the declared shape can say.
  const bool declared_static =
      q.has_declared() && q.declared.rank() == result.rank() && !q.declared.is_dynamic_dimension(dimension);
  result.set_dynamic_dimension(dimension, !declared_static);
  return result;
}

}  // namespace hlorun::hlo::shape_rules
