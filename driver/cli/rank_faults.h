// The points of HLORUN_FAULT at which this process itself fails or stops.
#pragma once

namespace hlorun::cli {

void StartFaults();   // before the process joins its job
void RunFaults();     // before each run
void FinishFaults();  // when its work is done

}  // namespace hlorun::cli
