// Shape rules: what XLA infers (the expected shapes were read from jaxlib 0.10.2), and what it rejects.
#include "hlo/shape_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::hlo {
namespace {

using testing::HasSubstr;

constexpr ElementType F32 = ElementType::kF32;
constexpr ElementType BF16 = ElementType::kBF16;
constexpr ElementType S32 = ElementType::kS32;
constexpr ElementType U32 = ElementType::kU32;
constexpr ElementType U64 = ElementType::kU64;
constexpr ElementType PRED = ElementType::kPred;
constexpr ElementType C64 = ElementType::kC64;

// A negative size in `dimensions` is a dynamic dimension with that bound.
Shape S(ElementType type, Dims dimensions) {
  Shape shape(type, dimensions);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] >= 0) continue;
    shape.mutable_dimensions()[i] = -dimensions[i];
    shape.set_dynamic_dimension(static_cast<int64_t>(i), true);
  }
  return shape;
}

class ShapeInferenceTest : public testing::Test {
 protected:
  Instruction* P(const Shape& shape) { return main_->AddParameter(main_->parameter_count(), shape, "p"); }
  Instruction* P(ElementType type, Dims dimensions) { return P(S(type, std::move(dimensions))); }

  std::string Infer(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes = attr::None{},
                    std::vector<Computation*> called = {}, const Shape& declared = {}) {
    return InferShape(opcode, operands, attributes, called, declared).ToString(false);
  }
  std::string Reject(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes = attr::None{},
                     std::vector<Computation*> called = {}, const Shape& declared = {}) {
    try {
      const std::string shape = Infer(opcode, std::move(operands), std::move(attributes), std::move(called), declared);
      return "accepted as " + shape;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
  }
  Computation* Reducer(ElementType type, Opcode opcode = Opcode::kAdd) {
    return MakeScalarComputation(&module_, opcode, type);
  }
  // (x, y) -> x < y, repeated for each type.
  Computation* Comparator(const std::vector<ElementType>& types) {
    Computation* computation = module_.AddComputation("less");
    int64_t number = 0;
    for (ElementType type : types) {
      computation->AddParameter(number++, Shape::Scalar(type), "x");
      computation->AddParameter(number++, Shape::Scalar(type), "y");
    }
    computation->set_root(
        Builder(computation).Compare(computation->parameter(0), computation->parameter(1), ComparisonDirection::kLt));
    return computation;
  }

  Module module_{"m"};
  Computation* main_ = module_.AddComputation("main");
};

TEST_F(ShapeInferenceTest, ElementwiseKeepsDimensionsAndMergesDynamicOnes) {
  EXPECT_EQ(Infer(Opcode::kAdd, {P(F32, {-4, 3}), P(F32, {4, 3})}), "f32[<=4,3]");
  EXPECT_EQ(Infer(Opcode::kCompare, {P(F32, {4}), P(F32, {-4})}, attr::Compare{}), "pred[<=4]");
  EXPECT_EQ(Infer(Opcode::kComplex, {P(F32, {4}), P(F32, {-4})}), "c64[<=4]");
  EXPECT_EQ(Infer(Opcode::kAbs, {P(C64, {4})}), "f32[4]");
  EXPECT_EQ(Infer(Opcode::kReal, {P(F32, {4})}), "f32[4]");
  EXPECT_EQ(Infer(Opcode::kIsFinite, {P(F32, {4})}), "pred[4]");
  EXPECT_EQ(Infer(Opcode::kSelect, {P(PRED, {-4}), P(F32, {4}), P(F32, {4})}), "f32[<=4]");
  EXPECT_EQ(Infer(Opcode::kSelect, {P(PRED, {}), P(F32, {4}), P(F32, {4})}), "f32[4]");
  EXPECT_EQ(Infer(Opcode::kClamp, {P(F32, {-4}), P(F32, {4}), P(F32, {4})}), "f32[4]");
  EXPECT_EQ(Infer(Opcode::kClamp, {P(F32, {}), P(F32, {-4}), P(F32, {})}), "f32[<=4]");
}

TEST_F(ShapeInferenceTest, ElementwiseRejects) {
  EXPECT_THAT(Reject(Opcode::kAdd, {P(F32, {4}), P(F32, {5})}), HasSubstr("add: operands differ in dimensions"));
  EXPECT_THAT(Reject(Opcode::kAdd, {P(F32, {4}), P(S32, {4})}), HasSubstr("differ in element type: f32[4] and s32[4]"));
  EXPECT_THAT(Reject(Opcode::kAdd, {P(F32, {4})}), HasSubstr("takes 2 operand(s), but has 1"));
  EXPECT_THAT(Reject(Opcode::kFloor, {P(S32, {4})}), HasSubstr("floor: is not defined for s32"));
  EXPECT_THAT(Reject(Opcode::kAbs, {P(U32, {4})}), HasSubstr("is not defined for u32"));
  EXPECT_THAT(Reject(Opcode::kNegate, {P(PRED, {4})}), HasSubstr("is not defined for pred"));
  EXPECT_THAT(Reject(Opcode::kSubtract, {P(PRED, {4}), P(PRED, {4})}), HasSubstr("is not defined for pred"));
  EXPECT_THAT(Reject(Opcode::kAnd, {P(F32, {4}), P(F32, {4})}), HasSubstr("must be pred or integer"));
  EXPECT_THAT(Reject(Opcode::kExp, {P(S32, {4})}), HasSubstr("must be floating or complex"));
  EXPECT_THAT(Reject(Opcode::kSelect, {P(S32, {4}), P(F32, {4}), P(F32, {4})}), HasSubstr("the predicate must be"));
  EXPECT_THAT(Reject(Opcode::kNegate, {P(Shape::Tuple({S(F32, {4})}))}), HasSubstr("operand 0 must be an array"));
}

TEST_F(ShapeInferenceTest, Conversions) {
  EXPECT_EQ(Infer(Opcode::kConvert, {P(F32, {-4})}, attr::None{}, {}, S(S32, {4})), "s32[<=4]");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {P(F32, {4})}, attr::None{}, {}, S(U32, {4})), "u32[4]");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {P(F32, {4})}, attr::None{}, {}, S(ElementType::kU8, {4, 4})), "u8[4,4]");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {P(BF16, {4, 2})}, attr::None{}, {}, S(F32, {4})), "f32[4]");
  EXPECT_THAT(Reject(Opcode::kBitcastConvert, {P(BF16, {4, 3})}, attr::None{}, {}, S(F32, {4})),
              HasSubstr("must be 2"));
  EXPECT_THAT(Reject(Opcode::kConvert, {P(C64, {4})}, attr::None{}, {}, S(F32, {4})), HasSubstr("take real()"));
  EXPECT_THAT(Reject(Opcode::kConvert, {P(C64, {4})}), HasSubstr("must be given"));
}

