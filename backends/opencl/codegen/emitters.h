// Emitters: one a kind of kernel. Each returns the launches that compute an executed instruction, in order.
#pragma once

#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {

// What an emitter is asked for.
struct EmitRequest {
  const hlo::Instruction& instruction;
  const passes::Hero& hero;
  const AliasPattern& aliases;
  const EmitContext& context;
};
using Launches = std::vector<EmittedLaunch>;

// One value per element of the result; also reductions whose vectors run along kept dimensions, and every op that
// FusedValues can inline (products, convolutions and windows as serial loops).
Launches EmitLoop(const EmitRequest& request);

// A concatenation at the root: one loop an operand, without asking each element where it comes from.
Launches EmitConcatenate(const EmitRequest& request);
// Of an instruction that EmitLoop would ask for each element where it comes from. Columns that a loop puts together as
// rows of a few elements (interleaved.h) are its.
bool HasConcatenateRoot(const hlo::Instruction& instruction, const DeviceSpec& device);

// Reductions along rows that lie contiguously: vector accumulators, then lanes; several reductions that depend on each
// other, and results of the rows' own shape (softmax, norms).
Launches EmitRows(const EmitRequest& request);
// Whether EmitRows takes it: rows contiguous and long enough.
bool HasRows(const hlo::Instruction& instruction, const hlo::Instruction& reduce);
int64_t RowsScratchBytes(const hlo::Instruction& instruction, const hlo::Instruction& reduce);

// Reductions whose last dimension stays: columns side by side in vectors, rows shared by several groups where there are
// few columns.
Launches EmitColumns(const EmitRequest& request);
bool HasColumns(const hlo::Instruction& instruction, const hlo::Instruction& reduce);
int64_t ColumnsScratchBytes(const hlo::Instruction& instruction, const hlo::Instruction& reduce);

// Both on GPU class, where EmitRows and EmitColumns are not asked (codegen/reduction_share.h).
Launches EmitGroupReduction(const EmitRequest& request);
// False on CPU class.
bool HasGroupReduction(const hlo::Instruction& instruction, const hlo::Instruction& reduce, const DeviceSpec& device);
int64_t GroupReductionScratchBytes(const hlo::Instruction& instruction, const hlo::Instruction& reduce,
                                   const DeviceSpec& device);

// Those by any other computation, on GPU class, where there is one of them and not few elements for each result.
Launches EmitOrderedReduction(const EmitRequest& request);
bool HasOrderedReduction(const hlo::Instruction& instruction, const hlo::Instruction& reduce, const DeviceSpec& device);

// Kernels that are run in turn on one block of their arrays after another (passes/fusion/blocks.h).
Launches EmitBlocks(const EmitRequest& request);

// Kernels that are run in turn on one tile after another of a large product (passes/fusion/tiles.h).
Launches EmitTiles(const EmitRequest& request);
int64_t TilesScratchBytes(const hlo::Instruction& tiles, const EmitContext& context);

// Kernels that need nothing of each other, each with work-groups of its own (passes/fusion/horizontal_fusion.h).
Launches EmitSideBySide(const EmitRequest& request);

// Windows that reach to the beginning or end of a dimension (cumulative sums and their like) as running values; others
// element by element.
Launches EmitReduceWindow(const EmitRequest& request);
// Whether that keeps running values: a cumulative op at the root of `instruction`.
bool HasCumulativeKernel(const hlo::Instruction& instruction, const passes::Hero& hero);
int64_t CumulativeScratchBytes(const hlo::Instruction& instruction, const passes::Hero& hero, const DeviceSpec& device);

// dynamic-update-slice at the root: only the updated region is written; the rest is copied first where not in place.
Launches EmitInPlaceUpdate(const EmitRequest& request);
// Those copies of the arrays that `update`, the root or a scatter, is given; none of what is in place.
Launches CopyUpdated(const EmitRequest& request, const hlo::Instruction& update);

Launches EmitScatter(const EmitRequest& request);
int64_t ScatterScratchBytes(const hlo::Instruction& scatter, const DeviceSpec& device);
// Of the last dimension of windows: how many elements each work-item of CPU class has.
int64_t ScatterTileOf(int64_t minor);
// There, where many updates share few places and one work-item would have them all.
Launches EmitSplitScatter(const EmitRequest& request);
bool HasSplitScatter(const hlo::Instruction& scatter, const DeviceSpec& device);
int64_t SplitScatterScratchBytes(const hlo::Instruction& scatter);
// What it does on GPU class with the updates.
EmittedLaunch EmitOwnedScatter(const EmitRequest& request);
// There too, many scalars into few places.
Launches EmitScatterParts(const EmitRequest& request);
bool HasScatterParts(const hlo::Instruction& scatter, const DeviceSpec& device);
int64_t ScatterPartsScratchBytes(const hlo::Instruction& scatter);
Launches EmitSelectAndScatter(const EmitRequest& request);
int64_t SelectAndScatterScratchBytes(const hlo::Instruction& instruction, const hlo::Instruction& op);
Launches EmitSort(const EmitRequest& request);
int64_t SortScratchBytes(const hlo::Instruction& sort, const DeviceSpec& device);

// topk by selection; whether it is worth it (short lists, 32-bit keys) or a sort should do it.
Launches EmitTopK(const EmitRequest& request);
bool HasTopKKernel(const hlo::Instruction& instruction, const DeviceSpec& device);
int64_t TopKScratchBytes(const hlo::Instruction& top, const DeviceSpec& device);

// Complex Fourier transforms of rows, or of columns side by side (passes/expand/fft_stages.h).
Launches EmitFft(const EmitRequest& request);
bool IsFft(const hlo::Instruction& instruction);
bool HasFftKernelFor(hlo::ElementType type, int64_t points, int64_t columns, const DeviceSpec& device);

Launches EmitRngBitGenerator(const EmitRequest& request);

}  // namespace hlorun::opencl
