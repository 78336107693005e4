#include "hlo/proto/annotation_proto.h"

#include <algorithm>

#include "hlo/proto/shape_proto.h"
#include "hlo/text/metadata_text.h"
#include "hlo/text/shape_reader.h"

namespace hlorun::hlo {
namespace {

// --- statistics={visualizing_index=0,stat-1=0.33} ---

std::string StatisticsText(const proto::StatisticsViz& message) {
  std::string text = fmt::format("{{visualizing_index={}", message.stat_index_to_visualize());
  for (const proto::Statistic& s : message.statistics()) text += fmt::format(",{}={}", s.stat_name(), s.stat_val());
  return text + "}";
}

void StatisticsToProto(Lexer& lexer, proto::HloInstructionProto* message) {
  proto::StatisticsViz* statistics = message->mutable_statistics_viz();
  lexer.Expect('{', "'{' of statistics");
  while (!lexer.Accept('}')) {
    const std::string name(lexer.ExpectWord("a statistic's name"));
    lexer.Expect('=', "'=' behind a statistic's name");
    if (name == "visualizing_index") {
      statistics->set_stat_index_to_visualize(lexer.ExpectInt("an index"));
    } else {
      proto::Statistic* statistic = statistics->add_statistics();
      statistic->set_stat_name(name);
      statistic->set_stat_val(lexer.ExpectDouble("a number"));
    }
    lexer.Accept(',');
  }
}

// --- result_accuracy={mode=highest} or {tolerance={atol=0.1,rtol=0.2,ulps=3}} ---

std::string ResultAccuracyText(const proto::ResultAccuracy& message) {
  if (message.specs_case() == proto::ResultAccuracy::kTolerance) {
    const proto::ResultAccuracy::Tolerance& t = message.tolerance();
    return fmt::format("{{tolerance={{atol={},rtol={},ulps={}}}}}", t.atol(), t.rtol(), t.ulps());
  }
  return message.mode() == proto::ResultAccuracy::HIGHEST ? "{mode=highest}" : "{mode=default}";
}

void ToleranceToProto(Lexer& lexer, proto::ResultAccuracy::Tolerance* tolerance) {
  lexer.Expect('{', "'{' of a tolerance");
  while (!lexer.Accept('}')) {
    const std::string_view name = lexer.ExpectWord("atol, rtol or ulps");
    lexer.Expect('=', "'=' in a tolerance");
    if (name == "ulps") {
      tolerance->set_ulps(lexer.ExpectInt("a number of ulps"));
    } else {
      const double value = lexer.ExpectDouble("a number");
      name == "atol" ? tolerance->set_atol(value) : tolerance->set_rtol(value);
    }
    lexer.Accept(',');
  }
}

void ResultAccuracyToProto(Lexer& lexer, proto::HloInstructionProto* message) {
  proto::ResultAccuracy* accuracy = message->mutable_result_accuracy();
  lexer.Expect('{', "'{' of result_accuracy");
  while (!lexer.Accept('}')) {
    const std::string_view name = lexer.ExpectWord("mode or tolerance");
    lexer.Expect('=', "'=' in result_accuracy");
    if (name == "mode") {
      accuracy->set_mode(lexer.ExpectWord("a mode") == "highest" ? proto::ResultAccuracy::HIGHEST
                                                                 : proto::ResultAccuracy::DEFAULT);
    } else {
      ToleranceToProto(lexer, accuracy->mutable_tolerance());
    }
    lexer.Accept(',');
  }
}

// --- origin={({"x" {0}}, {"y"})}: the instruction that each leaf of the value came from, nested as its tuple is ---

std::string OriginLeaf(const proto::OriginalArrayProto& array) {
  std::string text = fmt::format("{{\"{}\"", Escape(array.instruction_name()));
  if (array.shape_index_size() > 0) text += fmt::format(" {{{}}}", fmt::join(array.shape_index(), ","));
  return text + "}";
}

std::string OriginTree(const Shape& shape, const ShapeIndex& index, const proto::OriginalValueProto& message) {
  if (shape.IsTuple()) {
    std::string text = "(";
    for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
      ShapeIndex inner = index;
      inner.push_back(static_cast<int64_t>(i));
      text += (i > 0 ? ", " : "") + OriginTree(shape.tuple_shapes()[i], inner, message);
    }
    return text + ")";
  }
  for (const proto::OriginalValueElementProto& element : message.elements()) {
    if (ToVector(element.shape_index()) == index && element.has_original_array()) {
      return OriginLeaf(element.original_array());
    }
  }
  return "{}";
}

std::string OriginText(const Shape& shape, const proto::OriginalValueProto& message) {
  if (message.is_synthetic_call()) return "{[synthetic_call]}";
  return "{" + OriginTree(shape, {}, message) + "}";
}

constexpr int kMaxNesting = 200;

void OriginTreeToProto(Lexer& lexer, const ShapeIndex& index, proto::OriginalValueProto* value) {
  if (index.size() > kMaxNesting) lexer.FailHere("the origin is nested too deep");
  if (lexer.Accept('(')) {
    ShapeIndex inner = index;
    inner.push_back(0);
    while (!lexer.Accept(')')) {
      OriginTreeToProto(lexer, inner, value);
      ++inner.back();
      lexer.Accept(',');
    }
    return;
  }
  lexer.Expect('{', "'{' of an origin");
  proto::OriginalValueElementProto* element = value->add_elements();
  Assign(index, element->mutable_shape_index());
  if (lexer.Accept('}')) return;
  proto::OriginalArrayProto* array = element->mutable_original_array();
  array->set_instruction_name(lexer.ExpectString("an instruction's name in quotes"));
  if (lexer.Is('{')) Assign(ReadInts(lexer, "an index in braces"), array->mutable_shape_index());
  lexer.Expect('}', "'}' of an origin");
}

void OriginToProto(Lexer& lexer, proto::HloInstructionProto* message) {
  proto::OriginalValueProto* value = message->mutable_original_value();
  lexer.Expect('{', "'{' of an origin");
  if (lexer.Is('[')) {
    value->set_is_synthetic_call(lexer.ExpectBalanced("[synthetic_call]") == "[synthetic_call]");
  } else {
    OriginTreeToProto(lexer, {}, value);
  }
  lexer.Expect('}', "'}' of an origin");
}

struct AnnotationReader {
  std::string_view name;
  void (*to_proto)(Lexer&, proto::HloInstructionProto*);
};
constexpr AnnotationReader kAnnotations[] = {
    {"statistics", StatisticsToProto}, {"result_accuracy", ResultAccuracyToProto}, {"origin", OriginToProto}};

// Fields of metadata that only some writers of protos set, as text prints them.
constexpr std::string_view kProfileType = "profile_type={";

}  // namespace