TEST_F(ShapeInferenceTest, Movement) {
  EXPECT_EQ(Infer(Opcode::kPad, {P(F32, {-4, 3}), P(F32, {})}, attr::Pad{{{1, 2, 1}, {-1, 0, 0}}}), "f32[<=10,2]");
  EXPECT_EQ(Infer(Opcode::kConcatenate, {P(F32, {-4, 3}), P(F32, {5, 3})}, attr::Dimensions{{0}}), "f32[<=9,3]");
  EXPECT_EQ(Infer(Opcode::kConcatenate, {P(F32, {4, -3}), P(F32, {5, 3})}, attr::Dimensions{{0}}), "f32[9,<=3]");
  EXPECT_EQ(Infer(Opcode::kTranspose, {P(F32, {-4, 3, 2})}, attr::Dimensions{{2, 0, 1}}), "f32[2,<=4,3]");
  EXPECT_EQ(Infer(Opcode::kSlice, {P(F32, {8, 3})}, attr::Slice{{1, 0}, {8, 3}, {3, 1}}), "f32[3,3]");
  EXPECT_EQ(Infer(Opcode::kSlice, {P(F32, {-8, 3})}, attr::Slice{{1, 0}, {2, 3}, {1, 1}}), "f32[1,3]");
  EXPECT_EQ(Infer(Opcode::kSlice, {P(F32, {8})}, attr::Slice{{8}, {8}, {1}}), "f32[0]");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {P(F32, {4, 3}), P(S32, {}), P(S32, {})}, attr::DynamicSlice{{2, 3}}),
            "f32[2,3]");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {P(F32, {4, 3}), P(S32, {2})}, attr::DynamicSlice{{2, 3}}), "f32[2,3]");
  EXPECT_EQ(Infer(Opcode::kDynamicUpdateSlice, {P(F32, {4, 3}), P(F32, {2, 3}), P(S32, {}), P(S32, {})}), "f32[4,3]");
  EXPECT_EQ(Infer(Opcode::kBroadcast, {P(F32, {3})}, attr::Dimensions{{1}}, {}, S(F32, {2, 3})), "f32[2,3]");
  EXPECT_EQ(Infer(Opcode::kReshape, {P(F32, {6})}, attr::Reshape{}, {}, S(F32, {2, 3})), "f32[2,3]");
  EXPECT_EQ(Infer(Opcode::kGetDimensionSize, {P(F32, {4, 3})}, attr::Dimensions{{1}}), "s32[]");
  EXPECT_EQ(Infer(Opcode::kSetDimensionSize, {P(F32, {4, 3}), P(S32, {})}, attr::Dimensions{{0}}), "f32[<=4,3]");
}

