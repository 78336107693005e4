#include "hlo/proto/attribute_proto.h"

#include <algorithm>
#include <cctype>

#include "hlo/error.h"
#include "hlo/proto/literal_proto.h"
#include "hlo/proto/shape_proto.h"
#include "hlo/proto/sharding_proto.h"
#include "hlo/text/lexer.h"
#include "hlo/text/parser.h"

namespace hlorun::hlo {
namespace {

using Message = proto::HloInstructionProto;

// What a reader or writer may need besides the payload and the message.
struct Context {
  Opcode opcode;
  const std::vector<Instruction*>& operands;
  const Shape* shape = nullptr;  // when writing
};

template <typename Enum>
struct Named {
  Enum value;
  std::string_view name;
};

constexpr Named<ComparisonDirection> kDirections[] = {
    {ComparisonDirection::kEq, "EQ"}, {ComparisonDirection::kNe, "NE"}, {ComparisonDirection::kLt, "LT"},
    {ComparisonDirection::kLe, "LE"}, {ComparisonDirection::kGt, "GT"}, {ComparisonDirection::kGe, "GE"}};
constexpr Named<ComparisonType> kComparisonTypes[] = {{ComparisonType::kFloat, "FLOAT"},
                                                      {ComparisonType::kTotalOrder, "TOTALORDER"},
                                                      {ComparisonType::kSigned, "SIGNED"},
                                                      {ComparisonType::kUnsigned, "UNSIGNED"}};
constexpr Named<FusionKind> kFusionKinds[] = {{FusionKind::kLoop, "kLoop"},
                                              {FusionKind::kInput, "kInput"},
                                              {FusionKind::kOutput, "kOutput"},
                                              {FusionKind::kCustom, "kCustom"}};

template <typename Enum, size_t N>
Enum FromName(const Named<Enum> (&names)[N], const std::string& name) {
  for (const Named<Enum>& row : names) {
    if (row.name == name) return row.value;
  }
  Invalid("'{}' is none of the names that this field may have, such as {}", name, names[0].name);
}

template <typename Enum, size_t N>
std::string ToName(const Named<Enum> (&names)[N], Enum value) {
  for (const Named<Enum>& row : names) {
    if (row.value == value) return std::string(row.name);
  }
  FailCheck("the enumerator has a name", __FILE__, __LINE__);
}

// Generated enums start at 0 and are dense; unknown values of newer writers are errors.
template <typename Enum, typename Generated>
Enum CheckedEnum(Generated value, Generated last, std::string_view what) {
  if (value < 0 || value > last) Invalid("{} {} is not known to hlorun", what, static_cast<int>(value));
  return static_cast<Enum>(value);
}

// --- pieces that several payloads share ---

Window WindowFromProto(const proto::Window& message) {
  Window window;
  for (const proto::WindowDimension& d : message.dimensions()) {
    window.push_back({d.size(), d.stride(), d.padding_low(), d.padding_high(), d.window_dilation(), d.base_dilation(),
                      d.window_reversal()});
  }
  return window;
}

void WindowToProto(const Window& window, proto::Window* message) {
  for (const WindowDimension& d : window) {
    proto::WindowDimension* to = message->add_dimensions();
    to->set_size(d.size);
    to->set_stride(d.stride);
    to->set_padding_low(d.padding_low);
    to->set_padding_high(d.padding_high);
    to->set_window_dilation(d.window_dilation);
    to->set_base_dilation(d.base_dilation);
    to->set_window_reversal(d.window_reversal);
  }
}

// Batch, feature and spatial dimensions of one array: each of its dimensions once.
void CheckLabels(int64_t first, int64_t second, std::vector<int64_t> dims) {
  dims.insert(dims.end(), {first, second});
  std::sort(dims.begin(), dims.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<int64_t>(i)) Invalid("its dimension numbers do not name each dimension once");
  }
}

attr::ConvolutionDimensions ConvolutionFromProto(const proto::ConvolutionDimensionNumbers& m) {
  attr::ConvolutionDimensions d;
  d.input_batch = m.input_batch_dimension();
  d.input_feature = m.input_feature_dimension();
  d.input_spatial = ToVector(m.input_spatial_dimensions());
  d.kernel_input_feature = m.kernel_input_feature_dimension();
  d.kernel_output_feature = m.kernel_output_feature_dimension();
  d.kernel_spatial = ToVector(m.kernel_spatial_dimensions());
  d.output_batch = m.output_batch_dimension();
  d.output_feature = m.output_feature_dimension();
  d.output_spatial = ToVector(m.output_spatial_dimensions());
  CheckLabels(d.input_batch, d.input_feature, d.input_spatial);
  CheckLabels(d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial);
  CheckLabels(d.output_batch, d.output_feature, d.output_spatial);
  return d;
}

void ConvolutionToProto(const attr::ConvolutionDimensions& d, proto::ConvolutionDimensionNumbers* m) {
  m->set_input_batch_dimension(d.input_batch);
  m->set_input_feature_dimension(d.input_feature);
  Assign(d.input_spatial, m->mutable_input_spatial_dimensions());
  m->set_kernel_input_feature_dimension(d.kernel_input_feature);
  m->set_kernel_output_feature_dimension(d.kernel_output_feature);
  Assign(d.kernel_spatial, m->mutable_kernel_spatial_dimensions());
  m->set_output_batch_dimension(d.output_batch);
  m->set_output_feature_dimension(d.output_feature);
  Assign(d.output_spatial, m->mutable_output_spatial_dimensions());
}

// Empty when all are default, as text leaves them out then.
std::vector<Precision> PrecisionsFromProto(const proto::PrecisionConfig& message) {
  std::vector<Precision> precisions;
  for (int p : message.operand_precision()) {
    precisions.push_back(CheckedEnum<Precision>(static_cast<proto::PrecisionConfig::Precision>(p),
                                                proto::PrecisionConfig::PACKED_NIBBLE, "precision"));
  }
  const bool all_default =
      std::all_of(precisions.begin(), precisions.end(), [](Precision p) { return p == Precision::kDefault; });
  return all_default ? std::vector<Precision>{} : precisions;
}

void PrecisionsToProto(std::vector<Precision> precisions, size_t operands, proto::PrecisionConfig* message) {
  if (precisions.empty()) precisions.assign(operands, Precision::kDefault);
  for (Precision p : precisions) {
    message->add_operand_precision(static_cast<proto::PrecisionConfig::Precision>(p));
  }
}

constexpr std::string_view kAlgorithmPrefix = "ALG_";

std::string AlgorithmText(proto::PrecisionConfig::Algorithm algorithm) {
  if (algorithm == proto::PrecisionConfig::ALG_UNSET) return "";
  std::string name = proto::PrecisionConfig::Algorithm_Name(algorithm);
  if (name.empty()) Invalid("dot algorithm {} is not known to hlorun", static_cast<int>(algorithm));
  name.erase(0, kAlgorithmPrefix.size());
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

proto::PrecisionConfig::Algorithm AlgorithmFromText(const std::string& text) {
  std::string name(kAlgorithmPrefix);
  for (unsigned char c : text) name += static_cast<char>(std::toupper(c));
  proto::PrecisionConfig::Algorithm algorithm = proto::PrecisionConfig::ALG_UNSET;
  if (!text.empty() && !proto::PrecisionConfig::Algorithm_Parse(name, &algorithm)) {
    Invalid("the dot algorithm '{}' has no binary form", text);
  }
  return algorithm;
}

using Aliasing = std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>>;

Aliasing AliasingFromProto(const Message& message) {
  Aliasing aliasing;
  for (const proto::OutputOperandAliasing& a : message.output_operand_aliasing()) {
    aliasing.push_back({ToVector(a.output_shape_index()), {a.operand_index(), ToVector(a.operand_shape_index())}});
  }
  return aliasing;
}

void AliasingToProto(const Aliasing& aliasing, Message* message) {
  for (const auto& [output, operand] : aliasing) {
    proto::OutputOperandAliasing* to = message->add_output_operand_aliasing();
    Assign(output, to->mutable_output_shape_index());
    to->set_operand_index(operand.first);
    Assign(operand.second, to->mutable_operand_shape_index());
  }
}

std::optional<int64_t> ChannelFromProto(const Message& message) {
  if (message.channel_id() > 0) return message.channel_id();
  if (message.all_reduce_id() > 0) return message.all_reduce_id();
  return std::nullopt;
}

// How a type is compared where nothing else is said.
ComparisonType DefaultComparison(const Context& context) {
  const ElementType type = context.operands.empty() ? ElementType::kF32 : context.operands[0]->shape().element_type();
  if (IsFloating(type) || IsComplex(type)) return ComparisonType::kFloat;
  return IsSigned(type) ? ComparisonType::kSigned : ComparisonType::kUnsigned;
}

// --- each payload: Read from the message, Write to it ---

void Read(const Context&, const Message&, attr::None*) {}
void Write(const Context&, const attr::None&, Message*) {}

void Read(const Context&, const Message& m, attr::Parameter* a) {
  a->number = m.parameter_number();
  const auto& flags = m.parameter_replication().replicated_at_leaf_buffers();
  a->replication.assign(flags.begin(), flags.end());
}
void Write(const Context&, const attr::Parameter& a, Message* m) {
  m->set_parameter_number(a.number);
  for (bool flag : a.replication) m->mutable_parameter_replication()->add_replicated_at_leaf_buffers(flag);
}

void Read(const Context&, const Message& m, attr::Constant* a) {
  if (!m.has_literal()) Invalid("a constant has no value");
  a->value = LiteralFromProto(m.literal());
}
void Write(const Context& c, const attr::Constant& a, Message* m) {
  if (a.elided) Invalid("a constant was read as {{...}} and has no value to write; read the text with --fill_elided");
  LiteralToProto(a.value, *c.shape, m->mutable_literal());
}

void Read(const Context& c, const Message& m, attr::Compare* a) {
  a->direction = FromName(kDirections, m.comparison_direction());
  if (m.comparison_type().empty()) return;
  const ComparisonType type = FromName(kComparisonTypes, m.comparison_type());
  if (type != DefaultComparison(c)) a->type = type;
}
void Write(const Context& c, const attr::Compare& a, Message* m) {
  m->set_comparison_direction(ToName(kDirections, a.direction));
  m->set_comparison_type(ToName(kComparisonTypes, a.type.value_or(DefaultComparison(c))));
}

void Read(const Context&, const Message& m, attr::Dimensions* a) { a->dimensions = ToVector(m.dimensions()); }
void Write(const Context&, const attr::Dimensions& a, Message* m) { Assign(a.dimensions, m->mutable_dimensions()); }

void Read(const Context&, const Message& m, attr::Reshape* a) {
  if (m.dimensions_size() > 0) a->inferred_dimension = m.dimensions(0);
}
void Write(const Context&, const attr::Reshape& a, Message* m) {
  if (a.inferred_dimension >= 0) m->add_dimensions(a.inferred_dimension);
}

void Read(const Context&, const Message& m, attr::Slice* a) {
  for (const Message::SliceDimensions& d : m.slice_dimensions()) {
    a->starts.push_back(d.start());
    a->limits.push_back(d.limit());
    a->strides.push_back(d.stride());
  }
}
void Write(const Context&, const attr::Slice& a, Message* m) {
  for (size_t i = 0; i < a.starts.size(); ++i) {
    Message::SliceDimensions* d = m->add_slice_dimensions();
    d->set_start(a.starts[i]);
    d->set_limit(a.limits[i]);
    d->set_stride(a.strides[i]);
  }
}

void Read(const Context&, const Message& m, attr::DynamicSlice* a) { a->sizes = ToVector(m.dynamic_slice_sizes()); }
void Write(const Context&, const attr::DynamicSlice& a, Message* m) {
  Assign(a.sizes, m->mutable_dynamic_slice_sizes());
}

void Read(const Context&, const Message& m, attr::Pad* a) {
  for (const auto& d : m.padding_config().dimensions()) {
    a->padding.push_back({d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
  }
}
void Write(const Context&, const attr::Pad& a, Message* m) {
  proto::PaddingConfig* config = m->mutable_padding_config();
  for (const PaddingDimension& d : a.padding) {
    proto::PaddingConfig::PaddingConfigDimension* to = config->add_dimensions();
    to->set_edge_padding_low(d.low);
    to->set_edge_padding_high(d.high);
    to->set_interior_padding(d.interior);
  }
}

void Read(const Context&, const Message& m, attr::Dot* a) {
  const bool ragged = m.has_ragged_dot_dimension_numbers();
  const proto::DotDimensionNumbers& n =
      ragged ? m.ragged_dot_dimension_numbers().dot_dimension_numbers() : m.dot_dimension_numbers();
  a->lhs_contracting = ToVector(n.lhs_contracting_dimensions());
  a->rhs_contracting = ToVector(n.rhs_contracting_dimensions());
  a->lhs_batch = ToVector(n.lhs_batch_dimensions());
  a->rhs_batch = ToVector(n.rhs_batch_dimensions());
  if (ragged) {
    a->lhs_ragged = ToVector(m.ragged_dot_dimension_numbers().lhs_ragged_dimensions());
    a->rhs_group = ToVector(m.ragged_dot_dimension_numbers().rhs_group_dimensions());
  }
  a->precision = PrecisionsFromProto(m.precision_config());
  a->algorithm = AlgorithmText(m.precision_config().algorithm());
}
void Write(const Context& c, const attr::Dot& a, Message* m) {
  const bool ragged = c.opcode == Opcode::kRaggedDot;
  proto::DotDimensionNumbers* n = ragged ? m->mutable_ragged_dot_dimension_numbers()->mutable_dot_dimension_numbers()
                                         : m->mutable_dot_dimension_numbers();
  Assign(a.lhs_contracting, n->mutable_lhs_contracting_dimensions());
  Assign(a.rhs_contracting, n->mutable_rhs_contracting_dimensions());
  Assign(a.lhs_batch, n->mutable_lhs_batch_dimensions());
  Assign(a.rhs_batch, n->mutable_rhs_batch_dimensions());
  if (ragged) {
    Assign(a.lhs_ragged, m->mutable_ragged_dot_dimension_numbers()->mutable_lhs_ragged_dimensions());
    Assign(a.rhs_group, m->mutable_ragged_dot_dimension_numbers()->mutable_rhs_group_dimensions());
  }
  PrecisionsToProto(a.precision, 2, m->mutable_precision_config());
  m->mutable_precision_config()->set_algorithm(AlgorithmFromText(a.algorithm));
}

void Read(const Context&, const Message& m, attr::Convolution* a) {
  if (m.sparsity_config().has_lhs() || m.sparsity_config().has_rhs()) {
    Fail(ErrorCode::kUnimplemented, "hlorun has no sparse convolution");
  }
  a->window = WindowFromProto(m.window());
  a->dimensions = ConvolutionFromProto(m.convolution_dimension_numbers());
  a->feature_group_count = std::max<int64_t>(m.feature_group_count(), 1);
  a->batch_group_count = std::max<int64_t>(m.batch_group_count(), 1);
  a->precision = PrecisionsFromProto(m.precision_config());
}
void Write(const Context&, const attr::Convolution& a, Message* m) {
  WindowToProto(a.window, m->mutable_window());
  ConvolutionToProto(a.dimensions, m->mutable_convolution_dimension_numbers());
  m->set_feature_group_count(a.feature_group_count);
  m->set_batch_group_count(a.batch_group_count);
  PrecisionsToProto(a.precision, 2, m->mutable_precision_config());
  m->mutable_sparsity_config();
}

void Read(const Context&, const Message& m, attr::Windowed* a) { a->window = WindowFromProto(m.window()); }
void Write(const Context&, const attr::Windowed& a, Message* m) { WindowToProto(a.window, m->mutable_window()); }

void Read(const Context&, const Message& m, attr::Gather* a) {
  const proto::GatherDimensionNumbers& n = m.gather_dimension_numbers();
  a->offset_dims = ToVector(n.offset_dims());
  a->collapsed_slice_dims = ToVector(n.collapsed_slice_dims());
  a->start_index_map = ToVector(n.start_index_map());
  a->operand_batching_dims = ToVector(n.operand_batching_dims());
  a->start_indices_batching_dims = ToVector(n.start_indices_batching_dims());
  a->index_vector_dim = n.index_vector_dim();
  a->slice_sizes = ToVector(m.gather_slice_sizes());
  a->indices_are_sorted = m.indices_are_sorted();
}
void Write(const Context&, const attr::Gather& a, Message* m) {
  proto::GatherDimensionNumbers* n = m->mutable_gather_dimension_numbers();
  Assign(a.offset_dims, n->mutable_offset_dims());
  Assign(a.collapsed_slice_dims, n->mutable_collapsed_slice_dims());
  Assign(a.start_index_map, n->mutable_start_index_map());
  Assign(a.operand_batching_dims, n->mutable_operand_batching_dims());
  Assign(a.start_indices_batching_dims, n->mutable_start_indices_batching_dims());
  n->set_index_vector_dim(a.index_vector_dim);
  Assign(a.slice_sizes, m->mutable_gather_slice_sizes());
  m->set_indices_are_sorted(a.indices_are_sorted);
}

void Read(const Context&, const Message& m, attr::Scatter* a) {
  const proto::ScatterDimensionNumbers& n = m.scatter_dimension_numbers();
  a->update_window_dims = ToVector(n.update_window_dims());
  a->inserted_window_dims = ToVector(n.inserted_window_dims());
  a->scatter_dims_to_operand_dims = ToVector(n.scatter_dims_to_operand_dims());
  a->input_batching_dims = ToVector(n.input_batching_dims());
  a->scatter_indices_batching_dims = ToVector(n.scatter_indices_batching_dims());
  a->index_vector_dim = n.index_vector_dim();
  a->indices_are_sorted = m.indices_are_sorted();
  a->unique_indices = m.unique_indices();
}
void Write(const Context&, const attr::Scatter& a, Message* m) {
  proto::ScatterDimensionNumbers* n = m->mutable_scatter_dimension_numbers();
  Assign(a.update_window_dims, n->mutable_update_window_dims());
  Assign(a.inserted_window_dims, n->mutable_inserted_window_dims());
  Assign(a.scatter_dims_to_operand_dims, n->mutable_scatter_dims_to_operand_dims());
  Assign(a.input_batching_dims, n->mutable_input_batching_dims());
  Assign(a.scatter_indices_batching_dims, n->mutable_scatter_indices_batching_dims());
  n->set_index_vector_dim(a.index_vector_dim);
  m->set_indices_are_sorted(a.indices_are_sorted);
  m->set_unique_indices(a.unique_indices);
}

int64_t OneDimension(const Message& m) {
  if (m.dimensions_size() != 1) Invalid("needs one dimension, but has {}", m.dimensions_size());
  return m.dimensions(0);
}

void Read(const Context&, const Message& m, attr::Sort* a) {
  a->dimension = OneDimension(m);
  a->is_stable = m.is_stable();
}
void Write(const Context&, const attr::Sort& a, Message* m) {
  m->add_dimensions(a.dimension);
  m->set_is_stable(a.is_stable);
}

void Read(const Context&, const Message& m, attr::Scan* a) {
  a->scan_dimension = OneDimension(m);
  a->is_reverse = m.is_reverse();
  a->num_carries = m.num_carries();
  if (m.is_associative() != proto::TRI_STATE_UNSPECIFIED) {
    a->is_associative = m.is_associative() == proto::TRI_STATE_TRUE ? "true" : "false";
  }
}
void Write(const Context&, const attr::Scan& a, Message* m) {
  m->add_dimensions(a.scan_dimension);
  m->set_is_reverse(a.is_reverse);
  m->set_num_carries(a.num_carries);
  m->set_is_associative(a.is_associative == "true" ? proto::TRI_STATE_TRUE : proto::TRI_STATE_FALSE);
}

void Read(const Context&, const Message& m, attr::TopK* a) {
  a->k = m.k();
  a->largest = m.largest();
}
void Write(const Context&, const attr::TopK& a, Message* m) {
  m->set_k(a.k);
  m->set_largest(a.largest);
}

void Read(const Context&, const Message& m, attr::Collective* a) {
  a->replica_groups = ReplicaGroupsFromProto(m);
  a->channel_id = ChannelFromProto(m);
  a->use_global_device_ids = m.use_global_device_ids();
  a->constrain_layout = m.constrain_layout();
  if (m.dimensions_size() > 0) a->dimension = OneDimension(m);
}
void Write(const Context&, const attr::Collective& a, Message* m) {
  ReplicaGroupsToProto(a.replica_groups, m);
  m->set_channel_id(a.channel_id.value_or(0));
  m->set_use_global_device_ids(a.use_global_device_ids);
  m->set_constrain_layout(a.constrain_layout);
  if (a.dimension.has_value()) m->add_dimensions(*a.dimension);
}

// The in-place form's slice sizes have one entry for each dimension of the input, list after list.
void Read(const Context& c, const Message& m, attr::CollectivePermute* a) {
  for (const proto::SourceTarget& pair : m.source_target_pairs()) {
    a->source_target_pairs.emplace_back(pair.source(), pair.target());
  }
  a->channel_id = ChannelFromProto(m);
  const auto rank = c.operands.empty() ? int64_t{1} : std::max<int64_t>(1, c.operands[0]->shape().rank());
  const std::vector<int64_t> sizes = ToVector(m.dynamic_slice_sizes());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (static_cast<int64_t>(i) % rank == 0) a->slice_sizes.emplace_back();
    a->slice_sizes.back().push_back(sizes[i]);
  }
}
void Write(const Context&, const attr::CollectivePermute& a, Message* m) {
  for (const auto& [source, target] : a.source_target_pairs) {
    proto::SourceTarget* pair = m->add_source_target_pairs();
    pair->set_source(source);
    pair->set_target(target);
  }
  m->set_channel_id(a.channel_id.value_or(0));
  for (const std::vector<int64_t>& sizes : a.slice_sizes) Assign(sizes, m->mutable_dynamic_slice_sizes());
}

void Read(const Context&, const Message& m, attr::Call* a) {
  a->is_composite = m.is_composite();
  a->output_operand_aliasing = AliasingFromProto(m);
}
void Write(const Context&, const attr::Call& a, Message* m) {
  m->set_is_composite(a.is_composite);
  AliasingToProto(a.output_operand_aliasing, m);
}

void Read(const Context&, const Message& m, attr::CustomCall* a) {
  a->target = m.custom_call_target();
  a->opaque = m.backend_config();
  // Text leaves the original version out.
  if (m.custom_call_api_version() != proto::API_VERSION_ORIGINAL) {
    a->api_version = proto::CustomCallApiVersion_Name(m.custom_call_api_version());
  }
  a->has_side_effect = m.custom_call_has_side_effect();
  a->layout_constrained = m.constrain_layout();
  for (const proto::ShapeProto& shape : m.operand_shapes_with_layout()) {
    a->operand_layouts.push_back(ShapeFromProto(shape));
  }
  a->output_operand_aliasing = AliasingFromProto(m);
  if (m.has_window()) a->window = WindowFromProto(m.window());
  if (m.has_convolution_dimension_numbers()) a->dimensions = ConvolutionFromProto(m.convolution_dimension_numbers());
  a->feature_group_count = std::max<int64_t>(m.feature_group_count(), 1);
  a->batch_group_count = std::max<int64_t>(m.batch_group_count(), 1);
  if (m.custom_call_schedule() != proto::SCHEDULE_NONE) {
    a->schedule = proto::CustomCallSchedule_Name(m.custom_call_schedule());
  }
  if (m.padding_type() != proto::PADDING_INVALID) a->padding_type = proto::PaddingType_Name(m.padding_type());
  a->precision = PrecisionsFromProto(m.precision_config());
  if (m.has_literal()) a->literal = LiteralFromProto(m.literal());
}
void Write(const Context& c, const attr::CustomCall& a, Message* m) {
  m->set_custom_call_target(a.target);
  m->set_backend_config(a.opaque);
  proto::CustomCallApiVersion version = proto::API_VERSION_ORIGINAL;
  if (!a.api_version.empty() && !proto::CustomCallApiVersion_Parse(a.api_version, &version)) {
    Invalid("'{}' is no API version of a custom call", a.api_version);
  }
  m->set_custom_call_api_version(version);
  m->set_custom_call_has_side_effect(a.has_side_effect);
  m->set_constrain_layout(a.layout_constrained);
  for (const Shape& shape : a.operand_layouts) ShapeToProto(shape, m->add_operand_shapes_with_layout());
  AliasingToProto(a.output_operand_aliasing, m);
  if (a.window.has_value()) WindowToProto(*a.window, m->mutable_window());
  if (a.dimensions.has_value()) ConvolutionToProto(*a.dimensions, m->mutable_convolution_dimension_numbers());
  m->set_feature_group_count(a.feature_group_count);
  m->set_batch_group_count(a.batch_group_count);
  proto::CustomCallSchedule schedule = proto::SCHEDULE_NONE;
  if (!a.schedule.empty() && !proto::CustomCallSchedule_Parse(a.schedule, &schedule)) {
    Invalid("'{}' is no schedule of a custom call", a.schedule);
  }
  m->set_custom_call_schedule(schedule);
  proto::PaddingType padding = proto::PADDING_INVALID;
  if (!a.padding_type.empty() && !proto::PaddingType_Parse(a.padding_type, &padding)) {
    Invalid("'{}' is no padding type", a.padding_type);
  }
  m->set_padding_type(padding);
  PrecisionsToProto(a.precision, c.operands.size(), m->mutable_precision_config());
  if (a.literal.has_value()) LiteralToProto(*a.literal, a.literal->shape(), m->mutable_literal());
}

void Read(const Context&, const Message& m, attr::Fusion* a) {
  a->kind = FromName(kFusionKinds, m.fusion_kind());
  a->output_operand_aliasing = AliasingFromProto(m);
}
void Write(const Context&, const attr::Fusion& a, Message* m) {
  m->set_fusion_kind(ToName(kFusionKinds, a.kind));
  AliasingToProto(a.output_operand_aliasing, m);
}

void Read(const Context&, const Message& m, attr::TupleIndex* a) { a->index = m.tuple_index(); }
void Write(const Context&, const attr::TupleIndex& a, Message* m) { m->set_tuple_index(a.index); }

void Read(const Context&, const Message& m, attr::BatchNorm* a) {
  a->epsilon = m.epsilon();
  a->feature_index = m.feature_index();
}
void Write(const Context&, const attr::BatchNorm& a, Message* m) {
  m->set_epsilon(a.epsilon);
  m->set_feature_index(a.feature_index);
}

void Read(const Context&, const Message& m, attr::Fft* a) {
  a->type = CheckedEnum<FftType>(m.fft_type(), proto::IRFFT, "fft_type");
  a->length = ToVector(m.fft_length());
}
void Write(const Context&, const attr::Fft& a, Message* m) {
  m->set_fft_type(static_cast<proto::FftType>(a.type));
  Assign(a.length, m->mutable_fft_length());
}

void Read(const Context&, const Message& m, attr::Cholesky* a) { a->lower = m.cholesky_options().lower(); }
void Write(const Context&, const attr::Cholesky& a, Message* m) { m->mutable_cholesky_options()->set_lower(a.lower); }

void Read(const Context&, const Message& m, attr::TriangularSolve* a) {
  const proto::TriangularSolveOptions& o = m.triangular_solve_options();
  a->left_side = o.left_side();
  a->lower = o.lower();
  a->unit_diagonal = o.unit_diagonal();
  const auto transpose = std::max(static_cast<int>(o.transpose_a()), 1) - 1;
  a->transpose_a = CheckedEnum<TransposeKind>(transpose, 2, "transpose_a");
}
void Write(const Context&, const attr::TriangularSolve& a, Message* m) {
  proto::TriangularSolveOptions* o = m->mutable_triangular_solve_options();
  o->set_left_side(a.left_side);
  o->set_lower(a.lower);
  o->set_unit_diagonal(a.unit_diagonal);
  o->set_transpose_a(static_cast<proto::TriangularSolveOptions::Transpose>(static_cast<int>(a.transpose_a) + 1));
}

void Read(const Context&, const Message& m, attr::ReducePrecision* a) {
  a->exponent_bits = m.exponent_bits();
  a->mantissa_bits = m.mantissa_bits();
}
void Write(const Context&, const attr::ReducePrecision& a, Message* m) {
  m->set_exponent_bits(static_cast<int32_t>(a.exponent_bits));
  m->set_mantissa_bits(static_cast<int32_t>(a.mantissa_bits));
}

void Read(const Context&, const Message& m, attr::Rng* a) {
  if (m.distribution() != proto::RNG_UNIFORM && m.distribution() != proto::RNG_NORMAL) {
    Invalid("distribution {} is not known to hlorun", static_cast<int>(m.distribution()));
  }
  a->distribution = m.distribution() == proto::RNG_NORMAL ? RngDistribution::kNormal : RngDistribution::kUniform;
}
void Write(const Context&, const attr::Rng& a, Message* m) {
  m->set_distribution(a.distribution == RngDistribution::kNormal ? proto::RNG_NORMAL : proto::RNG_UNIFORM);
}

void Read(const Context&, const Message& m, attr::RngBitGenerator* a) {
  a->algorithm = CheckedEnum<RngAlgorithm>(m.rng_algorithm(), proto::RNG_PHILOX, "algorithm");
}
void Write(const Context&, const attr::RngBitGenerator& a, Message* m) {
  m->set_rng_algorithm(static_cast<proto::RandomAlgorithm>(a.algorithm));
}

void Read(const Context&, const Message& m, attr::RngState* a) { a->delta = m.delta(); }
void Write(const Context&, const attr::RngState& a, Message* m) { m->set_delta(a.delta); }

void Read(const Context& c, const Message& m, attr::Feed* a) {
  const bool out = c.opcode == Opcode::kOutfeed;
  a->config = out ? m.outfeed_config() : m.infeed_config();
  if (out && m.has_outfeed_shape()) a->outfeed_shape = ShapeFromProto(m.outfeed_shape());
}
void Write(const Context& c, const attr::Feed& a, Message* m) {
  if (c.opcode != Opcode::kOutfeed) {
    m->set_infeed_config(a.config);
    return;
  }
  m->set_outfeed_config(a.config);
  ShapeToProto(a.outfeed_shape.value_or(c.operands[0]->shape()), m->mutable_outfeed_shape());
}

void Read(const Context&, const Message& m, attr::Transfer* a) {
  a->channel_id = ChannelFromProto(m);
  a->is_host_transfer = m.is_host_transfer();
}
void Write(const Context&, const attr::Transfer& a, Message* m) {
  m->set_channel_id(a.channel_id.value_or(0));
  m->set_is_host_transfer(a.is_host_transfer);
}

void Read(const Context&, const Message& m, attr::Async* a) { a->execution_thread = m.async_execution_thread(); }
void Write(const Context&, const attr::Async& a, Message* m) { m->set_async_execution_thread(a.execution_thread); }

void Read(const Context&, const Message& m, attr::CopyStart* a) {
  if (m.optional_cross_program_prefetch_index_case() == Message::kCrossProgramPrefetchIndex) {
    a->cross_program_prefetch_index = m.cross_program_prefetch_index();
  } else if (m.is_cross_program_prefetch()) {
    a->cross_program_prefetch_index = 0;  // the older form
  }
}
void Write(const Context&, const attr::CopyStart& a, Message* m) {
  if (a.cross_program_prefetch_index.has_value()) {
    m->set_cross_program_prefetch_index(static_cast<int32_t>(*a.cross_program_prefetch_index));
  }
}

// What text calls the entry is the user's side; the message calls the operand's side so.
void Read(const Context&, const Message& m, attr::Domain* a) {
  a->text =
      fmt::format("{{kind=\"sharding\", entry={}, exit={}}}", ShardingFromProto(m.domain_exit_sharding()).ToString(),
                  ShardingFromProto(m.domain_entry_sharding()).ToString());
}
void Write(const Context&, const attr::Domain& a, Message* m) {
  Lexer lexer(a.text, "<domain>");
  lexer.Expect('{', "'{' of a domain");
  while (!lexer.Accept('}')) {
    const std::string_view name = lexer.ExpectWord("kind, entry or exit");
    lexer.Expect('=', "'=' in a domain");
    if (name == "kind") {
      lexer.ExpectString("the domain's kind in quotes");
    } else {
      const Sharding sharding = ParseSharding(lexer.ExpectBalanced("a sharding"));
      ShardingToProto(sharding,
                      name == "entry" ? m->mutable_domain_exit_sharding() : m->mutable_domain_entry_sharding());
    }
    lexer.Accept(',');
  }
}

template <typename Payload>
Attributes ReadAs(const Context& context, const Message& message) {
  Payload payload;
  Read(context, message, &payload);
  return payload;
}

using Reader = Attributes (*)(const Context&, const Message&);
constexpr Reader kReaders[] = {
#define HLO_ATTRIBUTE_READER(enumerator, name, arity, traits, payload) ReadAs<attr::payload>,
    HLO_OPCODES(HLO_ATTRIBUTE_READER)
#undef HLO_ATTRIBUTE_READER
};

}  // namespace

Attributes AttributesFromProto(Opcode opcode, const Message& message, const std::vector<Instruction*>& operands) {
  return kReaders[static_cast<size_t>(opcode)]({opcode, operands}, message);
}

void AttributesToProto(const Instruction& instruction, Message* message) {
  const Context context{instruction.opcode(), instruction.operands(), &instruction.shape()};
  std::visit([&](const auto& payload) { Write(context, payload, message); }, instruction.attributes());
}

}  // namespace hlorun::hlo
