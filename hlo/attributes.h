// The attributes of each opcode, as small typed structs; which one an opcode carries is in the opcode table.
//
// Names and meanings are those of HLO text. Called computations are not attributes: Instruction owns that list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "hlo/literal.h"
#include "hlo/shape.h"

namespace hlorun::hlo {

// One dimension of a window (convolution, reduce-window, select-and-scatter).
struct WindowDimension {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t padding_low = 0;  // may be negative
  int64_t padding_high = 0;
  int64_t window_dilation = 1;  // rhs_dilate
  int64_t base_dilation = 1;    // lhs_dilate
  bool window_reversal = false;
  // Each element alone.
  bool IsPointwise() const {
    return size == 1 && stride == 1 && padding_low == 0 && padding_high == 0 && base_dilation == 1;
  }
  bool operator==(const WindowDimension&) const = default;
};
using Window = std::vector<WindowDimension>;

struct PaddingDimension {
  int64_t low = 0;
  int64_t high = 0;
  int64_t interior = 0;
  bool operator==(const PaddingDimension&) const = default;
};

// Groups of replica or partition ids. Kept as written: a list of groups, or iota form [2,4]<=[4,2]T(1,0).
struct ReplicaGroups {
  std::vector<std::vector<int64_t>> groups;  // list form; empty with no iota: one group of all
  // Iota form: reshape(transpose(iota(reshape_dims), transpose_permutation), [group_count, group_size]).
  int64_t group_count = 0;  // 0: list form
  int64_t group_size = 0;
  std::vector<int64_t> reshape_dims;
  std::vector<int64_t> transpose_permutation;
  std::string mesh_form;  // v3 text ("mesh['a'=2,'b'=4] {'a'}") kept verbatim; groups then hold its expansion
  // The groups in list form, whichever form was written.
  std::vector<std::vector<int64_t>> Expanded() const;
  bool operator==(const ReplicaGroups&) const = default;
};

enum class ComparisonDirection : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class ComparisonType : uint8_t { kFloat, kTotalOrder, kSigned, kUnsigned };
enum class FusionKind : uint8_t { kLoop, kInput, kOutput, kCustom };
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
enum class RngDistribution : uint8_t { kUniform, kNormal };
enum class RngAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };
enum class TransposeKind : uint8_t { kNoTranspose, kTranspose, kAdjoint };
enum class Precision : uint8_t { kDefault, kHigh, kHighest, kPackedNibble };