TEST_F(ShapeInferenceTest, MovementRejects) {
  EXPECT_THAT(Reject(Opcode::kSlice, {P(F32, {4})}, attr::Slice{{0}, {5}, {1}}),
              HasSubstr("does not fit into dimension 0"));
  EXPECT_THAT(Reject(Opcode::kSlice, {P(F32, {4})}, attr::Slice{{0}, {4}, {0}}), HasSubstr("stride > 0"));
  EXPECT_THAT(Reject(Opcode::kTranspose, {P(F32, {4, 3})}, attr::Dimensions{{0, 0}}),
              HasSubstr("names dimension 0 twice"));
  EXPECT_THAT(Reject(Opcode::kReverse, {P(F32, {4, 3})}, attr::Dimensions{{2}}),
              HasSubstr("names dimension 2, but the rank is 2"));
  EXPECT_THAT(Reject(Opcode::kReshape, {P(F32, {6})}, attr::Reshape{}, {}, S(F32, {2, 4})), HasSubstr("6 elements"));
  EXPECT_THAT(Reject(Opcode::kBroadcast, {P(F32, {3})}, attr::Dimensions{{0}}, {}, S(F32, {2, 3})),
              HasSubstr("operand dimension 0 is 3, but result dimension 0 is 2"));
  EXPECT_THAT(Reject(Opcode::kPad, {P(F32, {2}), P(F32, {})}, attr::Pad{{{-3, 0, 0}}}), HasSubstr("no valid size"));
  EXPECT_THAT(Reject(Opcode::kDynamicSlice, {P(F32, {4, 3}), P(S32, {})}, attr::DynamicSlice{{2, 3}}),
              HasSubstr("needs 2 start indices"));
  EXPECT_THAT(Reject(Opcode::kDynamicUpdateSlice, {P(F32, {4}), P(F32, {5}), P(S32, {})}), HasSubstr("does not fit"));
  EXPECT_THAT(Reject(Opcode::kSlice, {P(F32, {4})}), HasSubstr("attributes are missing"));
}

attr::Gather Rows(Dims slice_sizes) {
  attr::Gather gather;
  gather.offset_dims = {1};
  gather.collapsed_slice_dims = {0};
  gather.start_index_map = {0};
  gather.index_vector_dim = 1;
  gather.slice_sizes = std::move(slice_sizes);
  return gather;
}

