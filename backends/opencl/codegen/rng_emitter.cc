// rng-bit-generator, bit for bit as XLA:CPU's.
//
// Philox4x32-10 and Threefry2x32-20: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;

constexpr ir::Type kU32{ElementType::kU32, 1};
constexpr ir::Type kU64{ElementType::kU64, 1};

Expr U32(uint32_t x) { return ir::Int(x, kU32); }
Expr U64(uint64_t x) { return ir::Int(static_cast<int64_t>(x), kU64); }
Expr Low(const Expr& x) { return ir::Cast(x, ElementType::kU32); }
Expr High(const Expr& x) { return ir::Cast(ir::Binary(ir::Op::kShr, x, U64(32)), ElementType::kU32); }
Expr Join(const Expr& low, const Expr& high) {
  return ir::Or(ir::Cast(low, ElementType::kU64), ir::Binary(ir::Op::kShl, ir::Cast(high, ElementType::kU64), U64(32)));
}

// Four words from a 128-bit counter.
std::vector<Expr> Philox(Body& body, const Expr& low, const Expr& high, const Expr& key) {
  std::vector<ir::Var> c;
  for (const Expr& word : {Low(low), High(low), Low(high), High(high)}) c.push_back(body.Mutable(word, "c"));
  const ir::Var key0 = body.Mutable(Low(key), "key"), key1 = body.Mutable(High(key), "key");
  const ir::Var round = ir::MakeIndex(body.FreshName("round"), 0, 9);
  body.Open();
  const auto high_product = [&](uint32_t factor, const Expr& x) { return ir::Call(kU32, "mul_hi", {U32(factor), x}); };
  const Expr a = ir::Ref(c[0]), b = ir::Ref(c[2]);
  const ir::Var low0 = body.Mutable(U32(0xD2511F53) * a, "low"), low1 = body.Mutable(U32(0xCD9E8D57) * b, "low");
  const ir::Var high0 = body.Mutable(high_product(0xD2511F53, a), "high"),
                high1 = body.Mutable(high_product(0xCD9E8D57, b), "high");
  const auto exclusive = [](const Expr& x, const Expr& y, const Expr& z) {
    return ir::Binary(ir::Op::kXor, ir::Binary(ir::Op::kXor, x, y), z);
  };
  body.Add(ir::Assign(c[0], exclusive(ir::Ref(high1), ir::Ref(c[1]), ir::Ref(key0))));
  body.Add(ir::Assign(c[1], ir::Ref(low1)));
  body.Add(ir::Assign(c[2], exclusive(ir::Ref(high0), ir::Ref(c[3]), ir::Ref(key1))));
  body.Add(ir::Assign(c[3], ir::Ref(low0)));
  body.Add(ir::Assign(key0, ir::Ref(key0) + U32(0x9E3779B9)));
  body.Add(ir::Assign(key1, ir::Ref(key1) + U32(0xBB67AE85)));
  body.Add(ir::For(ir::LoopRole::kSerial, round, ir::Int(0), ir::Int(10), body.Close()));
  return {ir::Ref(c[0]), ir::Ref(c[1]), ir::Ref(c[2]), ir::Ref(c[3])};
}

// Two words from a 64-bit counter.
std::vector<Expr> Threefry(Body& body, const Expr& counter, const Expr& key) {
  static constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Expr key0 = body.Name(Low(key)), key1 = body.Name(High(key));
  const Expr key2 = body.Name(ir::Binary(ir::Op::kXor, ir::Binary(ir::Op::kXor, U32(0x1BD11BDA), key0), key1));
  const Expr keys[3] = {key0, key1, key2};
  Expr x = body.Name(Low(counter) + key0), y = body.Name(High(counter) + key1);
  for (uint32_t group = 0; group < 5; ++group) {
    for (const int rotation : kRotations[group % 2]) {
      x = body.Name(x + y);
      const Expr turned = ir::Or(ir::Binary(ir::Op::kShl, y, U32(static_cast<uint32_t>(rotation))),
                                 ir::Binary(ir::Op::kShr, y, U32(static_cast<uint32_t>(32 - rotation))));
      y = body.Name(ir::Binary(ir::Op::kXor, turned, x));
    }
    x = body.Name(x + keys[(group + 1) % 3]);
    y = body.Name(y + (keys[(group + 2) % 3] + U32(group + 1)));
  }
  return {x, y};
}

