// The whole pipeline keeps what programs compute.
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/generic_context.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

class WholePipeline : public Pass {
 public:
  std::string_view name() const override { return "optimize"; }
  bool Run(hlo::Module& module, PassContext& context) override {
    CompileOptions options = context.options;
    options.verify_each_pass = true;
    PassContext verifying{context.device, options, context.kernels, {}};
    return OptimizationPipeline(options, context.device).Run(module, verifying);
  }
};

std::filesystem::path SharedModels() {
  const char* shared = std::getenv("HLORUN_SHARED");
  const std::filesystem::path root =
      shared != nullptr ? shared : std::filesystem::path(HLORUN_SOURCE_DIR) / "../shared";
  return root / "models";
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Pipeline, FixpointEndsWhenNothingChanges) {
  class Twice : public Pass {
   public:
    explicit Twice(int* runs) : runs_(runs) {}
    std::string_view name() const override { return "twice"; }
    bool Run(hlo::Module&, PassContext&) override { return ++*runs_ <= 2; }

   private:
    int* runs_;
  };
  int runs = 0, observed = 0;
  Pipeline pipeline("outer");
  pipeline.Fixpoint("inner", [&](Pipeline& inner) { inner.Add<Twice>(&runs); });
  pipeline.set_observer([&](const hlo::Module&, std::string_view pass, bool, double) {
    EXPECT_EQ(pass, "twice");
    ++observed;
  });
  const auto module = Parse("ROOT x = f32[] parameter(0)");
  GenericContext context;
  EXPECT_TRUE(pipeline.Run(*module, context));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(observed, 3);
}

TEST(Pipeline, NamesOfPassesAreUnique) {
  std::set<std::string> names;
  for (const PassEntry& entry : AllPasses()) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
}

TEST(Pipeline, EveryPassHasAnEntry) {
  std::set<std::string> names;
  for (const PassEntry& entry : AllPasses()) names.insert(std::string(entry.name));
  const Pipeline pipeline = OptimizationPipeline({}, {});
  const std::function<void(const Pipeline&)> check = [&](const Pipeline& some) {
    for (const auto& pass : some.passes()) {
      if (const auto* nested = dynamic_cast<const Pipeline*>(pass.get()); nested != nullptr)
        check(*nested);
      else
        EXPECT_TRUE(names.contains(std::string(pass->name()))) << pass->name();
    }
  };
  check(pipeline);
}

class SmallModel : public testing::TestWithParam<const char*> {};

TEST_P(SmallModel, ComputesTheSame) {
  const std::filesystem::path path = SharedModels() / "small" / GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const std::string text = ReadText(path);
  hlo::ParseOptions options;
  options.fill_elided = true;
  const auto before = hlo::ParseModule(text, options);
  const auto after = hlo::ParseModule(text, options);
  GenericContext context;
  WholePipeline().Run(*after, context);
  const auto arguments = RandomArguments(*before, Inputs::kMild, 1);
  EXPECT_EQ(Difference(hlo::Evaluate(*before, arguments), hlo::Evaluate(*after, arguments), {false, 1e-4}), "");
}

INSTANTIATE_TEST_SUITE_P(All, SmallModel,
                         testing::Values("bench_scan_N2000_M3.hlo", "dlrm_keras_jax_f32_test_step.hlo",
                                         "jax.issue.33666.linx.frag_0100.module_0005.hlo",
                                         "jax.issue.33666.linx.slow_0100.module_0007.hlo",
                                         "layer_norm_1x4096x768_bf16.hlo", "mha_block_1x12x128x64_bf16.hlo",
                                         "sum_axis_1x4096x1024_bf16.hlo"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(Pipeline, RunsOnEveryRealModel) {
  if (!std::filesystem::exists(SharedModels())) GTEST_SKIP() << "no " << SharedModels();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SharedModels())) {
    if (entry.path().extension() != ".hlo") continue;
    hlo::ParseOptions options;
    options.fill_elided = true;
    const auto module = hlo::ParseModule(ReadText(entry.path()), options);
    GenericContext context;
    EXPECT_NO_THROW(WholePipeline().Run(*module, context)) << entry.path();
  }
}

}  // namespace
}  // namespace hlorun::passes
