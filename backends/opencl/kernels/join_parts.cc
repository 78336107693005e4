#include "backends/opencl/kernels/join_parts.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/block_copy.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::LoopRole;
using ir::Stmt;

KernelDraft JoinPartsKernel(const TiledProduct& product, int64_t parts, const DeviceSpec& device) {
  constexpr int64_t kItems = 64;
  const int64_t items = std::min(kItems, device.max_work_group_size);
  const int64_t sums = product.batch * product.m * product.n;
  KernelParameters parameters;
  const ir::BufferRef partial =
      parameters.Add("partial", product.compute_type, parts * sums, ScratchSlice(0, 0, false));
  const Epilogue epilogue(product.instruction, product.hero, product.aliases, parameters);
  const ir::Var group = IndexVar("group", CeilDiv(sums, items)), item = IndexVar("item", items),
                at = IndexVar("at", sums);
  const Expr line = Quotient(ir::Ref(at), product.n);
  const RunIndex place =
      product.result(Quotient(line, product.m), Remainder(line, product.m), Remainder(ir::Ref(at), product.n));
  const Stmt finish = epilogue.StoreRun(place, 1, 1, [&](const Expr&) {
    Expr sum = ir::Load(partial, ir::Ref(at));
    for (int64_t part = 1; part < parts; ++part) sum = sum + ir::Load(partial, ir::Ref(at) + part * sums);
    return sum;
  });
  const Stmt body = ir::Block({ir::Let(at, ir::Ref(group) * items + ir::Ref(item)),
                               sums % items == 0 ? finish : ir::If(ir::Ref(at) < Index(sums), finish)});
  const Stmt all = ir::For(LoopRole::kVector, item, Index(0), Index(items), body);
  KernelDraft draft =
      MakeDraft("join_parts", parameters, ir::For(LoopRole::kParallel, group, Index(0), Index(group->max + 1), all));
  draft.function.group_items = items;
  return WithNarrowIndices(std::move(draft), product, {1, 1, 0, parts});
}

}  // namespace hlorun::opencl