// The first dimension of even size, else the largest: along it the two words of a pair lie side by side.
size_t PairedDimension(const hlo::Dims& dimensions) {
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d] % 2 == 0) return d;
  }
  return static_cast<size_t>(std::max_element(dimensions.begin(), dimensions.end()) - dimensions.begin());
}

class RngKernel {
 public:
  explicit RngKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        op_(*request.hero.instruction),
        state_(op_.operand(0)->shape()),
        has_state_(op_.shape().IsTuple()),
        bits_(e_.outputs()[has_state_ ? 1 : 0].shape) {
    wide_ = hlo::BytesOf(bits_.element_type()) == 8;
    words_ = state_.element_type() == ElementType::kU32 ? state_.ElementCount() / 2 : state_.ElementCount();
    if (words_ < 2 || words_ > 3) {
      Invalid("{}: the state of rng-bit-generator is u64[2] or u64[3], not {}", op_.name(), state_.ToString(false));
    }
  }

  // Whole blocks of Philox's words, or the rest of the elements.
  EmittedLaunch PhiloxBlocks() {
    return OverElements(e_, {bits_.ElementCount() / PerBlock()},
                        [&](const Indices& block) { PhiloxBlock(block[0], PerBlock()); });
  }
  EmittedLaunch PhiloxRest() {
    return OverElements(e_, {1}, [&](const Indices&) {
      PhiloxBlock(bits_.ElementCount() / PerBlock(), bits_.ElementCount() % PerBlock());
    });
  }
  int64_t PerBlock() const { return wide_ ? 2 : 4; }

  // Threefry's pairs at halves [first, first + halves) of the paired dimension; `both` words of each.
  EmittedLaunch ThreefryPairs(int64_t first, int64_t halves, bool both) {
    hlo::Dims dims = bits_.dimensions();
    const size_t paired = dims.empty() ? 0 : PairedDimension(dims);
    hlo::Dims counters = dims;
    if (!dims.empty()) {
      counters[paired] = (dims[paired] + 1) / 2;
      dims[paired] = halves;
    }
    const hlo::Dims loops = dims.empty() ? hlo::Dims{1} : dims;
    return OverElements(e_, loops, [&](const Indices& loop) {
      Indices at = bits_.rank() == 0 ? Indices{} : loop;
      if (!at.empty()) at[paired] = e_.math().Add(at[paired], first);
      const Expr number = ir::Cast(e_.math().ToExpr(e_.math().Linearize(at, counters)), ElementType::kU64);
      const std::vector<Expr> words = Threefry(e_.body(), e_.body().Name(StateWord(1) + number), StateWord(0));
      if (!at.empty()) at[paired] = e_.math().Mul(at[paired], 2);
      Store(at, words[0]);
      if (!both) return;
      at[paired] = e_.math().Add(at[paired], 1);
      Store(at, words[1]);
    });
  }
  EmittedLaunch ThreefryWide() {
    const hlo::Dims dims = bits_.rank() == 0 ? hlo::Dims{1} : bits_.dimensions();
    return OverElements(e_, dims, [&](const Indices& loop) {
      const Indices at = bits_.rank() == 0 ? Indices{} : loop;
      const Expr number = ir::Cast(e_.math().ToExpr(e_.math().Linearize(at, bits_.dimensions())), ElementType::kU64);
      const std::vector<Expr> words = Threefry(e_.body(), e_.body().Name(StateWord(1) + number), StateWord(0));
      Store(at, e_.body().Name(Join(words[0], words[1])));
    });
  }

  // The new state, `used` counters on.
  EmittedLaunch State(int64_t used, bool philox) {
    return OverElements(e_, {1}, [&](const Indices&) {
      std::vector<Expr> words;
      for (int64_t i = 0; i < words_; ++i) words.push_back(StateWord(i));
      const Expr low = e_.body().Name(words[1] + U64(static_cast<uint64_t>(used)));
      if (words_ == 3 && philox) words[2] = e_.body().Name(words[2] + ir::Cast(low < words[1], ElementType::kU64));
      words[1] = low;
      const ir::BufferRef& buffer = e_.outputs()[0].buffer;
      for (int64_t i = 0; i < words_; ++i) {
        const Expr& word = words[static_cast<size_t>(i)];
        if (state_.element_type() == ElementType::kU64) {
          e_.body().Add(ir::Store(buffer, e_.IndexInt(i), word));
        } else {
          e_.body().Add(ir::Store(buffer, e_.IndexInt(2 * i), Low(word)));
          e_.body().Add(ir::Store(buffer, e_.IndexInt(2 * i + 1), High(word)));
        }
      }
    });
  }

