#include "backends/collectives/communicator.h"

#include <algorithm>
#include <cstring>

#include "backends/collectives/tree_reduce.h"
#include "backends/collectives/wait.h"
#include "backends/collectives/window_collectives.h"
#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

// Below this many bytes everyone gets everything and reduces it: one round instead of two.
constexpr int64_t kDirectBytes = 8 << 10;

using Requests = std::vector<std::unique_ptr<Request>>;

void Complete(Transport& transport, Requests& requests) {
  const WaitScope scope(transport);
  WaitUntil([&] {
    std::erase_if(requests, [](const std::unique_ptr<Request>& request) { return request->Test(); });
    if (requests.empty()) return true;
    transport.Progress();
    return false;
  });
}

int64_t PositionIn(std::span<const int64_t> group, int64_t device) {
  const auto at = std::find(group.begin(), group.end(), device);
  if (at == group.end()) Invalid("device {} is in no replica group of a collective it runs", device);
  return at - group.begin();
}

// Part p of n near-equal parts of `count` elements.
struct Part {
  int64_t begin, count;
};
Part PartOf(int64_t count, int64_t n, int64_t p) {
  const int64_t base = count / n, extra = count % n;
  return {p * base + std::min(p, extra), base + (p < extra ? 1 : 0)};
}

void CopyBytes(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Transport> transport, int64_t device)
    : transport_(std::move(transport)), device_(device) {}

NodeWindow* Communicator::WindowOf(std::span<const int64_t> group, std::span<const std::byte> in) const {
  return group.size() > 1 && !in.empty() ? transport_->window() : nullptr;
}

void Communicator::AllGather(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                             int64_t sequence) {
  const int64_t me = PositionIn(group, device_);
  const size_t bytes = in.size();
  HLORUN_CHECK(out.size() == bytes * group.size());
  if (NodeWindow* window = WindowOf(group, in)) return WindowAllGather({*window, *transport_, group, me}, in, out);
  Requests requests;
  for (size_t p = 0; p < group.size(); ++p) {
    if (static_cast<int64_t>(p) == me) continue;
    requests.push_back(transport_->Receive(out.subspan(p * bytes, bytes), static_cast<int>(group[p]), sequence));
  }
  for (size_t p = 0; p < group.size(); ++p) {
    if (static_cast<int64_t>(p) != me) requests.push_back(transport_->Send(in, static_cast<int>(group[p]), sequence));
  }
  CopyBytes(in, out.subspan(static_cast<size_t>(me) * bytes, bytes));
  Complete(*transport_, requests);
}

void Communicator::AllToAll(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                            int64_t sequence) {
  const int64_t me = PositionIn(group, device_);
  const size_t bytes = in.size() / group.size();
  HLORUN_CHECK(in.size() == out.size() && bytes * group.size() == in.size());
  if (NodeWindow* window = WindowOf(group, in)) return WindowAllToAll({*window, *transport_, group, me}, in, out);
  // A staging copy where the blocks change places in one buffer.
  std::vector<std::byte> copy;
  if (in.data() == out.data()) {
    copy.assign(in.begin(), in.end());
    in = copy;
  }
  Requests requests;
  for (size_t p = 0; p < group.size(); ++p) {
    if (static_cast<int64_t>(p) == me) continue;
    requests.push_back(transport_->Receive(out.subspan(p * bytes, bytes), static_cast<int>(group[p]), sequence));
    requests.push_back(transport_->Send(in.subspan(p * bytes, bytes), static_cast<int>(group[p]), sequence));
  }
  const auto mine = static_cast<size_t>(me) * bytes;
  CopyBytes(in.subspan(mine, bytes), out.subspan(mine, bytes));
  Complete(*transport_, requests);
}

void Communicator::ReduceScatter(std::span<const int64_t> group, std::span<const std::byte> in,
                                 std::span<std::byte> out, const Reduction& reduction, int64_t sequence) {
  HLORUN_CHECK(in.size() == out.size() * group.size());
  if (NodeWindow* window = WindowOf(group, in)) {
    return WindowReduceScatter({*window, *transport_, group, PositionIn(group, device_)}, in, out, reduction);
  }
  std::vector<std::byte> received(in.size());
  AllToAll(group, in, received, sequence);
  std::vector<const std::byte*> parts;
  for (size_t p = 0; p < group.size(); ++p) parts.push_back(received.data() + p * out.size());
  TreeReduce(parts, out.data(), static_cast<int64_t>(out.size()) / hlo::BytesOf(reduction.type), reduction);
}

