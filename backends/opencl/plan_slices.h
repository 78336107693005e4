// Walks over what the thunks of a plan name.
#pragma once

#include <array>

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// All of a plan's, in the order in which they run.
inline std::array<const Sequence*, 3> SequencesOf(const Plan& plan) {
  return {&plan.of_constants, &plan.once, &plan.entry};
}

// visit(thunk), and those of its conditions, bodies and branches.
template <typename Visit>
void ForEachThunk(const Thunk& thunk, const Visit& visit) {
  visit(thunk);
  const auto inside = [&](const Sequence& sequence) {
    for (const Thunk& inner : sequence.thunks) ForEachThunk(inner, visit);
  };
  if (const auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
    inside(*loop->condition);
    inside(*loop->body);
  } else if (const auto* choice = std::get_if<ConditionalThunk>(&thunk.work)) {
    for (const auto& branch : choice->branches) inside(*branch);
  }
}

// visit(slice) for each part of memory that the thunk itself reads or writes.
template <typename Visit>
void ForEachSlice(const Thunk& thunk, const Visit& visit) {
  const auto all = [&](const std::vector<Slice>& slices) {
    for (const Slice& slice : slices) visit(slice);
  };
  if (const auto* launch = std::get_if<LaunchThunk>(&thunk.work)) {
    all(launch->arguments);
  } else if (const auto* copy = std::get_if<CopyThunk>(&thunk.work)) {
    all({copy->from, copy->to});
  } else if (const auto* write = std::get_if<WriteThunk>(&thunk.work)) {
    all({write->to});
  } else if (const auto* collective = std::get_if<CollectiveThunk>(&thunk.work)) {
    all(collective->operands);
    all(collective->results);
  } else if (const auto* call = std::get_if<HostCallThunk>(&thunk.work)) {
    all(call->operands);
    all(call->results);
  } else if (const auto* product = std::get_if<LibraryThunk>(&thunk.work)) {
    all({product->lhs, product->rhs, product->out});
  } else if (const auto* transfer = std::get_if<TransferThunk>(&thunk.work)) {
    all(transfer->arrays);
  } else if (const auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
    all({loop->predicate});
  } else if (const auto* choice = std::get_if<ConditionalThunk>(&thunk.work)) {
    all({choice->selector});
  }
}

// Whether the thunk, or one inside of it, reads or writes a part of `slice`.
inline bool Touches(const Thunk& thunk, const Slice& slice) {
  bool touches = false;
  ForEachThunk(thunk,
               [&](const Thunk& inner) { ForEachSlice(inner, [&](const Slice& s) { touches |= s.Overlaps(slice); }); });
  return touches;
}

inline bool Writes(const LaunchThunk& launch, const Slice& slice) {
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    if (launch.written[i] && launch.arguments[i].Overlaps(slice)) return true;
  }
  return false;
}

inline bool Contains(const Slice& outer, const Slice& inner) {
  return outer.allocation == inner.allocation && outer.offset <= inner.offset &&
         inner.offset + inner.bytes <= outer.offset + outer.bytes;
}

// visit(slice) for each part of memory that the thunk itself writes.
template <typename Visit>
void ForEachWrite(const Thunk& thunk, const Visit& visit) {
  if (const auto* launch = std::get_if<LaunchThunk>(&thunk.work)) {
    for (size_t i = 0; i < launch->arguments.size(); ++i) {
      if (launch->written[i]) visit(launch->arguments[i]);
    }
  } else if (const auto* copy = std::get_if<CopyThunk>(&thunk.work)) {
    visit(copy->to);
  } else if (const auto* write = std::get_if<WriteThunk>(&thunk.work)) {
    visit(write->to);
  } else if (const auto* collective = std::get_if<CollectiveThunk>(&thunk.work)) {
    for (const Slice& slice : collective->results) visit(slice);
  } else if (const auto* call = std::get_if<HostCallThunk>(&thunk.work)) {
    for (const Slice& slice : call->results) visit(slice);
  } else if (const auto* product = std::get_if<LibraryThunk>(&thunk.work)) {
    visit(product->out);
  } else if (const auto* transfer = std::get_if<TransferThunk>(&thunk.work)) {
    for (const Slice& slice : transfer->arrays) visit(slice);
  }
}

}  // namespace hlorun::opencl