TEST_F(ShapeInferenceTest, GatherAndScatter) {
  EXPECT_EQ(Infer(Opcode::kGather, {P(F32, {-4, 3}), P(S32, {-7, 1})}, Rows({1, 3})), "f32[<=7,3]");
  EXPECT_EQ(Infer(Opcode::kGather, {P(F32, {4, -3}), P(S32, {7, 1})}, Rows({1, 3})), "f32[7,<=3]");
  EXPECT_EQ(Infer(Opcode::kGather, {P(F32, {4, -3}), P(S32, {7, 1})}, Rows({1, 2})), "f32[7,2]");
  EXPECT_THAT(Reject(Opcode::kGather, {P(F32, {4, 3}), P(S32, {7, 1})}, Rows({2, 3})),
              HasSubstr("slice size must be 1"));
  EXPECT_THAT(Reject(Opcode::kGather, {P(F32, {4, 3}), P(S32, {7, 2})}, Rows({1, 3})), HasSubstr("holds 2 numbers"));
  EXPECT_THAT(Reject(Opcode::kGather, {P(F32, {4, 3}), P(F32, {7, 1})}, Rows({1, 3})), HasSubstr("must be integers"));

  attr::Gather batched = Rows({1, 1, 3});
  batched.offset_dims = {2};
  batched.collapsed_slice_dims = {1};
  batched.start_index_map = {1};
  batched.operand_batching_dims = {0};
  batched.start_indices_batching_dims = {0};
  batched.index_vector_dim = 2;
  EXPECT_EQ(Infer(Opcode::kGather, {P(F32, {2, 4, 3}), P(S32, {2, 7, 1})}, batched), "f32[2,7,3]");
  EXPECT_THAT(Reject(Opcode::kGather, {P(F32, {2, 4, 3}), P(S32, {5, 7, 1})}, batched),
              HasSubstr("batching dimensions differ"));

  attr::Scatter rows;
  rows.update_window_dims = {1};
  rows.inserted_window_dims = {0};
  rows.scatter_dims_to_operand_dims = {0};
  rows.index_vector_dim = 1;
  Computation* add = Reducer(F32);
  EXPECT_EQ(Infer(Opcode::kScatter, {P(F32, {-4, 3}), P(S32, {2, 1}), P(F32, {2, 3})}, rows, {add}), "f32[<=4,3]");
  EXPECT_THAT(Reject(Opcode::kScatter, {P(F32, {4, 3}), P(S32, {2, 1}), P(F32, {2, 4})}, rows, {add}),
              HasSubstr("exceeds the operand's 3"));
  EXPECT_THAT(Reject(Opcode::kScatter, {P(F32, {4, 3}), P(S32, {2, 1}), P(F32, {5, 3})}, rows, {add}),
              HasSubstr("must be 2"));
  EXPECT_THAT(Reject(Opcode::kScatter, {P(F32, {4, 3}), P(S32, {2, 1})}, rows, {add}), HasSubstr("has 2 operands"));
  EXPECT_THAT(Reject(Opcode::kScatter, {P(F32, {4, 3}), P(F32, {4, 3}), P(S32, {2, 1}), P(F32, {2, 3}), P(F32, {2, 1})},
                     rows, {add}),
              HasSubstr("updates differ in dimensions: f32[2,3] and f32[2,1]"));
}

TEST_F(ShapeInferenceTest, DotAndRaggedDot) {
  attr::Dot plain;
  plain.lhs_contracting = {1};
  plain.rhs_contracting = {0};
  EXPECT_EQ(Infer(Opcode::kDot, {P(F32, {-4, 3}), P(F32, {-3, 5})}, plain), "f32[<=4,5]");
  EXPECT_EQ(Infer(Opcode::kDot, {P(BF16, {4, 3}), P(F32, {3, 5})}, plain), "f32[4,5]");
  EXPECT_EQ(Infer(Opcode::kDot, {P(ElementType::kS8, {4, 3}), P(ElementType::kS8, {3, 5})}, plain, {}, S(S32, {4, 5})),
            "s32[4,5]");
  EXPECT_THAT(Reject(Opcode::kDot, {P(F32, {8, 64}), P(F32, {65, 32})}, plain),
              HasSubstr("dot: contracting dimensions differ: lhs dimension 1 is 64, rhs dimension 0 is 65"));
  attr::Dot batched;
  batched.lhs_batch = batched.rhs_batch = {0};
  batched.lhs_contracting = {2};
  batched.rhs_contracting = {1};
  EXPECT_EQ(Infer(Opcode::kDot, {P(F32, {-2, 4, 3}), P(F32, {2, 3, 5})}, batched), "f32[<=2,4,5]");
  batched.lhs_contracting = {0};
  EXPECT_THAT(Reject(Opcode::kDot, {P(F32, {2, 4, 3}), P(F32, {2, 3, 5})}, batched),
              HasSubstr("names dimension 0 twice"));

  attr::Dot grouped;
  grouped.lhs_contracting = grouped.rhs_contracting = {1};
  grouped.lhs_ragged = grouped.rhs_group = {0};
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {P(F32, {6, 4}), P(F32, {3, 4, 5}), P(S32, {3})}, grouped), "f32[6,5]");
  attr::Dot contracted = plain;
  contracted.lhs_ragged = {1};
  EXPECT_EQ(Infer(Opcode::kRaggedDot, {P(F32, {6, 4}), P(F32, {4, 5}), P(S32, {3})}, contracted), "f32[3,6,5]");
}

