// Arrays in shards, and modules that are cut for a client of several devices in this process.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "backends/collectives/job.h"
#include "hlorun/hlorun.h"

namespace hlorun {
namespace {

constexpr const char* kCut = R"(
HloModule cut, num_partitions=2
ENTRY main {
  x = f32[6,4] parameter(0), sharding={devices=[2,1]<=[2]}
  w = f32[4,4] parameter(1), sharding={replicated}
  y = f32[6,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[6,4] add(x, y)
}
)";

const Shape kX(ElementType::kF32, {6, 4}), kW(ElementType::kF32, {4, 4});

std::vector<float> Counting(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

std::vector<float> Expected() {
  const std::vector<float> x = Counting(24), w = Counting(16);
  std::vector<float> z = x;
  for (size_t i = 0; i < 6; ++i) {
    for (size_t k = 0; k < 4; ++k) {
      for (size_t j = 0; j < 4; ++j) z[i * 4 + j] += x[i * 4 + k] * w[k * 4 + j];
    }
  }
  return z;
}

class ShardedArrays : public testing::Test {
 protected:
  void SetUp() override {
    ClientOptions options;
    options.devices = 2;
    client_ = Client::Create(options);
  }
  std::vector<Array> Arguments(const Executable& executable) {
    const std::vector<std::string> shardings = executable.parameter_shardings();
    return {client_->FromHost(kX, Counting(24).data(), shardings[0]), client_->FromHost(kW, Counting(16).data())};
  }
  std::shared_ptr<Client> client_;
};

TEST_F(ShardedArrays, GatherGivesBackTheWhole) {
  const Array array = client_->FromHost(kX, Counting(24).data(), "{devices=[2,1]<=[2]}");
  EXPECT_EQ(array.shape().dimensions(), kX.dimensions());
  ASSERT_EQ(array.shards().size(), 2U);
  EXPECT_EQ(array.shards()[1].shape().dimension(0), 3);
  EXPECT_EQ(array.shards()[1].ToVector<float>().front(), 12);
  EXPECT_EQ(array.ToVector<float>(), Counting(24));
}

TEST_F(ShardedArrays, UnevenPartsGatherWithoutTheirPadding) {
  const Shape shape(ElementType::kF32, {5, 3});
  const Array array = client_->FromHost(shape, Counting(15).data(), "{devices=[2,1]<=[2]}");
  EXPECT_EQ(array.shards()[0].shape().dimension(0), 3);
  EXPECT_EQ(array.ToVector<float>(), Counting(15));
}

TEST_F(ShardedArrays, PartsOfAnotherShapeAreRefused) {
  const Array part = client_->FromHost(kW, Counting(16).data());
  try {
    Array::FromShards(*client_, kX, "{devices=[2,1]<=[2]}", {part, part});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("f32[3,4]"), std::string::npos) << error.message();
  }
  EXPECT_THROW(Array::FromShards(*client_, kX, "{replicated}", {part}), Error) << "one part for two devices";
}

TEST_F(ShardedArrays, ACutModuleTakesAndGivesWholeArrays) {
  const auto executable = client_->Compile(Module::FromText(kCut), {});
  EXPECT_EQ(executable->device_count(), 2);
  const std::vector<Array> results = executable->Run(Arguments(*executable));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].shape().dimensions(), kX.dimensions());
  EXPECT_EQ(results[0].ToVector<float>(), Expected());
}

// Each device would write its result over what the other reads.
TEST_F(ShardedArrays, AWholeArrayIsDonatedToNoneOfSeveralDevices) {
  const auto executable = client_->Compile(Module::FromText(R"(
HloModule step, num_partitions=2, input_output_alias={ {}: (1, {}, may-alias) }
ENTRY main {
  x = f32[6,4] parameter(0), sharding={devices=[2,1]<=[2]}
  w = f32[4,4] parameter(1), sharding={replicated}
  y = f32[4,4] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT z = f32[4,4] add(w, y), sharding={replicated}
}
)"),
                                           {});
  RunFlags flags;
  flags.donate = {false, true};
  std::vector<float> expected;
  for (int run = 0; run < 5; ++run) {
    const std::vector<float> z = executable->Run(Arguments(*executable), flags)[0].ToVector<float>();
    if (run == 0) expected = executable->Run(Arguments(*executable))[0].ToVector<float>();
    EXPECT_EQ(z, expected) << run;
  }
}

TEST_F(ShardedArrays, AnArgumentThatLiesOtherwiseIsNamed) {
  const auto executable = client_->Compile(Module::FromText(kCut), {});
  std::vector<Array> arguments = Arguments(*executable);
  arguments[0] = client_->FromHost(kX, Counting(24).data(), "{devices=[1,2]<=[2]}");
  try {
    executable->Run(arguments);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("parameter_shardings"), std::string::npos) << error.message();
  }
}

TEST_F(ShardedArrays, APlanForTwoDevicesIsSavedAndLoaded) {
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("sharded_{}.plan", getpid())).string();
  client_->Compile(Module::FromText(kCut), {})->Save(path);
  const auto executable = client_->Load(path, {});
  std::filesystem::remove(path);
  EXPECT_EQ(executable->device_count(), 2);
  EXPECT_EQ(executable->Run(Arguments(*executable))[0].ToVector<float>(), Expected());
}

TEST_F(ShardedArrays, AModuleWithoutShardingsGetsSome) {
  constexpr const char* kLarge = R"(
HloModule large
ENTRY main {
  x = f32[2048,512] parameter(0)
  w = f32[512,512] parameter(1)
  ROOT y = f32[2048,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  std::vector<Remark> remarks;
  const Module sharded = client_->Shard(Module::FromText(kLarge), {}, &remarks);
  EXPECT_EQ(sharded.num_partitions(), 2);
  ASSERT_EQ(remarks.size(), 1U);
  CompileOptions off;
  off.auto_shard = false;
  EXPECT_EQ(client_->Shard(Module::FromText(kLarge), off).num_partitions(), 1);
  CompileOptions tight;
  tight.memory_limit = 1 << 16;
  EXPECT_THROW(client_->Shard(Module::FromText(kLarge), tight), Error);
}

}  // namespace
}  // namespace hlorun
