#include "hlo/module.h"

#include <fmt/format.h>

#include <algorithm>

#include "hlo/error.h"

namespace hlorun::hlo {
namespace {

// `entry` and all computations that instructions which `follow` accepts call from there.
template <typename Follow>
std::unordered_set<const Computation*> Reached(const Computation* entry, Follow follow) {
  std::unordered_set<const Computation*> reached = {entry};
  std::vector<const Computation*> work = {entry};
  while (!work.empty()) {
    const Computation* computation = work.back();
    work.pop_back();
    for (const auto& instruction : computation->instructions()) {
      if (!follow(*instruction)) continue;
      for (const Computation* callee : instruction->called_computations()) {
        if (reached.insert(callee).second) work.push_back(callee);
      }
    }
  }
  return reached;
}

}  // namespace

Module::~Module() = default;

Computation* Module::AddComputation(const std::string& name) {
  std::string unique = name;
  if (computation_names_.contains(unique)) {
    // Apart from the suffixes of instructions: no instruction's stem ends so.
    int64_t& next = next_suffix_[name + "()"];
    while (computation_names_.contains(unique)) unique = fmt::format("{}.{}", name, ++next);
  }
  computation_names_.insert(unique);
  computations_.push_back(std::make_unique<Computation>(unique));
  Computation* added = computations_.back().get();
  added->module_ = this;
  added->position_ = std::prev(computations_.end());
  return added;
}

void Module::RemoveComputation(Computation* computation) {
  HLORUN_CHECK(computation != entry_);
  for (const auto& instruction : computation->instructions()) names_.erase(instruction->name());
  computation_names_.erase(computation->name());
  computations_.erase(computation->position_);
}

bool Module::RemoveUnreachable() {
  const auto reached = Reached(entry_, [](const Instruction&) { return true; });
  bool changed = false;
  for (auto it = computations_.begin(); it != computations_.end();) {
    Computation* computation = it->get();
    ++it;
    if (!reached.contains(computation)) {
      RemoveComputation(computation);
      changed = true;
    }
  }
  return changed;
}

std::vector<Computation*> Module::PostOrder() const {
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::unordered_map<const Computation*, State> state;
  std::vector<Computation*> order;
  std::vector<Computation*> stack;
  const auto visit_from = [&](Computation* start) {
    stack.push_back(start);
    while (!stack.empty()) {
      Computation* top = stack.back();
      State& mine = state[top];
      if (mine == State::kDone) {
        stack.pop_back();
        continue;
      }
      const bool was_open = mine == State::kOpen;
      mine = State::kOpen;
      bool ready = true;
      for (const auto& instruction : top->instructions()) {
        for (Computation* callee : instruction->called_computations()) {
          const State theirs = state[callee];
          if (theirs == State::kDone) continue;
          if (was_open && theirs == State::kOpen) Invalid("computation {} calls itself", callee->name());
          ready = false;
          stack.push_back(callee);
        }
      }
      if (ready) {
        state[top] = State::kDone;
        order.push_back(top);
        stack.pop_back();
      }
    }
  };
  for (const auto& computation : computations_) {
    if (computation.get() != entry_ && state[computation.get()] != State::kDone) visit_from(computation.get());
  }
  if (entry_ != nullptr && state[entry_] != State::kDone) visit_from(entry_);
  // A computation that calls the entry would have put it earlier; XLA forbids that, and so does the verifier.
  return order;
}

std::vector<Computation*> Module::ControlComputations() const {
  const auto reached = Reached(entry_, [](const Instruction& instruction) { return instruction.Has(kControl); });
  std::vector<Computation*> order;
  for (Computation* computation : PostOrder()) {
    if (reached.contains(computation)) order.push_back(computation);
  }
  return order;
}

int64_t Module::instruction_count() const {
  int64_t count = 0;
  for (const auto& computation : computations_) count += computation->instruction_count();
  return count;
}

std::string Module::UniqueName(const std::string& base) {
  if (names_.insert(base).second) return base;
  // Strip a numeric suffix, so that copies of add.3 become add.4 and not add.3.1.
  std::string stem = base;
  const size_t dot = base.rfind('.');
  if (dot != std::string::npos && dot + 1 < base.size() &&
      std::all_of(base.begin() + static_cast<int64_t>(dot) + 1, base.end(),
                  [](char c) { return c >= '0' && c <= '9'; })) {
    stem = base.substr(0, dot);
  }
  int64_t& next = next_suffix_[stem];
  while (true) {
    std::string candidate = fmt::format("{}.{}", stem, ++next);
    if (names_.insert(candidate).second) return candidate;
  }
}

std::string Module::SourceOf(const Instruction& instruction) const {
  const Metadata& metadata = instruction.metadata;
  if (!metadata.source_file.empty()) return fmt::format("{}:{}", metadata.source_file, metadata.source_line);
  const auto frame_id = static_cast<size_t>(metadata.stack_frame_id);
  if (frame_id == 0 || frame_id > stack_frames.frames.size()) return "";
  const auto location_id = static_cast<size_t>(stack_frames.frames[frame_id - 1].file_location_id);
  if (location_id == 0 || location_id > stack_frames.locations.size()) return "";
  const StackFrameTables::Location& location = stack_frames.locations[location_id - 1];
  const auto name_at = [](const std::vector<std::string>& names, int64_t id) {
    return id >= 1 && static_cast<size_t>(id) <= names.size() ? names[static_cast<size_t>(id) - 1] : std::string("?");
  };
  return fmt::format("{}:{} ({})", name_at(stack_frames.file_names, location.file_name_id), location.line,
                     name_at(stack_frames.function_names, location.function_name_id));
}

std::unique_ptr<Module> Module::Clone() const {
  auto clone = std::make_unique<Module>(name_);
  ComputationMap computations;
  for (const auto& original : computations_) {
    Computation* copy = clone->AddComputation(original->name());
    copy->execution_thread = original->execution_thread;
    computations[original.get()] = copy;
  }
  for (const auto& original : computations_) {
    Computation* copy = computations.at(original.get());
    InstructionMap map;
    if (original->root() != nullptr) copy->set_root(original->CloneInto(copy, map, computations));
    std::vector<Instruction*> order;
    for (const auto& instruction : original->instructions()) order.push_back(map.at(instruction.get()));
    copy->SetOrder(order);
  }
  if (entry_ != nullptr) clone->entry_ = computations.at(entry_);
  clone->entry_layout = entry_layout;
  clone->input_output_alias = input_output_alias;
  clone->buffer_donors = buffer_donors;
  clone->replica_count = replica_count;
  clone->num_partitions = num_partitions;
  clone->is_scheduled = is_scheduled;
  clone->stack_frames = stack_frames;
  clone->frontend_attributes = frontend_attributes;
  clone->allow_spmd_sharding_propagation_to_parameters = allow_spmd_sharding_propagation_to_parameters;
  clone->allow_spmd_sharding_propagation_to_output = allow_spmd_sharding_propagation_to_output;
  clone->unknown_attributes = unknown_attributes;
  return clone;
}

}  // namespace hlorun::hlo
