#include <algorithm>
#include <optional>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/gpu_top_k.h"
#include "backends/opencl/codegen/sort_key.h"
#include "backends/opencl/codegen/top_k_row.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;
using ir::Op;
using ir::Var;

// Every insertion passes over the list; longer ones are better sorted.
constexpr int64_t kLongestList = 256;
constexpr int kListLanes = 8;
// Elements whose keys are made, and whose largest is looked at, before any of them is looked at alone.
constexpr int64_t kBlock = 128;
constexpr ir::Type kU32{ElementType::kU32, 1};
constexpr ir::Type kU64{ElementType::kU64, 1};

// Row by row: a list of the best k, and a look at only those blocks that hold something better than its last.
class TopKKernel {
 public:
  explicit TopKKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        top_(*request.hero.instruction),
        k_(top_.As<hlo::attr::TopK>().k),
        dims_(top_.operand(0)->shape().dimensions()),
        length_(dims_.back()) {}

  EmittedLaunch Emit() {
    const hlo::Dims outer(dims_.begin(), dims_.end() - 1);
    const int64_t rows = hlo::CheckedProduct(outer);
    const Var row = e_.IndexVar("row", rows);
    row_.emplace(e_, top_, e_.math().Delinearize(e_.math().Of(row), outer));
    e_.values().Open();
    list_ = e_.PrivateArray("list", ElementType::kU64, padded_k() + kListLanes);
    keys_ = e_.PrivateArray("keys", ElementType::kU32, kBlock);
    lanes_ = e_.PrivateArray("lanes", ElementType::kU32, e_.Lanes());
    Over(padded_k(),
         [&](const Index& i) { e_.body().Add(ir::Store(list_, ListAt(e_.math().ToExpr(i)), ir::Int(0, kU64))); });
    e_.body().Add(ir::Store(list_, e_.IndexInt(kListLanes - 1), ir::Int(-1, kU64)));
    least_ = e_.body().Mutable(ir::Int(0, kU64), "least");

    const int64_t blocks = length_ / kBlock, rest = length_ % kBlock;
    if (blocks > 0) {
      e_.values().SerialLoop(blocks, [&](const Index& b) { Block(e_.math().Mul(b, kBlock), kBlock); });
    }
    if (rest > 0) Block(blocks * kBlock, rest);

    for (const auto& output : e_.outputs()) {
      Over(k_, [&](const Index& i) { row_->StoreResult(output, i, ir::Load(list_, ListAt(e_.math().ToExpr(i)))); });
    }
    const ir::Stmt body = e_.values().Close();
    return e_.Finish(ir::For(ir::LoopRole::kParallel, row, e_.IndexInt(0), e_.IndexInt(rows), body),
                     GrainOf(WorkOf(body)));
  }

 private:
  void Over(int64_t count, const std::function<void(const Index&)>& body) {
    const Var i = e_.IndexVar(e_.body().FreshName("i"), count);
    e_.values().Open();
    body(e_.math().Of(i));
    e_.body().Add(
        ir::For(ir::LoopRole::kVector, i, e_.IndexInt(0), e_.IndexInt(count), e_.values().Close(), 1, e_.Lanes()));
  }

