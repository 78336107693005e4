#include "backends/opencl/codegen/unrestricted.h"

#include <algorithm>
#include <iterator>

#include "backends/opencl/codegen/load_strides.h"
#include "backends/opencl/codegen/widener.h"

namespace hlorun::opencl {

using namespace ir;  // NOLINT: this file is about nothing else

namespace {

// Stores in `s`, whose nearest loop counts `variable` and has `strides`.
void CollectScattered(const Stmt& s, const Var& variable, const LoadStrides* strides,
                      std::set<const Buffer*>& scattered) {
  if (s->kind == StmtKind::kFor) {
    const LoadStrides own(s->body[0]);
    CollectScattered(s->body[0], s->var, &own, scattered);
    return;
  }
  if (s->kind == StmtKind::kStore && strides != nullptr && s->value->type.lanes == 1) {
    const auto stride = strides->Of(Load(s->buffer, s->index), variable);
    if (stride != 0 && stride != 1) scattered.insert(s->buffer.get());
  }
  for (const Stmt& b : s->body) CollectScattered(b, variable, strides, scattered);
}

}  // namespace

std::set<const Buffer*> Unrestricted(const Stmt& body) {
  const LoopEffects effects = EffectsOf(body);
  std::set<const Buffer*> unrestricted;
  std::set_intersection(effects.loaded.begin(), effects.loaded.end(), effects.stored.begin(), effects.stored.end(),
                        std::inserter(unrestricted, unrestricted.end()));
  CollectScattered(body, nullptr, nullptr, unrestricted);
  return unrestricted;
}

}  // namespace hlorun::opencl