Metadata MetadataFromProto(const proto::OpMetadata& message) {
  Metadata metadata;
  metadata.op_type = message.op_type();
  metadata.op_name = message.op_name();
  metadata.source_file = message.source_file();
  metadata.source_line = message.source_line();
  metadata.source_end_line = message.source_end_line();
  metadata.source_column = message.source_column();
  metadata.source_end_column = message.source_end_column();
  metadata.stack_frame_id = message.stack_frame_id();
  metadata.deduplicated_name = message.deduplicated_name();
  metadata.scheduling_name = message.scheduling_name();
  if (message.profile_type_size() > 0) {
    metadata.verbatim = fmt::format("{}{}}}", kProfileType, fmt::join(message.profile_type(), ","));
  }
  return metadata;
}

void MetadataToProto(const Metadata& metadata, proto::OpMetadata* message) {
  message->set_op_type(metadata.op_type);
  message->set_op_name(metadata.op_name);
  message->set_source_file(metadata.source_file);
  message->set_source_line(static_cast<int32_t>(metadata.source_line));
  message->set_source_end_line(static_cast<int32_t>(metadata.source_end_line));
  message->set_source_column(static_cast<int32_t>(metadata.source_column));
  message->set_source_end_column(static_cast<int32_t>(metadata.source_end_column));
  message->set_stack_frame_id(static_cast<int32_t>(metadata.stack_frame_id));
  message->set_deduplicated_name(metadata.deduplicated_name);
  message->set_scheduling_name(metadata.scheduling_name);
  const size_t types = metadata.verbatim.find(kProfileType);
  if (types == std::string::npos) return;
  Lexer lexer(std::string_view(metadata.verbatim).substr(types + kProfileType.size() - 1), "<metadata>");
  for (int64_t type : ReadInts(lexer, "profile types")) message->add_profile_type(static_cast<int32_t>(type));
}