 private:
  Expr StateWord(int64_t i) {
    if (state_.element_type() == ElementType::kU64) return e_.values().Get(e_.frame(), *op_.operand(0), {Index(i)}).re;
    const auto half = [&](int64_t k) { return e_.values().Get(e_.frame(), *op_.operand(0), {Index(k)}).re; };
    return e_.body().Name(Join(half(2 * i), half(2 * i + 1)));
  }

  void PhiloxBlock(const Index& block, int64_t count) {
    Body& body = e_.body();
    const Expr key = StateWord(0), start = StateWord(1), start_high = words_ == 3 ? StateWord(2) : key;
    const Expr low = body.Name(start + ir::Cast(e_.math().ToExpr(block), ElementType::kU64));
    const Expr high = body.Name(start_high + ir::Cast(low < start, ElementType::kU64));
    const std::vector<Expr> words = Philox(body, low, high, key);
    for (int64_t i = 0; i < count; ++i) {
      const Index linear = e_.math().Add(e_.math().Mul(block, PerBlock()), i);
      const auto w = static_cast<size_t>(i);
      Store(e_.math().Delinearize(linear, bits_.dimensions()),
            wide_ ? body.Name(Join(words[2 * w], words[2 * w + 1])) : words[w]);
    }
  }

  // Types narrower than a word take its low bits.
  void Store(const Indices& at, const Expr& word) {
    const int bits = hlo::BitsOf(bits_.element_type());
    const ElementType raw = bits <= 8    ? ElementType::kU8
                            : bits == 16 ? ElementType::kU16
                            : bits == 32 ? ElementType::kU32
                                         : ElementType::kU64;
    const Expr value = e_.body().Name(FromBits(e_.body().Name(ir::Cast(word, raw)), bits_.element_type()));
    const auto& output = e_.outputs()[has_state_ ? 1 : 0];
    StoreElement(e_.values(), output.buffer, bits_, at, {value, nullptr});
  }

  Emission e_;
  const Instruction& op_;
  hlo::Shape state_;
  bool has_state_;
  hlo::Shape bits_;
  bool wide_ = false;
  int64_t words_ = 2;
};

}  // namespace

Launches EmitRngBitGenerator(const EmitRequest& request) {
  const Instruction& op = *request.hero.instruction;
  if (&op != &request.instruction)
    Fail(ErrorCode::kUnimplemented, "{}: rng-bit-generator inside a fusion has no kernel", op.name());
  const bool has_state = op.shape().IsTuple();
  const hlo::Shape& bits = has_state ? op.shape().tuple_shape(1) : op.shape();
  const int64_t count = bits.ElementCount();
  const bool wide = hlo::BytesOf(bits.element_type()) == 8;
  const bool philox = op.As<hlo::attr::RngBitGenerator>().algorithm != hlo::RngAlgorithm::kThreeFry;
  Launches launches;
  int64_t used = 0;
  if (philox) {
    const int64_t per_block = RngKernel(request).PerBlock();
    if (count >= per_block) launches.push_back(RngKernel(request).PhiloxBlocks());
    if (count % per_block != 0) launches.push_back(RngKernel(request).PhiloxRest());
    used = (count + per_block - 1) / per_block;
  } else if (wide) {
    if (count > 0) launches.push_back(RngKernel(request).ThreefryWide());
    used = count;
  } else {
    const int64_t paired = bits.rank() == 0 ? 1 : bits.dimensions()[PairedDimension(bits.dimensions())];
    if (count > 0 && paired / 2 > 0) launches.push_back(RngKernel(request).ThreefryPairs(0, paired / 2, true));
    if (count > 0 && paired % 2 != 0) launches.push_back(RngKernel(request).ThreefryPairs(paired / 2, 1, false));
    used = paired == 0 ? 0 : count / paired * ((paired + 1) / 2);
  }
  // Last: the state may share the operand's memory.
  if (has_state) launches.push_back(RngKernel(request).State(used, philox));
  return launches;
}

}  // namespace hlorun::opencl
