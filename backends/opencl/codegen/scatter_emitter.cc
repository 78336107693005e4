#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/scatter_updates.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using ir::Expr;

// Elements of a window that lie far apart, which meet an update together: more than one, so that sums of updates of one
// place do not wait for each other.
constexpr int64_t kSpreadTile = 4;

// Updates run in their order, one after another, by work-items that each own some elements of the window: the same bits
// on every run and device.
class ScatterKernel {
 public:
  explicit ScatterKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        scatter_(*request.hero.instruction),
        updates_(e_, scatter_),
        updates_shape_(updates_.updates_shape()),
        window_dims_(updates_.window_dims()),
        batch_dims_(updates_.batch_dims()) {}

  EmittedLaunch Emit() {
    IndexMath& math = e_.math();
    update_.resize(static_cast<size_t>(updates_shape_.rank()));
    // Window dimensions but the last are parallel, batches serial, the last window dimension is cut into parallel tiles
    // of vectors. Windows that may overlap are done one after another.
    std::vector<std::pair<ir::Var, int64_t>> parallel;
    int64_t count = 1;
    for (const int64_t d : batch_dims_) count *= updates_shape_.dimension(d);
    in_turn_ = updates_.WindowsSlide() && !updates_.IsIndependent() && count > 1;
    for (size_t i = 0; i + 1 < window_dims_.size() && !in_turn_; ++i) {
      const int64_t extent = updates_shape_.dimension(window_dims_[i]);
      parallel.emplace_back(e_.IndexVar("window" + std::to_string(i), extent), extent);
      update_[static_cast<size_t>(window_dims_[i])] = math.Of(parallel.back().first);
    }
    // Unique indices touch an element once at most: no order to keep.
    const bool independent = updates_.IsIndependent();
    if (independent) {
      for (const int64_t d : batch_dims_) {
        parallel.emplace_back(e_.IndexVar("batch" + std::to_string(d), updates_shape_.dimension(d)),
                              updates_shape_.dimension(d));
        update_[static_cast<size_t>(d)] = math.Of(parallel.back().first);
      }
    }
    const int64_t minor = window_dims_.empty() ? 1 : updates_shape_.dimension(window_dims_.back());
    // Elements far apart meet all updates a few at a time: what they and the updates have then lies in the first cache.
    is_spread_ = updates_.WindowsAreSpread() && !independent && !in_turn_;
    const int64_t tile_of_spread = std::min(minor, kSpreadTile);
    const int64_t length = is_spread_ ? tile_of_spread : independent || in_turn_ ? minor : ScatterTileOf(minor);
    const bool tiled = length < minor;
    const ir::Var tile = e_.IndexVar("tile", tiled ? CeilDiv(minor, length) : 1);

    e_.values().Open();
    const std::function<void(size_t)> batches = [&](size_t i) {
      if (independent || i == batch_dims_.size())
        return OneUpdate(tiled ? math.Mul(math.Of(tile), length) : Index(0), length, minor);
      e_.values().SerialLoop(updates_shape_.dimension(batch_dims_[i]), [&](const Index& b) {
        update_[static_cast<size_t>(batch_dims_[i])] = b;
        batches(i + 1);
      });
    };
    batches(0);
    ir::Stmt body = e_.values().Close();
    const int64_t work = WorkOf(body);
    if (tiled) body = ir::For(ir::LoopRole::kParallel, tile, e_.IndexInt(0), e_.IndexInt(tile->max + 1), body);
    for (size_t i = parallel.size(); i-- > 0;) {
      body = ir::For(ir::LoopRole::kParallel, parallel[i].first, e_.IndexInt(0), e_.IndexInt(parallel[i].second), body);
    }
    return e_.Finish(body, GrainOf(work));
  }

 private:
  void OneUpdate(const Index& first, int64_t length, int64_t minor) {
    const ScatterUpdates::Start start = updates_.StartOf(update_);
    e_.values().Open();
    hlo::Dims outer;
    for (size_t i = 0; in_turn_ && i + 1 < window_dims_.size(); ++i)
      outer.push_back(updates_shape_.dimension(window_dims_[i]));
    e_.values().SerialLoops(outer, [&](const Indices& at) {
      for (size_t i = 0; i < at.size(); ++i) update_[static_cast<size_t>(window_dims_[i])] = at[i];
      AlongLastDimension(start, first, length, minor);
    });
    const ir::Stmt window = e_.values().Close();
    e_.body().Add(ir::If(e_.body().Name(start.inside, "inside"), window));
  }

  void AlongLastDimension(const ScatterUpdates::Start& start, const Index& first, int64_t length, int64_t minor) {
    IndexMath& math = e_.math();
    const ir::Var w = e_.IndexVar(e_.body().FreshName("w"), minor);
    e_.values().Open();
    if (!window_dims_.empty()) update_[static_cast<size_t>(window_dims_.back())] = math.Of(w);
    updates_.Store(updates_.Combined(start, update_));
    const Expr begin = math.ToExpr(first);
    const bool is_whole = first.IsConstant() || (is_spread_ && minor % length == 0);
    const Expr end = is_whole ? begin + length : ir::Min(begin + length, e_.IndexInt(minor));
    const ir::LoopRole role = is_spread_ ? ir::LoopRole::kSerial : ir::LoopRole::kVector;
    e_.body().Add(ir::For(role, w, begin, end, e_.values().Close(), 1, is_spread_ ? 1 : e_.Lanes()));
  }

  Emission e_;
  const Instruction& scatter_;
  ScatterUpdates updates_;
  const hlo::Shape& updates_shape_;
  const std::vector<int64_t>&window_dims_, &batch_dims_;
  Indices update_;
  bool in_turn_ = false, is_spread_ = false;
};

// Elements of a window's last dimension that a work-item owns. Of less than two tiles two work-items take half each,
// whole cache lines of numbers of 32 bits, where each still has some vectors of every update.
constexpr int64_t kTile = 256, kSmallestHalf = 32, kLine = 16;

}  // namespace

int64_t ScatterTileOf(int64_t minor) {
  if (minor >= 2 * kTile) return kTile;
  return minor >= 2 * kSmallestHalf ? CeilDiv(CeilDiv(minor, 2), kLine) * kLine : minor;
}

int64_t ScatterScratchBytes(const Instruction& scatter, const DeviceSpec& device) {
  if (HasSplitScatter(scatter, device)) return SplitScatterScratchBytes(scatter);
  return HasScatterParts(scatter, device) ? ScatterPartsScratchBytes(scatter) : 0;
}

Launches EmitScatter(const EmitRequest& request) {
  const Instruction& scatter = *request.hero.instruction;
  if (request.instruction.Is(hlo::Opcode::kFusion) && request.instruction.called()->root() != &scatter) {
    Fail(ErrorCode::kUnimplemented, "{}: a scatter with consumers in its fusion has no kernel",
         request.instruction.name());
  }
  if (HasSplitScatter(scatter, request.context.device)) return EmitSplitScatter(request);
  Launches launches = CopyUpdated(request, scatter);
  if (scatter.operand(scatter.operand_count() - 1)->shape().ElementCount() == 0) return launches;
  if (HasScatterParts(scatter, request.context.device)) {
    for (EmittedLaunch& launch : EmitScatterParts(request)) launches.push_back(std::move(launch));
  } else {
    const bool is_gpu = request.context.device.device_class == DeviceClass::kGpu;
    launches.push_back(is_gpu ? EmitOwnedScatter(request) : ScatterKernel(request).Emit());
  }
  return launches;
}

}  // namespace hlorun::opencl
