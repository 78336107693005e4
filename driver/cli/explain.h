// --explain and --strict: what became of a program's branches, loops, sizes and host calls, as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "hlorun/hlorun.h"

namespace hlorun::cli {

std::string ExplainText(const std::vector<Remark>& remarks);
std::string ExplainJson(const std::vector<Remark>& remarks);  // one line

// One line for each point at which the host waits for the device, and a last one that says what to do; empty for none.
std::string HostWaits(const std::vector<Remark>& remarks);

}  // namespace hlorun::cli
