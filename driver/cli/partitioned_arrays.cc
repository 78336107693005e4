#include "driver/cli/partitioned_arrays.h"

#include <cstring>
#include <filesystem>

#include "driver/arrays/npy.h"
#include "hlo/error.h"
#include "hlo/text/parser.h"

namespace hlorun::cli {
namespace {

std::string RankFolder(const std::string& path, int64_t device) { return fmt::format("{}/rank_{}", path, device); }

// Position of `device` in the tile grid of a tiled sharding; the trailing replicated dimensions are dropped.
hlo::Dims TilePosition(const hlo::Sharding& sharding, int64_t device) {
  const std::vector<int64_t> order = sharding.DeviceOrder();
  const auto at = std::find(order.begin(), order.end(), device);
  if (at == order.end()) Invalid("the sharding {} does not name device {}", sharding.ToString(), device);
  int64_t linear = at - order.begin();
  hlo::Dims position(sharding.tile_dimensions.size());
  for (size_t d = position.size(); d-- > 0;) {
    position[d] = linear % sharding.tile_dimensions[d];
    linear /= sharding.tile_dimensions[d];
  }
  return position;
}

// Reads slot `slot` whole: of the local shape, or of the global one that its sharding cuts.
hlo::Literal LoadShared(const std::string& path, const ArraySlot& slot, const std::string& sharding, int64_t device) {
  const std::string file = fmt::format("{}/{}.npy", path, slot.index);
  if (!std::filesystem::exists(file)) Fail(ErrorCode::kNotFound, "input {} is missing: there is no {}", slot.Describe(), file);
  const NpyArray array = ReadNpy(file);
  hlo::Shape shape = slot.shape;
  shape.mutable_dimensions() = array.dimensions;
  try {
    const hlo::Literal whole = ToLiteral(array, shape);
    if (array.dimensions == slot.shape.dimensions()) return whole;
    return CutShard(whole, slot.shape, sharding, device);
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("input {} from {}: {}", slot.Describe(), file, e.message()));
  }
}

}  // namespace

hlo::Literal CutShard(const hlo::Literal& global, const hlo::Shape& shape, const std::string& sharding, int64_t device) {
  if (sharding.empty()) {
    Invalid("the array is {}, the module wants {} and the parameter has no sharding that says how to cut it",
            global.shape().ToString(false), shape.ToString(false));
  }
  const hlo::Sharding parsed = hlo::ParseSharding(sharding);
  if (parsed.kind != hlo::Sharding::Kind::kTiled || parsed.tile_dimensions.size() < static_cast<size_t>(shape.rank())) {
    Invalid("the array is {}, the module wants {} and the sharding {} does not cut it", global.shape().ToString(false),
            shape.ToString(false), sharding);
  }
  const hlo::Dims position = TilePosition(parsed, device);
  hlo::Dims start(static_cast<size_t>(shape.rank()));
  for (size_t d = 0; d < start.size(); ++d) {
    start[d] = position[d] * shape.dimensions()[d];
    if (shape.dimensions()[d] * parsed.tile_dimensions[d] != global.shape().dimensions()[d]) {
      Invalid("the array is {}, cut by {} its parts are not {}", global.shape().ToString(false), sharding, shape.ToString(false));
    }
  }
  hlo::Literal part(shape.WithoutLayout());
  const auto width = static_cast<size_t>(hlo::BytesOf(shape.element_type()));
  const hlo::Dims strides = global.shape().Strides();
  hlo::Dims index(start.size(), 0);
  std::byte* to = part.mutable_data();
  if (part.ElementCount() == 0) return part;
  do {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d) from += (start[d] + index[d]) * strides[d];
    std::memcpy(to, global.data() + static_cast<size_t>(from) * width, width);
    to += width;
  } while (hlo::NextIndex(index, shape.dimensions()));
  return part;
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

void StagePartitioned(AtomicFiles& files, const std::string& path, const std::vector<std::vector<hlo::Literal>>& results,
                      const collectives::Job& job, bool partitioned) {
  if (!partitioned) {
    StageArrays(files, path, results.front());
    return;
  }
  for (size_t d = 0; d < results.size(); ++d) {
    StageArrays(files, RankFolder(path, job.first_device() + static_cast<int64_t>(d)), results[d]);
  }
}

}  // namespace hlorun::cli
