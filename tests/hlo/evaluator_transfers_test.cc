// Infeed, outfeed, send and recv by the evaluator: with the host, on one device, and between devices.
#include <gmock/gmock.h>

#include "hlo/error.h"
#include "hlo/host_channels.h"
#include "tests/hlo/evaluation_text.h"

namespace hlorun::hlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kEcho = R"(HloModule echo
ENTRY e {
  t = token[] after-all()
  i = ((f32[2], s32[]), token[]) infeed(t)
  v = (f32[2], s32[]) get-tuple-element(i), index=0
  x = f32[2] get-tuple-element(v), index=0
  d = f32[2] add(x, x)
  u = token[] get-tuple-element(i), index=1
  o = token[] outfeed(d, u), outfeed_shape=f32[2]
  p = token[] outfeed(x, o), outfeed_shape=f32[2]
  ROOT n = s32[] get-tuple-element(v), index=1
})";

TEST(EvaluatorTransfers, FeedsKeepTheirOrder) {
  HostChannels channels;
  EvaluatorOptions options;
  options.channels = &channels;
  channels.Send(0, HostChannels::kFeed, {Floats({1, 2}), Literal::Scalar(ElementType::kS32, 7)});
  EXPECT_THAT(Numbers(EvaluateText(kEcho, {}, options)), ElementsAre(7));
  EXPECT_THAT(Numbers(channels.Receive(0, HostChannels::kFeed)[0]), ElementsAre(2, 4));
  EXPECT_THAT(Numbers(channels.Receive(0, HostChannels::kFeed)[0]), ElementsAre(1, 2));
}

TEST(EvaluatorTransfers, AWrongValueIsRefused) {
  HostChannels channels;
  EvaluatorOptions options;
  options.channels = &channels;
  channels.Send(0, HostChannels::kFeed, {Floats({1, 2, 3}), Literal::Scalar(ElementType::kS32, 7)});
  EXPECT_THROW(EvaluateText(kEcho, {}, options), Error);
}

TEST(EvaluatorTransfers, NoValueIsAnErrorInTime) {
  HostChannels channels(std::chrono::milliseconds(5));
  EvaluatorOptions options;
  options.channels = &channels;
  EXPECT_THROW(EvaluateText(kEcho, {}, options), Error);
  EXPECT_THROW(EvaluateText(kEcho, {}), Error);  // no host at all
}

constexpr const char* kRing = R"(HloModule ring, num_partitions=3
ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  r = (f32[2], u32[], token[]) recv(t), channel_id=5, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2},{2,0}}"}
  rd = (f32[2], token[]) recv-done(r), channel_id=5, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2},{2,0}}"}
  s = (f32[2], u32[], token[]) send(x, t), channel_id=5, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2},{2,0}}"}
  sd = token[] send-done(s), channel_id=5
  ROOT y = f32[2] get-tuple-element(rd), index=0
})";

TEST(EvaluatorTransfers, ARingMovesValuesOn) {
  const std::string text = kRing;
  const auto module = ParseModule(text);
  std::vector<std::vector<Literal>> arguments = {{Floats({1, 1})}, {Floats({2, 2})}, {Floats({3, 3})}};
  // The receive comes first here, so that nobody sends: an error, no hang.
  EXPECT_THROW(EvaluateSpmd(*module, arguments), Error);
  std::string ordered = text;
  const std::string receive = "recv(t)";
  ordered.replace(ordered.find(receive), receive.size(), "recv(sd)");
  const size_t send = ordered.find("  s = "), root = ordered.find("  ROOT");
  const std::string sends = ordered.substr(send, root - send);
  ordered.erase(send, root - send);
  ordered.insert(ordered.find("  r = "), sends);
  const auto results = EvaluateSpmd(*ParseModule(ordered), arguments);
  EXPECT_THAT(Numbers(results[0]), ElementsAre(3, 3));
  EXPECT_THAT(Numbers(results[1]), ElementsAre(1, 1));
}

TEST(EvaluatorTransfers, HostTransfersHaveChannels) {
  HostChannels channels;
  EvaluatorOptions options;
  options.channels = &channels;
  channels.Send(0, 9, {Floats({4})});
  const Literal result = EvaluateText(R"(HloModule m
ENTRY e {
  t = token[] after-all()
  r = (f32[1], u32[], token[]) recv(t), channel_id=9, is_host_transfer=true
  rd = (f32[1], token[]) recv-done(r), channel_id=9, is_host_transfer=true
  x = f32[1] get-tuple-element(rd), index=0
  u = token[] get-tuple-element(rd), index=1
  y = f32[1] negate(x)
  s = (f32[1], u32[], token[]) send(y, u), channel_id=8, is_host_transfer=true
  sd = token[] send-done(s), channel_id=8, is_host_transfer=true
  ROOT z = f32[1] add-dependency(x, sd)
})",
                                      {}, options);
  EXPECT_THAT(Numbers(result), ElementsAre(4));
  EXPECT_THAT(Numbers(channels.Receive(0, 8)[0]), ElementsAre(-4));
}

}  // namespace
}  // namespace hlorun::hlo
