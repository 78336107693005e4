// The memory passes on the real modules: plans are right, and close to the lower bound.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "passes/fusion/fusion.h"
#include "tests/passes/memory/planned_module.h"
#include "tests/passes/memory/symbolic_run.h"
#include "tests/passes/shared_models.h"

namespace hlorun::passes {
namespace {

TEST(MemoryOfModels, PlansAreRightAndNearTheLowerBound) {
  const auto paths = SharedModels();
  if (paths.empty()) GTEST_SKIP() << "no shared/models beside the repository (HLORUN_SHARED names the folder)";
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const Planned planned = PlanMemory(text.str(), Fusion());
    EXPECT_EQ(CheckSymbolically(*planned.module, planned.buffers, planned.kernels), "");
    const MemoryStatistics& memory = planned.buffers.statistics();
    const double ratio = static_cast<double>(memory.peak_bytes) / static_cast<double>(memory.largest_live_bytes);
    // Every block starts at a multiple of 64 bytes, which is what modules of a few scalars consist of.
    constexpr double kAlignmentBytes = 4096;
    EXPECT_LE(static_cast<double>(memory.peak_bytes),
              1.15 * static_cast<double>(memory.largest_live_bytes) + kAlignmentBytes);
    EXPECT_GE(ratio, 1.0);
    printf("%-60s peak %6.2f MB, %.3f of the largest live set, %lld copies\n",
           std::filesystem::path(path).filename().c_str(), static_cast<double>(memory.peak_bytes) / 1e6, ratio,
           static_cast<long long>(CountOf(*planned.module, hlo::Opcode::kCopy)));
  }
}

}  // namespace
}  // namespace hlorun::passes
