#include "backends/opencl/own_places.h"

#include "backends/opencl/codegen/scratch.h"

namespace hlorun::opencl {

OwnPlaces::OwnPlaces(Plan& plan) : plan_(plan) {
  for (size_t a = 0; a < plan.allocations.size(); ++a) {
    if (plan.allocations[a].kind != passes::Allocation::Kind::kArena) continue;
    arena_ = static_cast<int32_t>(a);
    first_byte_ = plan.allocations[a].bytes;
  }
}

bool OwnPlaces::IsInResult(const Slice& slice) const {
  return plan_.allocations[static_cast<size_t>(slice.allocation)].kind == passes::Allocation::Kind::kResult;
}

void OwnPlaces::Give(Slice& written, const std::vector<Slice*>& readers) {
  passes::Allocation& arena = plan_.allocations.at(static_cast<size_t>(arena_));
  const int64_t place = AlignScratch(arena.bytes), distance = place - written.offset;
  arena.bytes = place + written.bytes;
  for (Slice* reader : readers) {
    reader->offset += distance;
    reader->allocation = arena_;
  }
  written.offset = place;
  written.allocation = arena_;
}

void OwnPlaces::Account() {
  if (arena_ < 0) return;
  const int64_t bytes = plan_.allocations[static_cast<size_t>(arena_)].bytes - first_byte_;
  plan_.memory.arena_bytes += bytes;
  plan_.memory.peak_bytes += bytes;
  plan_.memory.largest_live_bytes += bytes;
}

}  // namespace hlorun::opencl
