// The names of each opcode's attributes in HLO text, once for reading and printing: Fields(visitor, payload) names the
// members of a payload struct, in the order in which XLA prints them. A visitor reads or prints each.
//
// A visitor has `opcode`, and these calls. "Optional" attributes are not printed at their default.
//   Int, Ints, Bool, Float, Text (in quotes), Word, Enum, Single (one integer in braces)   always printed, required
//   OptionalInt, OptionalInts, Flag (false by default), OptionalText, ...                  left out at their default
#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include "hlo/attributes.h"
#include "hlo/opcode.h"

namespace hlorun::hlo {

template <typename Enum>
struct EnumName {
  std::string_view name;
  Enum value;
};

inline constexpr std::array kDirectionNames = {EnumName<ComparisonDirection>{"EQ", ComparisonDirection::kEq},
                                               EnumName<ComparisonDirection>{"NE", ComparisonDirection::kNe},
                                               EnumName<ComparisonDirection>{"LT", ComparisonDirection::kLt},
                                               EnumName<ComparisonDirection>{"LE", ComparisonDirection::kLe},
                                               EnumName<ComparisonDirection>{"GT", ComparisonDirection::kGt},
                                               EnumName<ComparisonDirection>{"GE", ComparisonDirection::kGe}};
inline constexpr std::array kComparisonTypeNames = {EnumName<ComparisonType>{"FLOAT", ComparisonType::kFloat},
                                                    EnumName<ComparisonType>{"TOTALORDER", ComparisonType::kTotalOrder},
                                                    EnumName<ComparisonType>{"SIGNED", ComparisonType::kSigned},
                                                    EnumName<ComparisonType>{"UNSIGNED", ComparisonType::kUnsigned}};
inline constexpr std::array kFusionKindNames = {
    EnumName<FusionKind>{"kLoop", FusionKind::kLoop}, EnumName<FusionKind>{"kInput", FusionKind::kInput},
    EnumName<FusionKind>{"kOutput", FusionKind::kOutput}, EnumName<FusionKind>{"kCustom", FusionKind::kCustom}};
inline constexpr std::array kFftTypeNames = {
    EnumName<FftType>{"FFT", FftType::kFft}, EnumName<FftType>{"IFFT", FftType::kIfft},
    EnumName<FftType>{"RFFT", FftType::kRfft}, EnumName<FftType>{"IRFFT", FftType::kIrfft}};
inline constexpr std::array kDistributionNames = {EnumName<RngDistribution>{"rng_uniform", RngDistribution::kUniform},
                                                  EnumName<RngDistribution>{"rng_normal", RngDistribution::kNormal}};
inline constexpr std::array kAlgorithmNames = {EnumName<RngAlgorithm>{"rng_default", RngAlgorithm::kDefault},
                                               EnumName<RngAlgorithm>{"rng_three_fry", RngAlgorithm::kThreeFry},
                                               EnumName<RngAlgorithm>{"rng_philox", RngAlgorithm::kPhilox}};
inline constexpr std::array kTransposeNames = {
    EnumName<TransposeKind>{"NO_TRANSPOSE", TransposeKind::kNoTranspose},
    EnumName<TransposeKind>{"TRANSPOSE", TransposeKind::kTranspose},
    EnumName<TransposeKind>{"ADJOINT", TransposeKind::kAdjoint},
    EnumName<TransposeKind>{"TRANSPOSE_INVALID", TransposeKind::kNoTranspose}};
inline constexpr std::array kPrecisionNames = {EnumName<Precision>{"default", Precision::kDefault},
                                               EnumName<Precision>{"high", Precision::kHigh},
                                               EnumName<Precision>{"highest", Precision::kHighest},
                                               EnumName<Precision>{"packed_nibble", Precision::kPackedNibble}};

// The payload as the visitor sees it: printing visitors take it const.
template <typename Visitor, typename Payload>
using PayloadOf = std::conditional_t<Visitor::kReading, Payload, const Payload>;

#define HLO_FIELDS(payload)   \
  template <typename Visitor> \
  void Fields([[maybe_unused]] Visitor& v, [[maybe_unused]] PayloadOf<Visitor, attr::payload>& a)

HLO_FIELDS(None) {}
HLO_FIELDS(Constant) {}  // its value stands between the parentheses
HLO_FIELDS(Parameter) { v.OptionalBools("parameter_replication", a.replication); }
HLO_FIELDS(Compare) {
  v.Enum("direction", kDirectionNames, a.direction);
  v.OptionalEnum("type", kComparisonTypeNames, a.type);
}
HLO_FIELDS(Dimensions) {
  if (v.opcode == Opcode::kIota) {
    v.ScalarList("iota_dimension", a.dimensions);
  } else if (v.opcode == Opcode::kBroadcast || v.opcode == Opcode::kMap) {
    v.DefaultInts("dimensions", a.dimensions);
  } else {
    v.Ints("dimensions", a.dimensions);
  }
}
HLO_FIELDS(Reshape) { v.OptionalInt("inferred_dimension", a.inferred_dimension, -1); }
HLO_FIELDS(Slice) { v.SliceRanges("slice", a); }
HLO_FIELDS(DynamicSlice) { v.Ints("dynamic_slice_sizes", a.sizes); }
HLO_FIELDS(Pad) { v.PaddingConfig("padding", a.padding); }
HLO_FIELDS(Dot) {
  v.OptionalInts("lhs_batch_dims", a.lhs_batch);
  v.DefaultInts("lhs_contracting_dims", a.lhs_contracting);
  v.OptionalInts("rhs_batch_dims", a.rhs_batch);
  v.DefaultInts("rhs_contracting_dims", a.rhs_contracting);
  v.OptionalInts("lhs_ragged_dims", a.lhs_ragged);
  v.OptionalInts("rhs_group_dims", a.rhs_group);
  v.Precisions("operand_precision", a.precision);
  v.OptionalWord("algorithm", a.algorithm);
}
HLO_FIELDS(Convolution) {
  v.WindowDims("window", a.window);
  v.ConvolutionLabels("dim_labels", a.dimensions);
  v.OptionalInt("feature_group_count", a.feature_group_count, 1);
  v.OptionalInt("batch_group_count", a.batch_group_count, 1);
  v.Precisions("operand_precision", a.precision);
}
HLO_FIELDS(Windowed) { v.WindowDims("window", a.window); }
HLO_FIELDS(Gather) {
  v.Ints("offset_dims", a.offset_dims);
  v.Ints("collapsed_slice_dims", a.collapsed_slice_dims);
  v.Ints("start_index_map", a.start_index_map);
  v.OptionalInts("operand_batching_dims", a.operand_batching_dims);
  v.OptionalInts("start_indices_batching_dims", a.start_indices_batching_dims);
  v.Int("index_vector_dim", a.index_vector_dim);
  v.Ints("slice_sizes", a.slice_sizes);
  v.Flag("indices_are_sorted", a.indices_are_sorted);
}
HLO_FIELDS(Scatter) {
  v.Ints("update_window_dims", a.update_window_dims);
  v.Ints("inserted_window_dims", a.inserted_window_dims);
  v.Ints("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims);
  v.OptionalInts("input_batching_dims", a.input_batching_dims);
  v.OptionalInts("scatter_indices_batching_dims", a.scatter_indices_batching_dims);
  v.Int("index_vector_dim", a.index_vector_dim);
  v.Flag("indices_are_sorted", a.indices_are_sorted);
  v.Flag("unique_indices", a.unique_indices);
}
HLO_FIELDS(Sort) {
  v.Single("dimensions", a.dimension);
  v.Flag("is_stable", a.is_stable);
}
HLO_FIELDS(Scan) {
  v.Single("dimensions", a.scan_dimension);
  v.Int("num_carries", a.num_carries);
  v.Flag("is_reverse", a.is_reverse);
  v.OptionalWord("is_associative", a.is_associative);
}
HLO_FIELDS(TopK) {
  v.Int("k", a.k);
  v.DefaultBool("largest", a.largest);
}
HLO_FIELDS(Collective) {
  v.MaybeInt("channel_id", a.channel_id);
  v.Groups("replica_groups", a.replica_groups);
  v.Flag("constrain_layout", a.constrain_layout);
  v.Flag("use_global_device_ids", a.use_global_device_ids);
  v.MaybeSingle("dimensions", a.dimension);
}
HLO_FIELDS(CollectivePermute) {
  v.MaybeInt("channel_id", a.channel_id);
  v.Pairs("source_target_pairs", a.source_target_pairs);
  v.OptionalIntLists("slice_sizes", a.slice_sizes);
}
HLO_FIELDS(Call) {
  v.Flag("is_composite", a.is_composite);
  v.Aliasing("output_to_operand_aliasing", a.output_operand_aliasing);
}
HLO_FIELDS(CustomCall) {
  v.OptionalWindow("window", a.window);
  v.OptionalLabels("dim_labels", a.dimensions);
  v.OptionalInt("feature_group_count", a.feature_group_count, 1);
  v.OptionalInt("batch_group_count", a.batch_group_count, 1);
  v.Precisions("operand_precision", a.precision);
  v.OptionalWord("padding_type", a.padding_type);
  v.Text("custom_call_target", a.target);
  v.OperandLayouts("operand_layout_constraints", a.layout_constrained, a.operand_layouts);
  v.Flag("custom_call_has_side_effect", a.has_side_effect);
  v.OptionalLiteral("literal", a.literal);
  v.Aliasing("output_to_operand_aliasing", a.output_operand_aliasing);
  v.OptionalWord("schedule", a.schedule);
  v.OptionalWord("api_version", a.api_version);
}
HLO_FIELDS(Fusion) {
  v.Enum("kind", kFusionKindNames, a.kind);
  v.Aliasing("output_to_operand_aliasing", a.output_operand_aliasing);
}
HLO_FIELDS(TupleIndex) { v.Int("index", a.index); }
HLO_FIELDS(BatchNorm) {
  v.Float("epsilon", a.epsilon);
  v.Int("feature_index", a.feature_index);
}
HLO_FIELDS(Fft) {
  v.Enum("fft_type", kFftTypeNames, a.type);
  v.Ints("fft_length", a.length);
}
// These two follow the proto's defaults where an attribute is absent: false.
HLO_FIELDS(Cholesky) { v.Flag("lower", a.lower); }
HLO_FIELDS(TriangularSolve) {
  v.Flag("left_side", a.left_side);
  v.Flag("lower", a.lower);
  v.Flag("unit_diagonal", a.unit_diagonal);
  v.DefaultEnum("transpose_a", kTransposeNames, a.transpose_a);
}
HLO_FIELDS(ReducePrecision) {
  v.Int("exponent_bits", a.exponent_bits);
  v.Int("mantissa_bits", a.mantissa_bits);
}
HLO_FIELDS(Rng) { v.Enum("distribution", kDistributionNames, a.distribution); }
HLO_FIELDS(RngBitGenerator) { v.Enum("algorithm", kAlgorithmNames, a.algorithm); }
HLO_FIELDS(RngState) { v.Int("delta", a.delta); }
HLO_FIELDS(Feed) {
  if (v.opcode == Opcode::kOutfeed) v.OptionalShape("outfeed_shape", a.outfeed_shape);
  v.OptionalText(v.opcode == Opcode::kOutfeed ? "outfeed_config" : "infeed_config", a.config);
}
HLO_FIELDS(Transfer) {
  v.MaybeInt("channel_id", a.channel_id);
  v.Flag("is_host_transfer", a.is_host_transfer);
}
HLO_FIELDS(Async) {
  // The later steps of an async chain take the thread from its start.
  if (v.opcode == Opcode::kAsyncStart || Visitor::kReading)
    v.OptionalText("async_execution_thread", a.execution_thread);
}
HLO_FIELDS(CopyStart) { v.MaybeInt("cross_program_prefetch_index", a.cross_program_prefetch_index); }
HLO_FIELDS(Domain) { v.Raw("domain", a.text); }

#undef HLO_FIELDS

// The attributes that name called computations, in the order of Instruction::called_computations().
struct CalledNames {
  std::array<std::string_view, 2> names;  // the second may be empty
};
inline CalledNames CalledNamesOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWhile: return {{"condition", "body"}};
    case Opcode::kSelectAndScatter: return {{"select", "scatter"}};
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone: return {{"calls", ""}};
    default: return {{"to_apply", ""}};
  }
}

}  // namespace hlorun::hlo
