// The list of passes by name, for --passes and --list-passes.
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
#include "passes/pipeline.h"
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

template <typename P>
PassEntry Entry(std::string summary) {
  return {std::string(P().name()), std::move(summary), [] { return std::make_unique<P>(); }};
}

}  // namespace

const std::vector<PassEntry>& AllPasses() {
  static const std::vector<PassEntry> kPasses = {
      Entry<DropControlEdges>("control edges stay between instructions with effects only"),
      Entry<UnwrapAsync>("start and done pairs become the plain op"),
      Entry<InlineFusions>("fusion instructions become what they fuse"),
      Entry<InlineCalls>("calls become the body of what they call"),
      Entry<SliceScans>("scans written as a recursion over slices become cumulative ops"),
      Entry<LowerSizesToCut>("sizes of a module that will be cut become s32[] instructions first"),
      Entry<PropagateShardings>("every value gets a sharding, from those that the user wrote"),
      Entry<PartitionModule>("an annotated module becomes one device's program, with collectives"),
      Entry<OverlapCollectives>("collectives that take long run while the device computes"),
      Entry<ScatterReductions>("all-reduces of which each device keeps its part become reduce-scatters"),
      Entry<WindowDots>("products of gathered operands, and sums of products, a part at a time beside its exchange"),
      Entry<SplitSums>(
          "sums of products over the devices that nothing else hides, in parts beside the next part's product"),
      Entry<CombineCollectives>("small collectives that do not wait for each other become one"),
      Entry<RemoveMarkers>("barriers, domains and sharding markers go"),
      Entry<AssignRowMajorLayouts>("every shape is row-major, bitcasts become reshapes and transposes"),
      Entry<LowerDynamicDimensions>(
          "bounds become sizes of arrays, actual sizes s32[] instructions; padding is masked"),
      Entry<RewriteByRules>("the table of rewrite rules, to a fixpoint"),
      Entry<CommonSubexpressions>("equal instructions and equal reducers are merged"),
      Entry<ConstantFolding>("instructions of constants become constants, within limits"),
      Entry<SimplifyControlFlow>("known predicates, loops of no or one trip, dead and unchanging carries"),
      Entry<DeadCode>("unused instructions and computations go"),
      Entry<ExpandCustomCalls>("custom-calls that name an elementwise function become that function"),
      Entry<ExpandLapack>("JAX's LAPACK custom-calls become cholesky and triangular-solve"),
      Entry<ExpandTopK>("topk becomes sort and slice"),
      Entry<ExpandApproxTopK>("approximate top-k becomes sort and slice"),
      Entry<ExpandScan>("scan becomes a loop over slices"),
      Entry<ExpandRaggedDot>("ragged-dot becomes dots of masked operands, or a loop of them"),
      Entry<ExpandScaledDot>("scaled-dot becomes a dot of scaled operands"),
      Entry<ThreadRngState>("the random state becomes a value that loops and branches carry"),
      Entry<MatchReducerTypes>("arrays take the types of the reducer that combines them"),
      Entry<SkipRounding>("arithmetic of bf16 that is only needed in f32 is not rounded"),
      Entry<WidenReductions>("reductions of narrow floats are held in f32"),
      Entry<RemoveLoneCollectives>("collectives on one device give back what went in"),
      Entry<ExpandBatchNorm>("batch-norm-training, -inference and -grad become arithmetic"),
      Entry<ExpandCholesky>("cholesky becomes a loop over columns"),
      Entry<ExpandTriangularSolve>("triangular-solve becomes a loop over rows"),
      Entry<ExpandFft>("fft becomes a kernel of stages, or matrix products of its factors"),
      Entry<TinyProducts>("products with a matrix of a few elements become sums of elementwise products"),
      Entry<TileProducts>("products that take much of the memory, up to what contracts them, become loops over tiles"),
      Entry<ExpandRng>("rng becomes rng-bit-generator and arithmetic"),
      Entry<ExpandMap>("map becomes the mapped computation, over whole arrays"),
      Entry<ConditionalToSelect>("conditionals of cheap, pure branches become both branches and a select"),
      Entry<SplitSorts>("sorts by several keys become stable sorts by one each, the last first"),
      Entry<SortAlongMinor>("sorts along another dimension than the last go along it, between transposes"),
      Entry<ChannelsLast>("what lies between convolutions takes their order of dimensions"),
      Entry<CanonicalizeConvolutions>("convolutions become NHWC by HWIO, or dots"),
      Entry<CanonicalizeDots>("dots get at most one batch, one row, one column and one contracting dimension"),
      Entry<SplitComplexDots>("large products of complex matrices become products of their parts"),
      Entry<ReduceMajorFirst>("a short minor dimension is reduced after the others"),
      Entry<UnstackReductions>("reductions over arrays side by side become operations of these arrays"),
      Entry<SplitWindows>("windows that overlap become stages that each reduce less"),
      Entry<ReduceInProducts>("products that one reduction reads store what groups of their rows are reduced to"),
      Entry<PartsInPlace>("concatenations of what products make become updates of one array, in place"),
      Entry<SplitReductions>("a large reduction to a small result becomes two stages"),
      Entry<SplitSelections>("argmax and its likes of long rows become those of groups and of what groups give"),
      Entry<OverwrittenCarries>("arrays that a loop overwrites before it reads them start as memory as it is found"),
      Entry<KnownTripCounts>("trip counts of counting loops, kept for the plan"),
      Entry<SliceAfterProducts>("a product by a slice of what a loop leaves alone becomes a slice of one product"),
      Entry<HoistLoopInvariants>("what every trip of a loop computes alike moves in front of it"),
      Entry<PredicateControl>("kernels of branches and of loops of unknown length read the predicate on the device"),
      Entry<SinkReshapes>("elementwise ops after a product get its dimensions"),
      Entry<Fusion>("instructions that one kernel computes become one fusion"),
      Entry<FormTiles>("a large product and the products that contract what is made of it go by tiles, in one kernel"),
      Entry<FormBlocks>("kernels that read a large array one after another become one that goes by its blocks"),
      Entry<FormRegions>("small kernels, loops and branches become one kernel of sequential code"),
      Entry<BoundWork>("fusions get the sizes up to which their results are needed"),
      Entry<FuseOperands>("products compute operands where their kernels would load them"),
      Entry<FlattenControl>("each computation that control flow executes gets one caller"),
      Entry<Schedule>("the order of execution"),
      Entry<Rematerialize>("what the memory limit has no room for is computed again where it is read later"),
      Entry<HorizontalFusion>("small kernels that share nothing become one launch, each with work-groups of its own"),
      Entry<CopyInsertion>("copies where values would overwrite each other"),
  };
  return kPasses;
}

}  // namespace hlorun::passes