  void Block(const Index& begin, int64_t count) {
    const int lanes = e_.Lanes();
    Over(count, [&](const Index& i) {
      e_.body().Add(ir::Store(keys_, e_.math().ToExpr(i), row_->KeyAt(e_.math().Add(begin, i))));
    });
    const auto lane_loop = [&](int64_t first, int64_t width, bool fresh) {
      Over(width, [&](const Index& l) {
        const Expr lane = e_.math().ToExpr(l), key = ir::Load(keys_, e_.math().ToExpr(e_.math().Add(l, first)));
        e_.body().Add(ir::Store(lanes_, lane, fresh ? key : ir::Max(key, ir::Load(lanes_, lane))));
      });
    };
    const int64_t whole = count / lanes * lanes;
    for (int64_t first = 0; first < whole; first += lanes) lane_loop(first, lanes, first == 0);
    if (whole < count) lane_loop(whole, count - whole, whole == 0);
    const auto width = static_cast<int>(std::min<int64_t>(lanes, count));
    Expr best = ir::Load(lanes_, e_.IndexInt(0));
    if (width == lanes)
      best = ir::ReduceLanes(Op::kMax, ir::Load(lanes_, ir::Ramp(e_.IndexInt(0), lanes)));
    else
      for (int l = 1; l < width; ++l) best = ir::Max(best, ir::Load(lanes_, e_.IndexInt(l)));
    const Expr threshold = ir::Binary(Op::kShr, ir::Ref(least_), ir::Int(32, kU64));
    // While the list is not full its last entry is 0, and a key of 0 must get in too.
    const Expr interesting = ir::Or(ir::Compare(Op::kGt, ir::Cast(best, ElementType::kU64), threshold),
                                    ir::Compare(Op::kEq, ir::Ref(least_), ir::Int(0, kU64)));
    e_.values().Open();
    const Var i = e_.IndexVar(e_.body().FreshName("i"), count);
    e_.values().Open();
    const Expr position = e_.math().ToExpr(e_.math().Add(begin, e_.math().Of(i)));
    const Expr entry = e_.body().Name(TopKRow::Entry(ir::Load(keys_, ir::Ref(i)), position), "entry");
    e_.values().Open();
    Insert(entry);
    const ir::Stmt insert = e_.values().Close();
    e_.body().Add(ir::If(ir::Compare(Op::kGt, entry, ir::Ref(least_)), insert));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, i, e_.IndexInt(0), e_.IndexInt(count), e_.values().Close()));
    const ir::Stmt look = e_.values().Close();
    e_.body().Add(ir::If(interesting, look));
  }

  // Each place of the sorted list keeps its entry, takes the new one, or its left neighbour's: max(self, min(left,
  // new)). Vectors go from right to left, so that neighbours are still the old ones.
  void Insert(const Expr& entry) {
    const Var b = e_.IndexVar(e_.body().FreshName("b"), padded_k() / kListLanes);
    e_.values().Open();
    const Expr at = e_.body().Name(e_.IndexInt(padded_k()) - ir::Ref(b) * kListLanes, "at");
    const Expr self = ir::Load(list_, ir::Ramp(at, kListLanes)), left = ir::Load(list_, ir::Ramp(at - 1, kListLanes));
    e_.body().Add(ir::Store(list_, ir::Ramp(at, kListLanes), ir::Max(self, ir::Min(left, entry))));
    e_.body().Add(
        ir::For(ir::LoopRole::kSerial, b, e_.IndexInt(0), e_.IndexInt(padded_k() / kListLanes), e_.values().Close()));
    e_.body().Add(ir::Assign(least_, ir::Load(list_, ListAt(e_.IndexInt(k_ - 1)))));
  }

  int64_t padded_k() const { return (k_ + kListLanes - 1) / kListLanes * kListLanes; }
  // A vector stands before the list: its last element is greater than all entries.
  static Expr ListAt(const Expr& i) { return i + kListLanes; }

  Emission e_;
  const Instruction& top_;
  int64_t k_;
  hlo::Dims dims_;
  int64_t length_;
  std::optional<TopKRow> row_;
  ir::BufferRef list_, keys_, lanes_;
  Var least_;
};

}  // namespace

bool HasTopKKernel(const Instruction& instruction, const DeviceSpec& device) {
  if (!instruction.Is(hlo::Opcode::kTopK)) return false;
  const hlo::Shape& x = instruction.operand(0)->shape();
  const int64_t k = instruction.As<hlo::attr::TopK>().k;
  const ElementType positions = hlo::FlattenShape(instruction.shape())[1].element_type();
  return k >= 1 && k <= std::min(kLongestList, x.dimensions().back()) && !hlo::IsComplex(x.element_type()) &&
         OrderedBits(x.element_type()) <= 32 && positions == ElementType::kS32 &&
         (device.device_class == DeviceClass::kCpu || FitsGpuTopK(device));
}

int64_t TopKScratchBytes(const Instruction& top, const DeviceSpec& device) {
  return device.device_class == DeviceClass::kCpu ? 0 : GpuTopKScratchBytes(top, device);
}

Launches EmitTopK(const EmitRequest& request) {
  if (request.context.device.device_class == DeviceClass::kGpu) return EmitGpuTopK(request);
  Launches launches;
  launches.push_back(TopKKernel(request).Emit());
  return launches;
}

}  // namespace hlorun::opencl
