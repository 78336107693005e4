#include "passes/pipeline.h"

#include <chrono>
#include <utility>

#include "hlo/error.h"
#include "hlo/verifier.h"
#include "passes/control/conditional_to_select.h"
#include "passes/control/control_edges.h"
#include "passes/control/control_flow.h"
#include "passes/control/known_trip_counts.h"
#include "passes/control/loop_invariants.h"
#include "passes/control/overwritten_carries.h"
#include "passes/control/predication.h"
#include "passes/control/slices_after_products.h"
#include "passes/dynamic/extents.h"
#include "passes/dynamic/lower.h"
#include "passes/expand/approx_top_k.h"
#include "passes/expand/batch_norm.h"
#include "passes/expand/complex_dot.h"
#include "passes/expand/convolution.h"
#include "passes/expand/custom_calls.h"
#include "passes/expand/dot.h"
#include "passes/expand/fft.h"
#include "passes/expand/lapack.h"
#include "passes/expand/linear_algebra.h"
#include "passes/expand/map.h"
#include "passes/expand/parts_in_place.h"
#include "passes/expand/ragged_dot.h"
#include "passes/expand/reduce_in_products.h"
#include "passes/expand/reduce_major_first.h"
#include "passes/expand/reducer_types.h"
#include "passes/expand/rng.h"
#include "passes/expand/rng_state.h"
#include "passes/expand/scan.h"
#include "passes/expand/slice_scans.h"
#include "passes/expand/split_reductions.h"
#include "passes/expand/split_selections.h"
#include "passes/expand/split_sorts.h"
#include "passes/expand/split_windows.h"
#include "passes/expand/tile_products.h"
#include "passes/expand/tiny_products.h"
#include "passes/expand/top_k.h"
#include "passes/expand/unrounded.h"
#include "passes/expand/unstack_reductions.h"
#include "passes/expand/wide_reductions.h"
#include "passes/fusion/blocks.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/horizontal_fusion.h"
#include "passes/fusion/product_operands.h"
#include "passes/fusion/regions.h"
#include "passes/fusion/sink_reshapes.h"
#include "passes/fusion/tiles.h"
#include "passes/layout/channels_last.h"
#include "passes/layout/row_major.h"
#include "passes/layout/sort_along_minor.h"
#include "passes/memory/copy_insertion.h"
#include "passes/memory/flatten_control.h"
#include "passes/memory/rematerialize.h"
#include "passes/memory/schedule.h"
#include "passes/simplify/constant_folding.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/inline.h"
#include "passes/simplify/lone_collectives.h"
#include "passes/simplify/markers.h"
#include "passes/simplify/rewrite.h"
#include "passes/simplify/unwrap_async.h"
#include "passes/spmd/combine_collectives.h"
#include "passes/spmd/overlap_collectives.h"
#include "passes/spmd/scatter_reductions.h"
#include "passes/spmd/split_sums.h"
#include "passes/spmd/spmd.h"
#include "passes/spmd/windowed_dots.h"

