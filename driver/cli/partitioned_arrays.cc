#include "driver/cli/partitioned_arrays.h"

#include <filesystem>

#include "backends/collectives/await.h"
#include "driver/arrays/npy.h"
#include "hlo/error.h"
#include "hlo/shards.h"
#include "hlo/text/parser.h"

namespace hlorun::cli {
namespace {

std::string RankFolder(const std::string& path, int64_t device) { return fmt::format("{}/rank_{}", path, device); }

// Reads slot `slot` whole: of the local shape, or of the global one that its sharding cuts.
hlo::Literal LoadShared(const std::string& path, const ArraySlot& slot, const std::string& sharding, int64_t device) {
  const std::string file = fmt::format("{}/{}.npy", path, slot.index);
  if (!std::filesystem::exists(file))
    Fail(ErrorCode::kNotFound, "input {} is missing: there is no {}", slot.Describe(), file);
  const NpyArray array = ReadNpy(file);
  hlo::Shape shape = slot.shape;
  shape.mutable_dimensions() = array.dimensions;
  try {
    const hlo::Literal whole = ToLiteral(array, shape);
    if (array.dimensions == slot.shape.dimensions()) return whole;
    if (sharding.empty()) {
      Invalid("the array is {}, the module wants {} and the parameter has no sharding that says how to cut it",
              whole.shape().ToString(false), slot.shape.ToString(false));
    }
    hlo::Literal part = hlo::CutShard(whole, hlo::ParseSharding(sharding), device);
    if (!part.shape().SameDimensions(slot.shape)) {
      Invalid("the array is {}, cut by {} its parts are {}, but the module wants {}", whole.shape().ToString(false),
              sharding, part.shape().ToString(false), slot.shape.ToString(false));
    }
    return part;
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("input {} from {}: {}", slot.Describe(), file, e.message()));
  }
}

}  // namespace

std::vector<std::vector<hlo::Literal>> CutForDevices(const std::vector<hlo::Literal>& whole,
                                                     const std::vector<std::string>& shardings,
                                                     const std::vector<hlo::Shape>& bounds,
                                                     const collectives::Job& job) {
  std::vector<std::vector<hlo::Literal>> parts(static_cast<size_t>(job.local_devices()));
  for (size_t i = 0; i < whole.size(); ++i) {
    const hlo::Sharding sharding = shardings[i].empty() ? hlo::Sharding{} : hlo::ParseSharding(shardings[i]);
    for (size_t d = 0; d < parts.size(); ++d) {
      const int64_t device = job.first_device() + static_cast<int64_t>(d);
      parts[d].push_back(bounds[i].IsStatic() ? hlo::CutShard(whole[i], sharding, device)
                                              : hlo::CutBoundedShard(whole[i], bounds[i], sharding, device));
    }
  }
  return parts;
}

std::vector<hlo::Literal> JoinOnFirst(const std::vector<std::vector<hlo::Literal>>& parts,
                                      const std::vector<std::string>& shardings, const std::vector<hlo::Shape>& shapes,
                                      collectives::Job& job) {
  std::vector<hlo::Sharding> cuts;
  std::vector<hlo::Dims> part;
  std::vector<std::vector<hlo::Literal>> all;  // by array, by device
  for (size_t i = 0; i < shapes.size(); ++i) {
    cuts.push_back(shardings[i].empty() ? hlo::Sharding{} : hlo::ParseSharding(shardings[i]));
    const hlo::Shape& mine = parts.front()[i].shape();
    part.push_back(shapes[i].IsStatic() ? mine.dimensions() : hlo::ShardShape(shapes[i], cuts[i]).dimensions());
    if (job.rank() != 0) continue;
    all.emplace_back(static_cast<size_t>(job.device_count()), hlo::AtDimensions(parts.front()[i], part[i]));
  }
  constexpr int64_t kFirstTag = 1 << 10;
  job.OnEachLocalDevice<int>([&](int64_t d, const std::shared_ptr<collectives::Communicator>& communicator) {
    collectives::Transport& transport = communicator->transport();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const hlo::Literal mine = hlo::AtDimensions(parts[static_cast<size_t>(d)][i], part[i]);
      const int64_t tag = kFirstTag + static_cast<int64_t>(i);
      if (communicator->device() != 0) {
        Await(transport, transport.Send({mine.data(), static_cast<size_t>(mine.ByteSize())}, 0, tag));
        continue;
      }
      all[i][0] = mine;
      for (size_t peer = 1; peer < all[i].size(); ++peer) {
        hlo::Literal& theirs = all[i][peer];
        Await(transport, transport.Receive({theirs.mutable_data(), static_cast<size_t>(theirs.ByteSize())},
                                           static_cast<int>(peer), tag));
      }
    }
    return 0;
  });
  std::vector<hlo::Literal> whole;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_static = shapes[i].IsStatic();
    whole.push_back(hlo::JoinShards(
        all[i], cuts[i], is_static ? shapes[i] : hlo::Shape(shapes[i].element_type(), shapes[i].dimensions())));
  }
  return whole;
}

std::vector<std::vector<hlo::Literal>> LoadPartitioned(const std::string& path, const std::vector<ArraySlot>& slots,
                                                       const std::vector<std::string>& shardings,
                                                       const collectives::Job& job, bool partitioned) {
  if (!partitioned) return {LoadArrays(path, slots, "input")};
  std::vector<std::vector<hlo::Literal>> inputs;
  for (int64_t d = 0; d < job.local_devices(); ++d) {
    const int64_t device = job.first_device() + d;
    const std::string own = RankFolder(path, device);
    if (std::filesystem::is_directory(own)) {
      inputs.push_back(LoadArrays(own, slots, "input"));
    } else if (std::filesystem::is_directory(path)) {
      std::vector<hlo::Literal>& arrays = inputs.emplace_back();
      for (size_t i = 0; i < slots.size(); ++i) arrays.push_back(LoadShared(path, slots[i], shardings[i], device));
    } else {
      inputs.push_back(LoadArrays(path, slots, "input"));
    }
  }
  return inputs;
}

std::vector<std::vector<hlo::Literal>> LoadExpected(const std::string& path, const std::vector<ArraySlot>& slots,
                                                    const collectives::Job& job, bool partitioned) {
  std::vector<std::vector<hlo::Literal>> expected;
  for (int64_t d = 0; d < (partitioned ? job.local_devices() : 1); ++d) {
    const std::string own = RankFolder(path, job.first_device() + d);
    expected.push_back(LoadArrays(std::filesystem::is_directory(own) ? own : path, slots, "expected output"));
  }
  return expected;
}

void StagePartitioned(AtomicFiles& files, const std::string& path,
                      const std::vector<std::vector<hlo::Literal>>& results, const collectives::Job& job,
                      bool partitioned) {
  if (!partitioned) {
    StageArrays(files, path, results.front());
    return;
  }
  for (size_t d = 0; d < results.size(); ++d) {
    StageArrays(files, RankFolder(path, job.first_device() + static_cast<int64_t>(d)), results[d]);
  }
}

}  // namespace hlorun::cli