TEST_F(ShapeInferenceTest, ConvolutionAndWindows) {
  attr::Convolution conv;
  conv.window = {{3, 2, 1, 1, 1, 1, false}, {3, 2, 1, 1, 1, 1, false}};
  conv.dimensions = {0, 3, {1, 2}, 2, 3, {0, 1}, 0, 3, {1, 2}};
  EXPECT_EQ(Infer(Opcode::kConvolution, {P(F32, {2, -8, 8, 3}), P(F32, {3, 3, 3, 4})}, conv), "f32[2,<=4,4,4]");
  EXPECT_THAT(Reject(Opcode::kConvolution, {P(F32, {2, 8, 8, 5}), P(F32, {3, 3, 3, 4})}, conv),
              HasSubstr("must take 5 / 1"));
  conv.feature_group_count = 3;
  EXPECT_THAT(Reject(Opcode::kConvolution, {P(F32, {2, 8, 8, 3}), P(F32, {3, 3, 1, 4})}, conv),
              HasSubstr("do not divide"));
  EXPECT_EQ(Infer(Opcode::kConvolution, {P(F32, {2, 8, 8, 3}), P(F32, {3, 3, 1, 6})}, conv), "f32[2,4,4,6]");
  conv.window[0].size = 2;
  EXPECT_THAT(Reject(Opcode::kConvolution, {P(F32, {2, 8, 8, 3}), P(F32, {3, 3, 1, 6})}, conv),
              HasSubstr("window dimension 0"));

  const attr::Windowed pool{{{2, 1}, {1, 1}}};
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {P(F32, {-4, 3}), P(F32, {})}, pool, {Reducer(F32)}), "f32[<=3,3]");
  EXPECT_EQ(WindowedSize(3, {5, 1}), 0);
  EXPECT_EQ(WindowedSize(10, {3, 2, 1, 1, 2, 3}), 13);
  EXPECT_THROW(WindowedSize(INT64_MAX, {1, 1, 0, 0, 1, INT64_MAX}), Error);

  const attr::Windowed tiles{{{2, 2}, {2, 2}}};
  std::vector<Computation*> select_add = {Comparator({F32}), Reducer(F32)};
  EXPECT_EQ(Infer(Opcode::kSelectAndScatter, {P(F32, {-4, 4}), P(F32, {2, 2}), P(F32, {})}, tiles, select_add),
            "f32[<=4,4]");
  EXPECT_THAT(Reject(Opcode::kSelectAndScatter, {P(F32, {4, 4}), P(F32, {3, 2}), P(F32, {})}, tiles, select_add),
              HasSubstr("the source is f32[3,2]"));
}

TEST_F(ShapeInferenceTest, ReductionsSortAndTopK) {
  EXPECT_EQ(Infer(Opcode::kReduce, {P(F32, {-4, 3}), P(F32, {})}, attr::Dimensions{{1}}, {Reducer(F32)}), "f32[<=4]");
  EXPECT_EQ(Infer(Opcode::kReduce, {P(BF16, {4, 3}), P(BF16, {})}, attr::Dimensions{{0, 1}}, {Reducer(F32)}), "f32[]");
  EXPECT_THAT(Reject(Opcode::kReduce, {P(F32, {4}), P(F32, {})}, attr::Dimensions{{0}}, {Reducer(S32)}),
              HasSubstr("reducer add_s32"));
  EXPECT_THAT(Reject(Opcode::kReduce, {P(F32, {4}), P(F32, {1})}, attr::Dimensions{{0}}, {Reducer(F32)}),
              HasSubstr("initial value 0 must be f32[]"));
  EXPECT_THAT(Reject(Opcode::kReduce, {P(F32, {4}), P(F32, {})}, attr::Dimensions{{0}}),
              HasSubstr("called computation"));
  EXPECT_EQ(Infer(Opcode::kSort, {P(F32, {3}), P(S32, {3})}, attr::Sort{0, true}, {Comparator({F32, S32})}),
            "(f32[3], s32[3])");
  EXPECT_THAT(Reject(Opcode::kSort, {P(F32, {3})}, attr::Sort{1, true}, {Comparator({F32})}), HasSubstr("dimension 1"));
  EXPECT_EQ(Infer(Opcode::kTopK, {P(F32, {-5, 8})}, attr::TopK{3, true}), "(f32[<=5,3], s32[<=5,3])");
  EXPECT_THAT(Reject(Opcode::kTopK, {P(F32, {5, 8})}, attr::TopK{9, true}), HasSubstr("k = 9 exceeds"));
}