namespace attr {

struct None {
  bool operator==(const None&) const = default;
};
struct Parameter {
  int64_t number = 0;
  std::vector<bool> replication;  // parameter_replication; empty when absent
  bool operator==(const Parameter&) const = default;
};
struct Constant {
  Literal value;
  bool elided = false;  // "{...}": the value is zero-filled and must not be used
  bool operator==(const Constant&) const = default;
};
struct Compare {
  ComparisonDirection direction = ComparisonDirection::kEq;
  std::optional<ComparisonType> type;  // absent: by the operands' type
  bool operator==(const Compare&) const = default;
};
// broadcast, transpose, reverse, reduce, map: dimensions; concatenate, iota, get/set-dimension-size: one of them.
struct Dimensions {
  std::vector<int64_t> dimensions;
  bool operator==(const Dimensions&) const = default;
};
struct Reshape {
  int64_t inferred_dimension = -1;
  bool operator==(const Reshape&) const = default;
};
struct Slice {
  std::vector<int64_t> starts, limits, strides;
  bool operator==(const Slice&) const = default;
};
struct DynamicSlice {
  std::vector<int64_t> sizes;
  bool operator==(const DynamicSlice&) const = default;
};
struct Pad {
  std::vector<PaddingDimension> padding;
  bool operator==(const Pad&) const = default;
};
struct Dot {
  std::vector<int64_t> lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  std::vector<int64_t> lhs_ragged, rhs_group;  // ragged-dot only
  std::vector<Precision> precision;            // operand_precision; empty when absent
  std::string algorithm;                       // "dot_bf16_bf16_f32", ...; empty when absent
  bool operator==(const Dot&) const = default;
};
// dim_labels=b01f_01io->b01f
struct ConvolutionDimensions {
  int64_t input_batch = 0, input_feature = 0;
  std::vector<int64_t> input_spatial;
  int64_t kernel_input_feature = 0, kernel_output_feature = 0;
  std::vector<int64_t> kernel_spatial;
  int64_t output_batch = 0, output_feature = 0;
  std::vector<int64_t> output_spatial;
  bool operator==(const ConvolutionDimensions&) const = default;
};
struct Convolution {
  Window window;
  ConvolutionDimensions dimensions;
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  std::vector<Precision> precision;
  bool operator==(const Convolution&) const = default;
};
struct Windowed {
  Window window;
  bool operator==(const Windowed&) const = default;
};
struct Gather {
  std::vector<int64_t> offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims, slice_sizes;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool operator==(const Gather&) const = default;
};
struct Scatter {
  std::vector<int64_t> update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool unique_indices = false;
  bool operator==(const Scatter&) const = default;
};
struct Sort {
  int64_t dimension = 0;
  bool is_stable = false;
  bool operator==(const Sort&) const = default;
};
struct Scan {
  int64_t scan_dimension = 0;
  bool is_reverse = false;
  int64_t num_carries = 0;
  std::string is_associative;  // as written; empty when absent
  bool operator==(const Scan&) const = default;
};
struct TopK {
  int64_t k = 0;
  bool largest = true;
  bool operator==(const TopK&) const = default;
};
// all-reduce, reduce-scatter, all-gather, all-to-all, collective-broadcast, ragged-all-to-all and their starts.
struct Collective {
  ReplicaGroups replica_groups;
  std::optional<int64_t> channel_id;
  bool use_global_device_ids = false;
  bool constrain_layout = false;
  std::optional<int64_t> dimension;  // dimensions={d} of gather and scatter forms; absent: tuple-form all-to-all
  bool operator==(const Collective&) const = default;
};
struct CollectivePermute {
  std::vector<std::pair<int64_t, int64_t>> source_target_pairs;
  std::optional<int64_t> channel_id;
  std::vector<std::vector<int64_t>> slice_sizes;  // in-place form
  bool operator==(const CollectivePermute&) const = default;
};
struct Call {
  bool is_composite = false;
  std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>> output_operand_aliasing;
  bool operator==(const Call&) const = default;
};
struct CustomCall {
  std::string target;
  std::string opaque;       // backend_config="..." string of the call
  std::string api_version;  // "API_VERSION_TYPED_FFI", ...; empty when absent
  bool has_side_effect = false;
  std::vector<Shape> operand_layouts;  // operand_layout_constraints; empty when absent
  bool layout_constrained = false;
  // output_to_operand_aliasing={{out}: (operand, {in})}
  std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>> output_operand_aliasing;
  std::optional<Window> window;
  std::optional<ConvolutionDimensions> dimensions;
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  std::string schedule;  // SCHEDULE_LATEST, ...; empty when absent
  std::string padding_type;
  std::vector<Precision> precision;
  std::optional<Literal> literal;
  bool operator==(const CustomCall&) const = default;
};
struct Fusion {
  FusionKind kind = FusionKind::kLoop;
  std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>> output_operand_aliasing;
  bool operator==(const Fusion&) const = default;
};
struct TupleIndex {
  int64_t index = 0;
  bool operator==(const TupleIndex&) const = default;
};
struct BatchNorm {
  float epsilon = 0;
  int64_t feature_index = 0;
  bool operator==(const BatchNorm&) const = default;
};
struct Fft {
  FftType type = FftType::kFft;
  std::vector<int64_t> length;
  bool operator==(const Fft&) const = default;
};
struct Cholesky {
  bool lower = true;
  bool operator==(const Cholesky&) const = default;
};
struct TriangularSolve {
  bool left_side = true, lower = true, unit_diagonal = false;
  TransposeKind transpose_a = TransposeKind::kNoTranspose;
  bool operator==(const TriangularSolve&) const = default;
};
struct ReducePrecision {
  int64_t exponent_bits = 8, mantissa_bits = 23;
  bool operator==(const ReducePrecision&) const = default;
};
struct Rng {
  RngDistribution distribution = RngDistribution::kUniform;
  bool operator==(const Rng&) const = default;
};
struct RngBitGenerator {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  bool operator==(const RngBitGenerator&) const = default;
};
struct RngState {
  int64_t delta = 0;
  bool operator==(const RngState&) const = default;
};
struct Feed {
  std::string config;  // infeed_config / outfeed_config
  std::optional<Shape> outfeed_shape;
  bool operator==(const Feed&) const = default;
};
struct Transfer {
  std::optional<int64_t> channel_id;
  bool is_host_transfer = false;
  bool operator==(const Transfer&) const = default;
};
struct Async {
  std::string execution_thread;  // async_execution_thread; empty when absent
  bool operator==(const Async&) const = default;
};
struct CopyStart {
  std::optional<int64_t> cross_program_prefetch_index;
  bool operator==(const CopyStart&) const = default;
};
struct Domain {
  std::string text;  // domain={...} as written
  bool operator==(const Domain&) const = default;
};

}  // namespace attr

using Attributes =
    std::variant<attr::None, attr::Parameter, attr::Constant, attr::Compare, attr::Dimensions, attr::Reshape,
                 attr::Slice, attr::DynamicSlice, attr::Pad, attr::Dot, attr::Convolution, attr::Windowed, attr::Gather,
                 attr::Scatter, attr::Sort, attr::Scan, attr::TopK, attr::Collective, attr::CollectivePermute,
                 attr::Call, attr::CustomCall, attr::Fusion, attr::TupleIndex, attr::BatchNorm, attr::Fft,
                 attr::Cholesky, attr::TriangularSolve, attr::ReducePrecision, attr::Rng, attr::RngBitGenerator,
                 attr::RngState, attr::Feed, attr::Transfer, attr::Async, attr::CopyStart, attr::Domain>;

}  // namespace hlorun::hlo
