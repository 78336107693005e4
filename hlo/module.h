// Module: computations, an entry, and what the header line of HLO text says.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::hlo {

// input_output_alias={ {output}: (parameter, {index}, may-alias|must-alias) }
struct AliasEntry {
  ShapeIndex output;
  int64_t parameter = 0;
  ShapeIndex parameter_index;
  bool must_alias = false;
  bool operator==(const AliasEntry&) const = default;
};
// buffer_donor={ (parameter, {index}) }
struct DonorEntry {
  int64_t parameter = 0;
  ShapeIndex parameter_index;
  bool operator==(const DonorEntry&) const = default;
};

// The tables FileNames, FunctionNames, FileLocations and StackFrames of the text format. Ids count from 1.
struct StackFrameTables {
  struct Location {
    int64_t file_name_id = 0, function_name_id = 0, line = 0, end_line = 0, column = 0, end_column = 0;
    bool operator==(const Location&) const = default;
  };
  struct Frame {
    int64_t file_location_id = 0, parent_frame_id = 0;
    bool operator==(const Frame&) const = default;
  };
  std::vector<std::string> file_names, function_names;
  std::vector<Location> locations;
  std::vector<Frame> frames;
  bool empty() const { return file_names.empty() && function_names.empty() && locations.empty() && frames.empty(); }
  bool operator==(const StackFrameTables&) const = default;
};

class Module {
 public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  std::unique_ptr<Module> Clone() const;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // The name is made unique in the module.
  Computation* AddComputation(const std::string& name);
  void RemoveComputation(Computation* computation);  // nobody may call it
  // Removes computations that the entry does not reach. Returns whether there were any.
  bool RemoveUnreachable();
  const std::list<std::unique_ptr<Computation>>& computations() const { return computations_; }
  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }
  // Callees before callers, entry last; unreachable ones included. Throws Error on recursion.
  std::vector<Computation*> PostOrder() const;
  // Those whose instructions the runtime executes: the entry, and bodies, conditions, branches and callees of control
  // instructions, callees first. Not fusions, not reducers or comparators.
  std::vector<Computation*> ControlComputations() const;
  int64_t instruction_count() const;

  // A name not used by any instruction yet: `base`, or base with a numeric suffix ("add.3").
  std::string UniqueName(const std::string& base);
  void ForgetName(const std::string& name) { names_.erase(name); }

  // "jit/foo.py:12 (f)" for messages: the innermost source position that metadata gives, or empty.
  std::string SourceOf(const Instruction& instruction) const;

  // --- header ---
  std::optional<ProgramShape> entry_layout;  // entry_computation_layout
  std::vector<AliasEntry> input_output_alias;
  std::vector<DonorEntry> buffer_donors;
  int64_t replica_count = 1;
  int64_t num_partitions = 1;
  bool is_scheduled = false;
  StackFrameTables stack_frames;
  std::map<std::string, std::string> frontend_attributes;
  std::vector<bool> allow_spmd_sharding_propagation_to_parameters;
  std::vector<bool> allow_spmd_sharding_propagation_to_output;
  // Header fields that hlorun keeps but does not interpret: name -> text as written.
  std::vector<std::pair<std::string, std::string>> unknown_attributes;

 private:
  friend class Computation;
  std::string name_;
  std::list<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  std::unordered_set<std::string> names_;  // of instructions
  std::unordered_set<std::string> computation_names_;
  std::unordered_map<std::string, int64_t> next_suffix_;
};

}  // namespace hlorun::hlo
