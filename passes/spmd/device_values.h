// What a scalar that depends on nothing but the device's number is on each device.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hlorun::passes::spmd {

// Evaluates instructions from partition-id, replica-id and constants. Remembers what it was asked.
class DeviceValues {
 public:
  // By device (replica * num_partitions + partition); nullopt for what depends on anything else, takes long to
  // evaluate, or is no integer scalar. The reference lasts as long as this.
  const std::optional<std::vector<int64_t>>& Of(const hlo::Instruction* scalar);

 private:
  std::unordered_map<const hlo::Instruction*, std::optional<std::vector<int64_t>>> known_;
};

}  // namespace hlorun::passes::spmd
