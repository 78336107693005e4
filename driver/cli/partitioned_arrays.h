// Arrays of modules that run on several devices: whole, cut by a sharding, or one set a rank.
#pragma once

#include <string>
#include <vector>

#include "backends/collectives/job.h"
#include "driver/arrays/array_set.h"

namespace hlorun::cli {

// Inputs of each local device. DIR/rank_R/ holds device R's own arrays; otherwise an array of the parameter's shape
// goes to every device, and one of global shape is cut by the parameter's sharding (text form).
std::vector<std::vector<hlo::Literal>> LoadPartitioned(const std::string& path, const std::vector<ArraySlot>& slots,
                                                       const std::vector<std::string>& shardings,
                                                       const collectives::Job& job, bool partitioned);

// Expected outputs of each local device: DIR/rank_R/ where there is one, else the same for all.
std::vector<std::vector<hlo::Literal>> LoadExpected(const std::string& path, const std::vector<ArraySlot>& slots,
                                                    const collectives::Job& job, bool partitioned);

// One device: DIR or FILE.npz from rank 0. Several: DIR/rank_R/ for each. files.Commit() lets them appear.
void StagePartitioned(AtomicFiles& files, const std::string& path,
                      const std::vector<std::vector<hlo::Literal>>& results, const collectives::Job& job,
                      bool partitioned);

// The parts of whole arrays for each local device. `shardings` are text, one an array; empty leaves an array whole.
// `bounds`: the whole arrays' shapes as the module declares them; what is cut of an array that may be smaller.
std::vector<std::vector<hlo::Literal>> CutForDevices(const std::vector<hlo::Literal>& whole,
                                                     const std::vector<std::string>& shardings,
                                                     const std::vector<hlo::Shape>& bounds,
                                                     const collectives::Job& job);

// Collective. Rank 0 gets the whole arrays of these shapes (of their bounds, where they are dynamic) from every
// device's parts, which may be smaller than the bounds' parts; other ranks nothing.
std::vector<hlo::Literal> JoinOnFirst(const std::vector<std::vector<hlo::Literal>>& parts,
                                      const std::vector<std::string>& shardings, const std::vector<hlo::Shape>& shapes,
                                      collectives::Job& job);

}  // namespace hlorun::cli