namespace hlorun::passes {

namespace {

#ifdef NDEBUG
constexpr bool kAlwaysVerify = false;
#else
constexpr bool kAlwaysVerify = true;
#endif

void Verify(const hlo::Module& module, std::string_view pass) {
  try {
    hlo::VerifyModule(module);
  } catch (const Error& error) {
    Fail(ErrorCode::kInternal, "pass {} broke the module: {}", pass, error.message());
  }
}

// What the whole pipeline repeats between its stages: cheap, and a fixpoint after a few rounds.
void Simplifications(Pipeline& p) {
  p.Add<RewriteByRules>();
  p.Add<CommonSubexpressions>();
  p.Add<ConstantFolding>();
  p.Add<SimplifyControlFlow>();
  p.Add<InlineCalls>();
  p.Add<DeadCode>();
}

}  // namespace

Pipeline& Pipeline::Fixpoint(std::string name, const std::function<void(Pipeline&)>& fill, int limit) {
  auto nested = std::make_unique<Pipeline>(std::move(name));
  nested->limit_ = limit;
  fill(*nested);
  passes_.push_back(std::move(nested));
  return *this;
}

bool Pipeline::Run(hlo::Module& module, PassContext& context) {
  bool changed = false;
  for (int round = 0; round < limit_ && RunOnce(module, context); ++round) changed = true;
  return changed;
}

bool Pipeline::RunOnce(hlo::Module& module, PassContext& context) {
  bool any = false;
  for (const std::unique_ptr<Pass>& pass : passes_) {
    if (auto* nested = dynamic_cast<Pipeline*>(pass.get())) {
      nested->set_observer(observer_);
      any |= nested->Run(module, context);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    const bool changed = pass->Run(module, context);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (changed && (kAlwaysVerify || context.options.verify_each_pass)) Verify(module, pass->name());
    if (observer_) observer_(module, pass->name(), changed, seconds);
    any |= changed;
  }
  return any;
}

Pipeline OptimizationPipeline(const CompileOptions&, const DeviceSpec&) {
  Pipeline p("optimize");
  // Modules that XLA has optimised come back to plain HLO: no control edges, async pairs, fusions, markers or
  // layouts.
  p.Add<DropControlEdges>();
  p.Add<UnwrapAsync>();
  p.Add<InlineFusions>();
  p.Add<InlineCalls>();
  p.Add<FlattenControl>();
  // Before what would cut, merge or rewrite their slices.
  p.Add<SliceScans>();

  // One module for all devices becomes one device's.
  p.Add<LowerSizesToCut>();
  p.Add<PropagateShardings>();
  p.Add<PartitionModule>();

  p.Add<RemoveMarkers>();
  p.Add<RemoveLoneCollectives>();
  p.Add<FlattenControl>();
  p.Add<AssignRowMajorLayouts>();
  p.Add<LowerDynamicDimensions>();  // from here on no shape is bounded: sizes are s32[] instructions
  p.Fixpoint("simplify", Simplifications);
  p.Add<ScatterReductions>();
  p.Add<WindowDots>();
  p.Add<SplitSums>();

  // Everything that no kernel does directly, in terms of simpler ops.
  p.Add<ExpandCustomCalls>();
  p.Add<ExpandLapack>();
  p.Add<ExpandTopK>();
  p.Add<ExpandApproxTopK>();
  p.Add<ExpandBatchNorm>();
  p.Add<ExpandCholesky>();
  p.Add<ExpandTriangularSolve>();
  p.Add<ExpandFft>();
  p.Add<ExpandRng>();
  p.Add<ExpandScan>();
  p.Add<InlineCalls>();     // a scan's step is a call
  p.Add<ThreadRngState>();  // around the loops that scans became, too
  p.Add<ExpandRaggedDot>();
  p.Add<ExpandScaledDot>();
  p.Add<ExpandMap>();
  p.Add<MatchReducerTypes>();
  p.Fixpoint("simplify-expanded", Simplifications);
  p.Add<SliceAfterProducts>();
  p.Add<HoistLoopInvariants>();
  p.Add<CombineCollectives>();

  p.Add<ConditionalToSelect>();  // cheap, pure branches become masks
  p.Add<InlineCalls>();

  p.Add<TileProducts>();

  // The forms that kernels take.
  p.Add<SplitSorts>();
  p.Add<SortAlongMinor>();
  p.Add<CanonicalizeConvolutions>();
  p.Add<ChannelsLast>();
  p.Add<TinyProducts>();
  p.Add<CanonicalizeDots>();
  p.Add<SplitComplexDots>();
  p.Fixpoint("simplify-canonical", Simplifications);
  p.Add<SkipRounding>();
  p.Add<WidenReductions>();
  p.Add<ConstantFolding>();  // initial values, as wide
  p.Add<UnstackReductions>();
  p.Add<SplitWindows>();
  p.Add<ReduceInProducts>();
  p.Add<ReduceMajorFirst>();
  p.Add<SplitReductions>();
  p.Add<SplitSelections>();
  p.Add<CommonSubexpressions>();
  p.Add<DeadCode>();
  // Arrays of their own, which nothing may merge.
  p.Add<PartsInPlace>();
  p.Add<OverwrittenCarries>();
  p.Add<AssignRowMajorLayouts>();

  // One kernel from many instructions; then where and when each value lives.
  p.Add<KnownTripCounts>();
  p.Add<FormTiles>();  // what lies between large products, a tile at a time
  p.Add<SinkReshapes>();
  p.Add<Fusion>();
  p.Add<FormBlocks>();   // kernels that read a large array one after another read it block by block
  p.Add<FormRegions>();  // small kernels, loops and branches as one work-item's sequential code
  p.Add<FlattenControl>();
  p.Add<BoundWork>();         // loops end at actual sizes
  p.Add<FuseOperands>();      // products compute their operands where they would load them
  p.Add<PredicateControl>();  // what is left of branches and loops of unknown length: kernels read the predicate
  p.Add<Schedule>();
  p.Add<OverlapCollectives>();
  p.Add<Rematerialize>();  // under --memory_limit: computed again rather than kept
  // Small kernels that share nothing become one launch.
  p.Add<HorizontalFusion>();
  p.Add<CopyInsertion>();
  return p;
}

}  // namespace hlorun::passes