TEST_F(ShapeInferenceTest, Scan) {
  Computation* step = module_.AddComputation("step");
  Instruction* x = step->AddParameter(0, S(F32, {3}), "x");
  Instruction* carry = step->AddParameter(1, S(F32, {3}), "c");
  Builder b(step);
  Instruction* sum = b.Binary(Opcode::kAdd, x, carry);
  step->set_root(b.Tuple({sum, sum}));
  attr::Scan scan;
  scan.num_carries = 1;
  EXPECT_EQ(Infer(Opcode::kScan, {P(F32, {5, 3}), P(F32, {3})}, scan, {step}), "(f32[5,3], f32[3])");
  scan.scan_dimension = 1;
  EXPECT_EQ(Infer(Opcode::kScan, {P(F32, {3, 5}), P(F32, {3})}, scan, {step}), "(f32[3,5], f32[3])");
  EXPECT_THAT(Reject(Opcode::kScan, {P(F32, {5, 3}), P(F32, {3})}, scan, {step}), HasSubstr("does not fit a step"));
  EXPECT_THAT(Reject(Opcode::kScan, {P(S32, {3, 5}), P(F32, {3})}, scan, {step}), HasSubstr("does not fit a step"));
  EXPECT_EQ(Infer(Opcode::kScan, {P(F32, {3, -5}), P(F32, {3})}, scan, {step}), "(f32[3,<=5], f32[3])");

  // A dimension that varies in a step's output varies in their stack.
  Computation* wide = module_.AddComputation("wide");
  Shape row = S(F32, {3});
  row.set_dynamic_dimension(0, true);
  Instruction* y = wide->AddParameter(0, row, "y");
  Builder in_wide(wide);
  wide->set_root(in_wide.Tuple({y}));
  scan.num_carries = 0;
  EXPECT_EQ(Infer(Opcode::kScan, {P(F32, {-3, 5})}, scan, {wide}), "(f32[<=3,5])");
}

TEST_F(ShapeInferenceTest, Numeric) {
  const attr::BatchNorm norm{0.001f, 1};
  EXPECT_EQ(Infer(Opcode::kBatchNormTraining, {P(F32, {-4, 8}), P(F32, {8}), P(F32, {8})}, norm),
            "(f32[<=4,8], f32[8], f32[8])");
  EXPECT_THAT(Reject(Opcode::kBatchNormTraining, {P(F32, {4, 8}), P(F32, {7}), P(F32, {8})}, norm),
              HasSubstr("operand 1 must be f32[8]"));
  EXPECT_EQ(Infer(Opcode::kFft, {P(C64, {-4, 8})}, attr::Fft{FftType::kIrfft, {14}}), "f32[<=4,14]");
  EXPECT_EQ(Infer(Opcode::kFft, {P(F32, {-4, 8})}, attr::Fft{FftType::kRfft, {8}}), "c64[<=4,5]");
  EXPECT_THAT(Reject(Opcode::kFft, {P(F32, {4, 8})}, attr::Fft{FftType::kFft, {8}}), HasSubstr("must be complex"));
  EXPECT_EQ(Infer(Opcode::kCholesky, {P(F32, {2, 4, 4})}, attr::Cholesky{}), "f32[2,4,4]");
  EXPECT_THAT(Reject(Opcode::kCholesky, {P(F32, {2, 4, 3})}, attr::Cholesky{}), HasSubstr("square"));
  EXPECT_EQ(Infer(Opcode::kTriangularSolve, {P(F32, {2, 4, 4}), P(F32, {2, 4, 5})}, attr::TriangularSolve{}),
            "f32[2,4,5]");
  EXPECT_THAT(Reject(Opcode::kTriangularSolve, {P(F32, {4, 4}), P(F32, {5, 4})}, attr::TriangularSolve{}),
              HasSubstr("do not fit"));
  const Shape bits = Shape::Tuple({S(U64, {2}), S(U32, {8})});
  EXPECT_EQ(Infer(Opcode::kRngBitGenerator, {P(U64, {2})}, attr::RngBitGenerator{}, {}, bits), "(u64[2], u32[8])");
  EXPECT_THAT(Reject(Opcode::kRngBitGenerator, {P(U64, {3})}, attr::RngBitGenerator{}, {}, bits),
              HasSubstr("must be (u64[3]"));
}