void Communicator::AllReduce(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                             const Reduction& reduction, int64_t sequence) {
  HLORUN_CHECK(in.size() == out.size());
  const int64_t width = hlo::BytesOf(reduction.type);
  const int64_t count = static_cast<int64_t>(in.size()) / width;
  const auto n = static_cast<int64_t>(group.size());
  const int64_t me = PositionIn(group, device_);
  if (n == 1) {
    CopyBytes(in, out);
    return;
  }
  if (NodeWindow* window = WindowOf(group, in))
    return WindowAllReduce({*window, *transport_, group, me}, in, out, reduction);
  if (static_cast<int64_t>(in.size()) <= kDirectBytes) {
    std::vector<std::byte> all(in.size() * group.size());
    AllGather(group, in, all, sequence);
    std::vector<const std::byte*> parts;
    for (int64_t p = 0; p < n; ++p) parts.push_back(all.data() + static_cast<size_t>(p) * in.size());
    TreeReduce(parts, out.data(), count, reduction);
    return;
  }
  // Reduce-scatter by parts, then everyone gets everyone's reduced part: ring volume, the same tree for every element.
  const Part mine = PartOf(count, n, me);
  const auto mine_bytes = static_cast<size_t>(mine.count * width);
  std::vector<std::byte> received(mine_bytes * group.size());
  const auto slice = [&](int64_t p) {
    const Part part = PartOf(count, n, p);
    return std::pair<size_t, size_t>(static_cast<size_t>(part.begin * width), static_cast<size_t>(part.count * width));
  };
  Requests requests;
  std::vector<const std::byte*> parts;
  for (int64_t p = 0; p < n; ++p) {
    const auto [begin, bytes] = slice(p);
    const int peer = static_cast<int>(group[static_cast<size_t>(p)]);
    std::byte* landing = received.data() + static_cast<size_t>(p) * mine_bytes;
    parts.push_back(p == me ? in.data() + begin : landing);
    if (p == me) continue;
    requests.push_back(transport_->Receive({landing, mine_bytes}, peer, sequence));
    requests.push_back(transport_->Send(in.subspan(begin, bytes), peer, sequence));
  }
  Complete(*transport_, requests);
  const auto [my_begin, my_bytes] = slice(me);
  TreeReduce(parts, out.data() + my_begin, mine.count, reduction);
  for (int64_t p = 0; p < n; ++p) {
    if (p == me) continue;
    const auto [begin, bytes] = slice(p);
    const int peer = static_cast<int>(group[static_cast<size_t>(p)]);
    requests.push_back(transport_->Receive(out.subspan(begin, bytes), peer, sequence));
    requests.push_back(transport_->Send(out.subspan(my_begin, my_bytes), peer, sequence));
  }
  Complete(*transport_, requests);
}

void Communicator::Permute(std::span<const std::pair<int64_t, int64_t>> pairs, std::span<const std::byte> in,
                           std::span<std::byte> out, int64_t sequence) {
  HLORUN_CHECK(in.size() == out.size());
  if (!in.empty() && transport_->window() != nullptr) return PermuteInNode(pairs, in, out);
  std::vector<std::byte> copy;
  if (in.data() == out.data()) {
    copy.assign(in.begin(), in.end());
    in = copy;
  }
  Requests requests;
  bool receives = false;
  for (const auto& [source, target] : pairs) {
    if (source == device_ && target == device_) {
      CopyBytes(in, out);
      receives = true;
      continue;
    }
    if (target == device_) {
      requests.push_back(transport_->Receive(out, static_cast<int>(source), sequence));
      receives = true;
    }
    if (source == device_) requests.push_back(transport_->Send(in, static_cast<int>(target), sequence));
  }
  if (!receives && !out.empty()) std::memset(out.data(), 0, out.size());
  Complete(*transport_, requests);
}

void Communicator::PermuteInNode(std::span<const std::pair<int64_t, int64_t>> pairs, std::span<const std::byte> in,
                                 std::span<std::byte> out) {
  int64_t source = -1, target = -1;
  for (const auto& [from, to] : pairs) {
    if (to == device_) source = from;
    if (from == device_) target = to;
  }
  if (source == device_) {
    CopyBytes(in, out);
    return;
  }
  // This device meets those two only, in one order on all devices.
  std::vector<int64_t> partners;
  for (const int64_t partner : {source, target}) {
    if (partner >= 0 && std::find(partners.begin(), partners.end(), partner) == partners.end())
      partners.push_back(partner);
  }
  if (source < 0) std::memset(out.data(), 0, target < 0 ? out.size() : 0);
  if (partners.empty()) return;
  partners.push_back(device_);
  const auto position = [&](int64_t partner) { return partner < 0 ? -1 : PositionIn(partners, partner); };
  WindowPermute({*transport_->window(), *transport_, partners, PositionIn(partners, device_)}, position(source),
                position(target), in, out);
  if (source < 0) std::memset(out.data(), 0, out.size());
}

void Communicator::Broadcast(std::span<const int64_t> group, std::span<const std::byte> in, std::span<std::byte> out,
                             int64_t sequence) {
  HLORUN_CHECK(in.size() == out.size());
  const int64_t me = PositionIn(group, device_);
  Requests requests;
  if (me == 0) {
    for (size_t p = 1; p < group.size(); ++p) {
      requests.push_back(transport_->Send(in, static_cast<int>(group[p]), sequence));
    }
    CopyBytes(in, out);
  } else {
    requests.push_back(transport_->Receive(out, static_cast<int>(group[0]), sequence));
  }
  Complete(*transport_, requests);
}

}  // namespace hlorun::collectives
