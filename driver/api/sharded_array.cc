// Arrays in shards: made of parts, cut from a whole, gathered.
#include "backends/collectives/job.h"
#include "driver/api/array_impl.h"
#include "driver/api/literals.h"
#include "driver/arrays/bounds.h"
#include "hlo/error.h"
#include "hlo/literal.h"
#include "hlo/shards.h"
#include "hlo/text/parser.h"

namespace hlorun {
namespace {

// Of the all-gather of an array; collectives of a run count from 0.
constexpr int64_t kGatherSequence = 1 << 12;

hlo::Sharding ShardingOf(const std::string& text) { return text.empty() ? hlo::Sharding{} : hlo::ParseSharding(text); }

const Array::Impl& Checked(const std::shared_ptr<Array::Impl>& impl) {
  if (impl == nullptr) Invalid("the array is empty: it was default-constructed");
  return *impl;
}

}  // namespace

Array Array::FromShards(const Client& client, const Shape& shape, const std::string& sharding,
                        std::vector<Array> shards, const Shape* bound) {
  const std::shared_ptr<collectives::Job>& job = client.job();
  if (static_cast<int64_t>(shards.size()) != job->local_devices()) {
    Invalid("an array of {} shards is made on a process of {} devices", shards.size(), job->local_devices());
  }
  if (bound != nullptr) CheckBounds(shape, *bound, "an array in shards");
  const hlo::Sharding cut = ShardingOf(sharding);
  for (size_t d = 0; d < shards.size(); ++d) {
    const Shape& shard = shards[d].shape();
    const int64_t device = job->first_device() + static_cast<int64_t>(d);
    const Shape part(shape.element_type(), bound == nullptr
                                               ? hlo::ShardShape(shape, cut).dimensions()
                                               : hlo::PartDimensions(shape.dimensions(), *bound, cut, device));
    if (!shard.SameDimensions(part) || shard.element_type() != shape.element_type()) {
      Invalid("a shard is {}, but {} cuts {}{} into parts of {}", shard.ToString(false), sharding,
              shape.ToString(false), bound == nullptr ? "" : ", which is at most " + bound->ToString(false) + ",",
              part.ToString(false));
    }
  }
  auto impl = std::make_shared<Impl>(shape.WithoutLayout());
  impl->shards = std::move(shards);
  impl->sharding = sharding;
  impl->job = job;
  if (bound != nullptr) impl->bound = bound->dimensions();
  return Array(std::move(impl));
}

const std::vector<Array>& Array::shards() const { return Checked(impl_).shards; }
const std::string& Array::sharding() const { return Checked(impl_).sharding; }

void Array::Gather(void* destination) const {
  const Impl& impl = Checked(impl_);
  if (impl.shards.empty()) return ToHost(destination);
  const hlo::Sharding sharding = ShardingOf(impl.sharding);
  // Parts of a bounded array differ in size: what is exchanged has the bound's.
  const Shape& shape = impl.array.shape();
  const Shape cut(shape.element_type(), impl.bound.empty() ? shape.dimensions() : impl.bound);
  const hlo::Dims part = hlo::ShardShape(cut, sharding).dimensions();
  if (part == cut.dimensions()) return impl.shards.front().ToHost(destination);
  const auto join = [&](const std::vector<hlo::Literal>& parts) {
    const hlo::Literal whole = hlo::AtDimensions(hlo::JoinShards(parts, sharding, cut), shape.dimensions());
    std::memcpy(destination, whole.data(), static_cast<size_t>(whole.ByteSize()));
  };
  if (impl.job->rank_count() == 1) {  // beside a run of all devices too, which may wait for what is made of this
    std::vector<hlo::Literal> parts;
    for (const Array& shard : impl.shards) parts.push_back(hlo::AtDimensions(ToLiteral(shard), part));
    return join(parts);
  }
  std::vector<int64_t> group(static_cast<size_t>(impl.job->device_count()));
  for (size_t d = 0; d < group.size(); ++d) group[d] = static_cast<int64_t>(d);
  impl.job->OnEachLocalDevice<int>([&](int64_t d, const std::shared_ptr<collectives::Communicator>& communicator) {
    const hlo::Literal mine = hlo::AtDimensions(ToLiteral(impl.shards[static_cast<size_t>(d)]), part);
    const auto bytes = static_cast<size_t>(mine.ByteSize());
    std::vector<std::byte> all(bytes * group.size());
    communicator->AllGather(group, {mine.data(), bytes}, all, kGatherSequence);
    if (d > 0) return 0;  // one copy for the process
    std::vector<hlo::Literal> parts;
    for (size_t i = 0; i < group.size(); ++i) {
      std::memcpy(parts.emplace_back(mine.shape()).mutable_data(), all.data() + i * bytes, bytes);
    }
    join(parts);
    return 0;
  });
}

Array Client::FromHost(const Shape& shape, const void* data, const std::string& sharding, const Shape* bound) {
  hlo::Literal whole(shape.WithoutLayout());
  std::memcpy(whole.mutable_data(), data, static_cast<size_t>(whole.ByteSize()));
  std::vector<Array> shards;
  for (int64_t d = 0; d < job()->local_devices(); ++d) {
    const int64_t device = job()->first_device() + d;
    const hlo::Literal part = bound == nullptr ? hlo::CutShard(whole, ShardingOf(sharding), device)
                                               : hlo::CutBoundedShard(whole, *bound, ShardingOf(sharding), device);
    shards.push_back(FromHost(part.shape(), part.data()));
  }
  return Array::FromShards(*this, shape, sharding, std::move(shards), bound);
}

}  // namespace hlorun