TEST_F(ShapeInferenceTest, Control) {
  Instruction* tuple = P(Shape::Tuple({S(F32, {4}), S(S32, {})}));
  EXPECT_EQ(Infer(Opcode::kGetTupleElement, {tuple}, attr::TupleIndex{1}), "s32[]");
  EXPECT_THAT(Reject(Opcode::kGetTupleElement, {tuple}, attr::TupleIndex{2}), HasSubstr("the tuple has 2 elements"));
  EXPECT_EQ(Infer(Opcode::kTuple, {tuple, P(PRED, {})}), "((f32[4], s32[]), pred[])");
  EXPECT_EQ(Infer(Opcode::kTuple, {}), "()");

  Computation* body = module_.AddComputation("body");
  body->set_root(body->AddParameter(0, S(F32, {}), "x"));
  Computation* condition = module_.AddComputation("condition");
  condition->set_root(Builder(condition).Unary(Opcode::kIsFinite, condition->AddParameter(0, S(F32, {}), "x")));
  Computation* wide = module_.AddComputation("wide");
  wide->set_root(Builder(wide).Broadcast(wide->AddParameter(0, S(F32, {}), "x"), {2}, {}));
  EXPECT_EQ(Infer(Opcode::kWhile, {P(F32, {})}, attr::None{}, {condition, body}), "f32[]");
  EXPECT_THAT(Reject(Opcode::kWhile, {P(F32, {2})}, attr::None{}, {condition, body}),
              HasSubstr("computation condition takes f32[]"));
  EXPECT_THAT(Reject(Opcode::kWhile, {P(F32, {})}, attr::None{}, {body, body}), HasSubstr("must return pred[]"));
  EXPECT_EQ(Infer(Opcode::kConditional, {P(PRED, {}), P(F32, {}), P(F32, {})}, attr::None{}, {body, body}), "f32[]");
  EXPECT_EQ(Infer(Opcode::kConditional, {P(S32, {}), P(F32, {})}, attr::None{}, {body}), "f32[]");
  EXPECT_THAT(Reject(Opcode::kConditional, {P(PRED, {}), P(F32, {}), P(F32, {})}, attr::None{}, {body, wide}),
              HasSubstr("branches body and wide differ in result"));
  EXPECT_EQ(Infer(Opcode::kCall, {P(F32, {})}, attr::Call{}, {condition}), "pred[]");
  EXPECT_THAT(Reject(Opcode::kCall, {}, attr::Call{}, {condition}), HasSubstr("must have 0 parameter(s), but has 1"));
}

attr::Collective Along(std::optional<int64_t> dimension, int64_t group) {
  attr::Collective collective;
  collective.dimension = dimension;
  collective.replica_groups.groups.emplace_back();
  for (int64_t i = 0; i < group; ++i) collective.replica_groups.groups[0].push_back(i);
  return collective;
}

TEST_F(ShapeInferenceTest, Collectives) {
  Computation* add = Reducer(F32);
  EXPECT_EQ(Infer(Opcode::kAllReduce, {P(F32, {4}), P(S32, {2})}, Along({}, 2), {add}), "(f32[4], s32[2])");
  EXPECT_EQ(Infer(Opcode::kAllGather, {P(F32, {4, 3})}, Along(1, 4)), "f32[4,12]");
  EXPECT_EQ(Infer(Opcode::kAllGatherStart, {P(F32, {4, 3})}, Along(0, 4)), "(f32[4,3], f32[16,3])");
  EXPECT_EQ(Infer(Opcode::kReduceScatter, {P(F32, {8, 3})}, Along(0, 4), {add}), "f32[2,3]");
  EXPECT_THAT(Reject(Opcode::kReduceScatter, {P(F32, {8, 3})}, Along(1, 4), {add}),
              HasSubstr("does not divide among 4 devices"));
  EXPECT_EQ(Infer(Opcode::kAllToAll, {P(F32, {8, 3})}, Along(0, 4)), "f32[8,3]");
  EXPECT_EQ(Infer(Opcode::kAllToAll, {P(F32, {3}), P(F32, {3})}, Along({}, 2)), "(f32[3], f32[3])");
  EXPECT_THAT(Reject(Opcode::kAllToAll, {P(F32, {3}), P(F32, {3})}, Along({}, 3)), HasSubstr("each of the 3 devices"));
  EXPECT_EQ(Infer(Opcode::kCollectivePermute, {P(F32, {8, 3})}, attr::CollectivePermute{{{0, 1}}, {}, {}}), "f32[8,3]");
  EXPECT_EQ(Infer(Opcode::kCollectivePermuteStart, {P(F32, {8})}, attr::CollectivePermute{{{0, 1}}, {}, {}}),
            "(f32[8], f32[8])");
  // Without groups, all devices of the module take part.
  module_.num_partitions = 8;
  attr::Collective everybody;
  everybody.channel_id = 1;
  everybody.dimension = 0;
  EXPECT_EQ(Infer(Opcode::kAllGather, {P(F32, {4})}, everybody), "f32[32]");
}

