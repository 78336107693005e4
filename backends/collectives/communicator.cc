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
// Longer parts go in pieces of at least so many bytes: one is reduced and on its way back while the next arrives.
constexpr int64_t kPieceBytes = 256 << 10;
constexpr int64_t kMostPieces = 8;

using Requests = std::vector<std::unique_ptr<Request>>;

void Complete(Transport& transport, Requests& requests) {
  const WaitScope scope(transport);
  WaitUntil(
      [&] {
        std::erase_if(requests, [](const std::unique_ptr<Request>& request) { return request->Test(); });
        if (requests.empty()) return true;
        transport.Progress();
        return false;
      },
      Patience::kSharedCore,
      [&] {
        std::chrono::steady_clock::time_point all;
        for (const std::unique_ptr<Request>& request : requests) all = std::max(all, request->NotBefore());
        return all;
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
  const std::span<std::byte> received = Scratch(in.size());
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
  AllReduceInParts(group, me, in, out, reduction, sequence);
}

// Reduce-scatter by parts, then everyone gets everyone's reduced part: ring volume, the same tree for every element.
// Each part goes in pieces, in one order everywhere, so that messages of one tag match by their order.
void Communicator::AllReduceInParts(std::span<const int64_t> group, int64_t me, std::span<const std::byte> in,
                                    std::span<std::byte> out, const Reduction& reduction, int64_t sequence) {
  const int64_t width = hlo::BytesOf(reduction.type);
  const int64_t count = static_cast<int64_t>(in.size()) / width;
  const auto n = static_cast<int64_t>(group.size());
  const int64_t pieces = std::clamp<int64_t>(count / n * width / kPieceBytes, 1, kMostPieces);
  const auto slice = [&](int64_t p, int64_t piece) {
    const Part part = PartOf(count, n, p), own = PartOf(part.count, pieces, piece);
    return std::pair<size_t, size_t>(static_cast<size_t>((part.begin + own.begin) * width),
                                     static_cast<size_t>(own.count * width));
  };
  const auto peer = [&](int64_t p) { return static_cast<int>(group[static_cast<size_t>(p)]); };
  const size_t mine_bytes = static_cast<size_t>(PartOf(count, n, me).count * width);
  const std::span<std::byte> received = Scratch(mine_bytes * static_cast<size_t>(n - 1));
  std::vector<Requests> arriving(static_cast<size_t>(pieces));
  Requests rest;
  size_t landing = 0;
  std::vector<std::vector<const std::byte*>> parts(static_cast<size_t>(pieces));
  for (int64_t piece = 0; piece < pieces; ++piece) {
    for (int64_t p = 0; p < n; ++p) {
      const auto [my_begin, my_bytes] = slice(me, piece);
      std::byte* place = received.data() + landing;
      parts[static_cast<size_t>(piece)].push_back(p == me ? in.data() + my_begin : place);
      if (p == me) continue;
      arriving[static_cast<size_t>(piece)].push_back(transport_->Receive({place, my_bytes}, peer(p), sequence));
      const auto [begin, bytes] = slice(p, piece);
      rest.push_back(transport_->Send(in.subspan(begin, bytes), peer(p), sequence));
      landing += my_bytes;
    }
  }
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const auto [my_begin, my_bytes] = slice(me, piece);
    Complete(*transport_, arriving[static_cast<size_t>(piece)]);
    TreeReduce(parts[static_cast<size_t>(piece)], out.data() + my_begin, static_cast<int64_t>(my_bytes) / width,
               reduction);
    for (int64_t p = 0; p < n; ++p) {
      if (p == me) continue;
      // Where `out` is `in`: what arrives was made of what lies there, which has been sent.
      const auto [begin, bytes] = slice(p, piece);
      rest.push_back(transport_->Receive(out.subspan(begin, bytes), peer(p), sequence));
      rest.push_back(transport_->Send(out.subspan(my_begin, my_bytes), peer(p), sequence));
    }
  }
  Complete(*transport_, rest);
}

std::span<std::byte> Communicator::Scratch(size_t bytes) {
  if (scratch_.size() < bytes) scratch_ = std::vector<std::byte>(bytes);
  return {scratch_.data(), bytes};
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
