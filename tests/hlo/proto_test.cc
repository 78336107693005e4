// Binary HLO: proto/*.pb are jaxlib 0.10.2's protos of proto/*.hlo (HloModule.as_serialized_hlo_module_proto).
#include "hlo/proto/proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "hlo/error.h"
#include "hlo/proto/hlo.pb.h"
#include "hlo/proto/literal_proto.h"
#include "hlo/proto/sharding_proto.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace hlorun::hlo {
namespace {

using testing::HasSubstr;

std::string ReadFile(const std::string& name) {
  std::ifstream file(std::string(HLORUN_TEST_FOLDER) + "/proto/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::string MessageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class JaxlibProtoTest : public testing::TestWithParam<const char*> {};

TEST_P(JaxlibProtoTest, HoldsWhatTheTextSays) {
  const std::string name = GetParam();
  const auto from_text = ParseModule(ReadFile(name + ".hlo"));
  const auto from_proto = ModuleFromProto(ReadFile(name + ".pb"), name + ".pb");
  EXPECT_EQ(PrintModule(*from_proto), PrintModule(*from_text));
}

TEST_P(JaxlibProtoTest, WhatWeWriteReadsBackTheSame) {
  const std::string name = GetParam();
  const auto module = ParseModule(ReadFile(name + ".hlo"));
  const std::string bytes = ModuleToProto(*module);
  const auto again = ModuleFromProto(bytes, "again.pb");
  EXPECT_EQ(PrintModule(*again), PrintModule(*module));
  EXPECT_EQ(ModuleToProto(*again), bytes);
}

// A cut is an error, unless it loses only the empty messages at the file's end.
TEST_P(JaxlibProtoTest, NoCutIsFatal) {
  const std::string bytes = ReadFile(std::string(GetParam()) + ".pb");
  const std::string whole = PrintModule(*ModuleFromProto(bytes, "whole.pb"));
  int errors = 0;
  int cuts = 0;
  for (size_t size = 0; size < bytes.size(); size += 7, ++cuts) {
    const std::string cut = bytes.substr(0, size);
    LooksLikeHloProto(cut);
    try {
      EXPECT_EQ(PrintModule(*ModuleFromProto(cut, "cut.pb")), whole) << size;
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GE(errors, cuts - 2);
}

TEST_P(JaxlibProtoTest, NoDamageIsFatal) {
  const std::string bytes = ReadFile(std::string(GetParam()) + ".pb");
  std::mt19937 random(42);
  int readable = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    for (int n = 0; n < 1 + round % 3; ++n) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    try {
      const auto module = ModuleFromProto(damaged, "damaged.pb");
      ++readable;
      PrintModule(*module);
      ModuleToProto(*module);
    } catch (const Error&) {
    }
  }
  EXPECT_GT(readable, 100);  // names and numbers may change without harm
}

INSTANTIATE_TEST_SUITE_P(Fixtures, JaxlibProtoTest, testing::Values("every_opcode", "annotated"),
                         [](const auto& info) { return std::string(info.param); });

// A length-delimited field of protocol buffers' wire format.
std::string Field(int number, const std::string& value) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  size_t size = value.size();
  for (; size >= 0x80; size >>= 7) bytes += static_cast<char>(size | 0x80);
  bytes += static_cast<char>(size);
  return bytes + value;
}

TEST(ProtoKindTest, FoundByContent) {
  const std::string module = ReadFile("annotated.pb");
  const std::string hlo = Field(1, module);
  proto::HloSnapshot snapshot;
  snapshot.mutable_hlo()->mutable_hlo_module()->ParseFromString(module);
  Literal argument(Shape(ElementType::kF32, {2}));
  argument.SetDouble(1, 1.5);
  LiteralToProto(argument, argument.shape(), snapshot.add_arguments());
  const std::string bytes = snapshot.SerializeAsString();

  const std::string expected = PrintModule(*ModuleFromProto(module, "m.pb"));
  for (const std::string& form : {module, hlo, bytes}) {
    EXPECT_TRUE(LooksLikeHloProto(form));
    EXPECT_EQ(PrintModule(*ModuleFromProto(form, "m.pb")), expected);
  }
  EXPECT_TRUE(ArgumentsFromSnapshot(module).empty());
  const std::vector<Literal> arguments = ArgumentsFromSnapshot(bytes);
  ASSERT_EQ(arguments.size(), 1u);
  EXPECT_EQ(arguments[0], argument);
}

TEST(ProtoKindTest, TextAndNoiseAreNone) {
  EXPECT_FALSE(LooksLikeHloProto(""));
  EXPECT_FALSE(LooksLikeHloProto("HloModule m\nENTRY e { ROOT x = f32[] constant(1) }"));
  EXPECT_FALSE(LooksLikeHloProto(ReadFile("every_opcode.hlo")));
  EXPECT_FALSE(LooksLikeHloProto(std::string(1000, '\0')));
  EXPECT_FALSE(LooksLikeHloProto(std::string(1000, '\xff')));
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string noise(200, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    EXPECT_FALSE(LooksLikeHloProto(noise));
  }
  EXPECT_THAT(MessageOf([] { ModuleFromProto("noise", "n.pb"); }), HasSubstr("n.pb: error: this is no HloModuleProto"));
}

TEST(ProtoErrorTest, MessagesNameTheInstruction) {
  proto::HloModuleProto message;
  message.ParseFromString(
      ModuleToProto(*ParseModule("HloModule m\nENTRY e { x = f32[2] parameter(0)\n"
                                 "ROOT y = f32[2] negate(x) }")));
  const auto with = [&](const std::function<void(proto::HloInstructionProto*)>& change) {
    proto::HloModuleProto copy = message;
    change(copy.mutable_computations(0)->mutable_instructions(1));
    return MessageOf([&] { ModuleFromProto(copy.SerializeAsString(), "m.pb"); });
  };
  EXPECT_THAT(with([](auto* i) { i->set_opcode("frobnicate"); }),
              HasSubstr("m.pb: error: computation e: instruction %y: the opcode 'frobnicate' is not known"));
  EXPECT_THAT(with([](auto* i) { i->set_operand_ids(0, 7); }), HasSubstr("operand 7 is not one of the instructions"));
  EXPECT_THAT(with([](auto* i) { i->clear_operand_ids(); }), HasSubstr("negate takes 1 operand(s), but has 0"));
  EXPECT_THAT(with([](auto* i) { i->mutable_shape()->set_dimensions(0, -5); }), HasSubstr("negative dimension -5"));
  EXPECT_THAT(with([](auto* i) { i->set_opcode("constant"), i->clear_operand_ids(); }), HasSubstr("has no value"));
  EXPECT_THAT(with([](auto* i) { i->add_called_computation_ids(9); }), HasSubstr("it calls computation 9"));
  EXPECT_THAT(with([](auto* i) { i->set_opcode("fusion"), i->set_fusion_kind("kLoop"); }),
              HasSubstr("fusion calls 1 computation(s), but has 0"));
  EXPECT_THAT(with([](auto* i) {
                i->set_opcode("parameter"), i->clear_operand_ids(), i->set_parameter_number(int64_t{1} << 60);
              }),
              HasSubstr("out of range"));
  const auto with_axes = [&](const char* first, const char* second) {
    return with([&](auto* i) {
      proto::NamedShardingProto* named = i->mutable_sharding()->mutable_named_sharding();
      named->mutable_mesh()->add_axes()->set_name(first);
      named->mutable_mesh()->add_axes()->set_name(second);
    });
  };
  EXPECT_THAT(with_axes("a", "''"), HasSubstr("a mesh axis is named \"''\": names have no quotes"));
  EXPECT_THAT(with_axes("a", "a"), HasSubstr("two axes of a mesh are named \"a\""));
}

TEST(AnnotationProtoTest, NumbersKeepAllTheirDigits) {
  const std::string first = ModuleToProto(
      *ParseModule("HloModule m\nENTRY e { x = f32[2] parameter(0)\n"
                   "ROOT y = f32[2] cosine(x), statistics={visualizing_index=0,stat-1=0.123456789012345}, "
                   "result_accuracy={tolerance={atol=0.1,rtol=9223372036854775807,ulps=3}} }"));
  EXPECT_EQ(ModuleToProto(*ParseModule(PrintModule(*ModuleFromProto(first, "m.pb")))), first);
}

TEST(ProtoHeaderTest, KeepsReplicasPartitionsAndSchedule) {
  const auto module = ParseModule(
      "HloModule m, is_scheduled=true, replica_count=2, num_partitions=4\n"
      "ENTRY e { x = f32[2]{0} parameter(0)\n ROOT y = f32[2]{0} negate(x)\n z = f32[2]{0} negate(x) }");
  const auto again = ModuleFromProto(ModuleToProto(*module), "m.pb");
  EXPECT_EQ(again->replica_count, 2);
  EXPECT_EQ(again->num_partitions, 4);
  EXPECT_TRUE(again->is_scheduled);
  EXPECT_EQ(again->entry()->instructions().back()->name(), "z");
  EXPECT_EQ(again->entry()->root()->name(), "y");
}

TEST(LiteralProtoTest, EveryTypeInEveryLayout) {
  for (int value = 1; value <= 33; ++value) {
    const auto type = static_cast<ElementType>(value);
    if (!IsArrayType(type)) continue;
    for (const std::vector<int64_t>& layout : {std::vector<int64_t>{1, 0}, std::vector<int64_t>{0, 1}}) {
      Shape shape(type, {2, 3});
      shape.set_layout(Layout{layout, "", "", 0, 0});
      Literal literal(shape);
      for (int64_t i = 0; i < 6; ++i) {
        if (IsInteger(type) || type == ElementType::kPred) {
          literal.SetInt(i, i * 5 - 3);
        } else {
          literal.SetComplex(i, {static_cast<double>(i), -1.0});
        }
      }
      proto::LiteralProto message;
      LiteralToProto(literal, shape, &message);
      EXPECT_EQ(LiteralFromProto(message), literal) << ElementTypeName(type);
    }
  }
}

TEST(LiteralProtoTest, PackedNibblesAndWrongSizes) {
  proto::LiteralProto message;
  message.mutable_shape()->set_element_type(proto::S4);
  message.mutable_shape()->add_dimensions(3);
  message.set_s4s("\xe1\x03");
  const Literal literal = LiteralFromProto(message);
  EXPECT_EQ(literal.GetInt(0), 1);
  EXPECT_EQ(literal.GetInt(1), -2);
  EXPECT_EQ(literal.GetInt(2), 3);
  message.set_s4s("\x01");
  EXPECT_THAT(MessageOf([&] { LiteralFromProto(message); }), HasSubstr("must hold 3 bytes, but holds 1"));
  // A shape that claims more than the file holds must not be allocated.
  message.mutable_shape()->set_element_type(proto::F32);
  message.mutable_shape()->set_dimensions(0, int64_t{1} << 50);
  EXPECT_THAT(MessageOf([&] { LiteralFromProto(message); }), HasSubstr("but holds 0"));
}

TEST(ReplicaGroupsProtoTest, MeshAxesAreExpanded) {
  const auto groups_of = [](const std::string& text) {
    ReplicaGroups groups;
    groups.mesh_form = text;
    proto::HloInstructionProto message;
    ReplicaGroupsToProto(groups, &message);
    const ReplicaGroups read = ReplicaGroupsFromProto(message);
    EXPECT_EQ(read.mesh_form, text);
    return read.Expanded();
  };
  using Groups = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(groups_of("mesh['a'=2,'b'=4] {'a'}"), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(groups_of("mesh['a'=2,'b'=4] {'b'}"), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_of("mesh['a'=2,'b'=2] {'b','a'}"), (Groups{{0, 2, 1, 3}}));
  EXPECT_EQ(groups_of("mesh['a'=2,'b'=2] {'a','b'}"), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(groups_of("mesh['a'=4] {'a':(2)2,'a':(1)2}"), (Groups{{0, 2, 1, 3}}));
  EXPECT_EQ(groups_of("mesh['a'=2,'b'=4] {'b':(2)2}"), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(groups_of("mesh['a'=2,'b'=4] {'b':(1)2}"), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

}  // namespace
}  // namespace hlorun::hlo