std::string MetadataListText(const google::protobuf::RepeatedPtrField<proto::OpMetadata>& list) {
  if (list.empty()) return "";
  std::string text;
  for (const proto::OpMetadata& message : list) {
    text += (text.empty() ? "" : ", ") + PrintMetadata(MetadataFromProto(message));
  }
  return list.size() == 1 ? text : "{" + text + "}";
}

void MetadataListFromText(const std::string& text, google::protobuf::RepeatedPtrField<proto::OpMetadata>* list) {
  if (text.empty()) return;
  Lexer lexer(text, "<metadata>");
  Lexer ahead = lexer;
  ahead.Next();
  const bool several = ahead.Is('{');
  if (several) lexer.Next();
  do {
    MetadataToProto(ReadMetadata(lexer), list->Add());
  } while (several && lexer.Accept(','));
}

std::map<std::string, std::string> FrontendAttributesFromProto(const proto::FrontendAttributes& message) {
  std::map<std::string, std::string> attributes;
  for (const auto& entry : message.map()) attributes[entry.key()] = entry.value();
  return attributes;
}

void FrontendAttributesToProto(const std::map<std::string, std::string>& attributes,
                               proto::FrontendAttributes* message) {
  for (const auto& [key, value] : attributes) {
    proto::FrontendAttributes::MapEntry* entry = message->add_map();
    entry->set_key(key);
    entry->set_value(value);
  }
}

void UnknownAttributesFromProto(const proto::HloInstructionProto& message, Instruction* instruction) {
  auto& unknown = instruction->unknown_attributes;
  if (message.statistics_viz().statistics_size() > 0) {
    unknown.emplace_back("statistics", StatisticsText(message.statistics_viz()));
  }
  if (message.result_accuracy().specs_case() != proto::ResultAccuracy::SPECS_NOT_SET) {
    unknown.emplace_back("result_accuracy", ResultAccuracyText(message.result_accuracy()));
  }
  if (message.has_original_value()) {
    unknown.emplace_back("origin", OriginText(instruction->shape(), message.original_value()));
  }
  // Names that the text has no way to write are an error here, not when the module is written again.
  proto::HloInstructionProto scratch;
  if (!unknown.empty()) UnknownAttributesToProto(*instruction, &scratch);
}

void UnknownAttributesToProto(const Instruction& instruction, proto::HloInstructionProto* message) {
  message->mutable_statistics_viz();
  for (const auto& [name, text] : instruction.unknown_attributes) {
    for (const AnnotationReader& annotation : kAnnotations) {
      if (annotation.name != name) continue;
      Lexer lexer(text, "<attribute>");
      annotation.to_proto(lexer, message);
    }
  }
}

StackFrameTables StackFramesFromProto(const proto::StackFrameIndexProto& message) {
  StackFrameTables tables;
  tables.file_names.assign(message.file_names().begin(), message.file_names().end());
  tables.function_names.assign(message.function_names().begin(), message.function_names().end());
  for (const auto& l : message.file_locations()) {
    tables.locations.push_back(
        {l.file_name_id(), l.function_name_id(), l.line(), l.end_line(), l.column(), l.end_column()});
  }
  for (const auto& f : message.stack_frames()) {
    // The text's parent is one more than the message's, which has 0 for none.
    tables.frames.push_back({f.file_location_id(), int64_t{f.parent_frame_id()} + 1});
  }
  return tables;
}

void StackFramesToProto(const StackFrameTables& tables, proto::StackFrameIndexProto* message) {
  for (const std::string& name : tables.file_names) message->add_file_names(name);
  for (const std::string& name : tables.function_names) message->add_function_names(name);
  for (const StackFrameTables::Location& l : tables.locations) {
    proto::StackFrameIndexProto::FileLocation* location = message->add_file_locations();
    location->set_file_name_id(static_cast<int32_t>(l.file_name_id));
    location->set_function_name_id(static_cast<int32_t>(l.function_name_id));
    location->set_line(static_cast<int32_t>(l.line));
    location->set_end_line(static_cast<int32_t>(l.end_line));
    location->set_column(static_cast<int32_t>(l.column));
    location->set_end_column(static_cast<int32_t>(l.end_column));
  }
  for (const StackFrameTables::Frame& f : tables.frames) {
    proto::StackFrameIndexProto::StackFrame* frame = message->add_stack_frames();
    frame->set_file_location_id(static_cast<int32_t>(f.file_location_id));
    frame->set_parent_frame_id(static_cast<int32_t>(std::max<int64_t>(f.parent_frame_id - 1, 0)));
  }
}

}  // namespace hlorun::hlo