TEST_F(ShapeInferenceTest, AsyncPairs) {
  const Shape started = Shape::Tuple({S(F32, {4}), S(F32, {8}), S(U32, {})});
  EXPECT_EQ(Infer(Opcode::kAllGatherDone, {P(started)}), "f32[8]");
  EXPECT_EQ(Infer(Opcode::kCopyStart, {P(F32, {4})}, attr::CopyStart{}), "(f32[4], f32[4], u32[])");
  EXPECT_EQ(Infer(Opcode::kCopyDone, {P(started)}), "f32[4]");
  EXPECT_THAT(Reject(Opcode::kAllGatherDone, {P(F32, {4})}), HasSubstr("must be the tuple of the matching start"));
  EXPECT_EQ(Infer(Opcode::kSend, {P(F32, {4}), P(Shape::Token())}, attr::Transfer{}), "(f32[4], u32[], token[])");
  EXPECT_EQ(Infer(Opcode::kAfterAll, {P(Shape::Token())}), "token[]");
}

TEST_F(ShapeInferenceTest, RulesSurviveOperandsThatAreMissing) {
  for (const OpcodeInfo& info : AllOpcodes()) {
    if (info.arity == 0 || info.opcode == Opcode::kTuple || info.opcode == Opcode::kAfterAll) continue;
    EXPECT_THROW(InferShape(info.opcode, {}, attr::None{}, {}, Shape()), Error) << info.name;
  }
}

TEST(BuilderTest, InfersAndCopiesMetadata) {
  Module module("m");
  Computation* c = module.AddComputation("main");
  Instruction* x = c->AddParameter(0, Shape(F32, {2, 3}), "x");
  x->metadata.op_name = "jit(f)/x";
  Builder b(c, x);
  Instruction* zero = b.ScalarConstant(F32, 0);
  Instruction* sum = b.Reduce({x}, {zero}, {1}, MakeScalarComputation(&module, Opcode::kAdd, F32));
  EXPECT_EQ(sum->shape().ToString(false), "f32[2]");
  EXPECT_EQ(sum->metadata.op_name, "jit(f)/x");
  EXPECT_EQ(b.Splat(Shape(F32, {2, 3}), 1.5)->shape().ToString(false), "f32[2,3]");
  EXPECT_EQ(b.Dot(x, x, attr::Dot{{}, {}, {1}, {1}, {}, {}, {}, {}}, F32)->shape().ToString(false), "f32[2,2]");
  b.before = zero;
  b.Iota(Shape(S32, {4}), 0);
  EXPECT_TRUE((*std::next(c->instructions().begin()))->Is(Opcode::kIota));
}

TEST(BuilderTest, RecognisesReducers) {
  Module module("m");
  EXPECT_EQ(ReducerOpcode(*MakeScalarComputation(&module, Opcode::kMaximum, F32)), Opcode::kMaximum);
  EXPECT_EQ(ReducerOpcode(*MakeScalarComputation(&module, Opcode::kSubtract, F32)), std::nullopt);
  Computation* twice = module.AddComputation("twice");
  Instruction* x = twice->AddParameter(0, Shape::Scalar(F32), "x");
  twice->AddParameter(1, Shape::Scalar(F32), "y");
  twice->set_root(Builder(twice).Binary(Opcode::kAdd, x, x));
  EXPECT_EQ(ReducerOpcode(*twice), std::nullopt);
}

}  // namespace
}  // namespace hlorun::hlo
