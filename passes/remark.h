// What the compiler tells a user about a decision of its own: control flow, sizes, host steps, shardings, memory
// (--explain, --strict).
#pragma once

#include <cstdint>
#include <string>

namespace hlorun::passes {

struct Remark {
  enum class Subject : uint8_t {
    kConditional,
    kLoop,
    kDimension,
    kHostCall,
    kProduct,
    kSharding,
    kCollective,
    kMemory,
    kLaunch
  };
  Subject subject = Subject::kConditional;
  std::string instruction;  // its name in the module
  std::string source;       // the user's source line, where metadata tells; empty where it does not
  std::string choice;       // what became of it: "select", "predicate", "region", "enqueued", "host" ...
  std::string reason;       // why
  std::string cost;         // what it costs
  std::string advice;       // how to write the model to avoid the cost; empty when there is nothing to gain
  bool host_waits = false;  // the host must wait for the device, to decide or to take part: what --strict refuses
  bool warns = false;       // said in any case: something is not done as the module, or a flag, asks
};

// "%name at FILE:LINE: choice: reason", without the parts that are empty.
std::string OneLine(const Remark& remark);

}  // namespace hlorun::passes
