#include "driver/cli/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "backends/collectives/await.h"
#include "driver/cli/json_text.h"

namespace hlorun::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kSizeTag = 1 << 9, kTraceTag = kSizeTag + 1;

std::string Written(const std::string& host, const std::vector<StepTime>& steps) {
  Json rows = Json::array();
  for (const StepTime& s : steps) rows.push_back({s.label, s.op_name, s.kind, s.start_us, s.end_us, s.flops, s.bytes});
  return TextOf(Json{{"host", host}, {"steps", rows}});
}

RankTrace Read(const std::string& text) {
  const Json json = Json::parse(text);
  RankTrace trace{json["host"], {}};
  for (const Json& row : json["steps"]) trace.steps.push_back({row[0], row[1], row[2], row[3], row[4], row[5], row[6]});
  return trace;
}

std::map<std::string, double> BeginOfHosts(const std::vector<RankTrace>& ranks) {
  std::map<std::string, double> begin_us;
  for (const RankTrace& rank : ranks) {
    for (const StepTime& step : rank.steps) {
      double& begin = begin_us.try_emplace(rank.host, step.start_us).first->second;
      begin = std::min(begin, step.start_us);
    }
  }
  return begin_us;
}

std::span<std::byte> BytesOf(std::string& text) { return {reinterpret_cast<std::byte*>(text.data()), text.size()}; }

}  // namespace

std::vector<RankTrace> GatherTraces(const std::vector<StepTime>& steps, collectives::Job& job) {
  std::vector<RankTrace> ranks;
  if (job.rank() == 0) ranks.push_back({job.host(), steps});
  if (job.rank_count() == 1) return ranks;
  std::string mine = Written(job.host(), steps);
  job.OnEachLocalDevice<int>([&](int64_t d, const std::shared_ptr<collectives::Communicator>& communicator) {
    if (d > 0) return 0;
    collectives::Transport& transport = communicator->transport();
    if (job.rank() > 0) {
      auto size = static_cast<uint64_t>(mine.size());
      Await(transport, transport.Send(std::as_bytes(std::span(&size, 1)), 0, kSizeTag));
      Await(transport, transport.Send(BytesOf(mine), 0, kTraceTag));
      return 0;
    }
    for (int rank = 1; rank < job.rank_count(); ++rank) {
      const auto peer = static_cast<int>(rank * job.local_devices());
      uint64_t size = 0;
      Await(transport, transport.Receive(std::as_writable_bytes(std::span(&size, 1)), peer, kSizeTag));
      std::string theirs(size, '\0');
      Await(transport, transport.Receive(BytesOf(theirs), peer, kTraceTag));
      ranks.push_back(Read(theirs));
    }
    return 0;
  });
  return ranks;
}

std::string ChromeTrace(const std::vector<RankTrace>& ranks) {
  Json events = Json::array();
  std::map<std::string, double> begin_us = BeginOfHosts(ranks);
  static const std::map<std::string, int> kTracks = {{"kernel", 1}, {"copy", 1}, {"write", 1}, {"collective", 2}};
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto name = [&](const char* what, int track, const std::string& value) {
      events.push_back({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", track}, {"args", {{"name", value}}}});
    };
    name("process_name", 0, fmt::format("rank {} on {}", rank, ranks[rank].host));
    for (const auto& [track, text] : std::map<int, const char*>{{0, "host"}, {1, "device"}, {2, "collectives"}})
      name("thread_name", track, text);
    for (const StepTime& step : ranks[rank].steps) {
      const auto track = kTracks.find(step.kind);
      events.push_back({{"ph", "X"},
                        {"name", step.label},
                        {"pid", rank},
                        {"tid", track == kTracks.end() ? 0 : track->second},
                        {"ts", step.start_us - begin_us[ranks[rank].host]},
                        {"dur", step.end_us - step.start_us},
                        {"args", {{"op_name", step.op_name}, {"flops", step.flops}, {"bytes", step.bytes}}}});
    }
  }
  return TextOf(Json{{"traceEvents", events}});
}

}  // namespace hlorun::cli
