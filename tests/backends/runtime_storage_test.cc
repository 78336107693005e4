// What the runtime keeps: the disk cache of binaries, saved plans, failed builds; and how devices are found.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "backends/opencl/runtime/binary_cache.h"
#include "backends/opencl/runtime/compile_lock.h"
#include "backends/opencl/runtime/compiler_process.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/kernel_text.h"
#include "backends/opencl/runtime/loaded_constants.h"
#include "backends/opencl/runtime/program_text.h"
#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void Spit(const std::string& path, const std::string& contents) { std::ofstream(path, std::ios::binary) << contents; }

// Kernels k0 ... k(count-1), each adds its number, one after the other; a constant is added at the end.
Plan ManyKernels(int count) {
  PlanMaker m;
  const int32_t x = m.Parameter(2), c = m.Constant({0.5, 0.25}), y = m.Result(2);
  m.Add(m.Make(CopyThunk{m.Floats(x, 2), m.Floats(y, 2)}, "copy"));
  for (int i = 0; i < count; ++i) {
    const int32_t k =
        m.Kernel2("k" + std::to_string(i), "for (int i = 0; i < " + std::to_string(i) + "; ++i) *y += 1;", 2);
    m.Add(m.Launch(k, m.Floats(x, 2), m.Floats(y, 2)));
  }
  m.Add(m.Launch(m.Kernel2("last", "*y += *x;", 2), m.Floats(c, 2), m.Floats(y, 2)));
  m.plan().module_text = "HloModule hand_made";
  return m.Take();
}

TEST(DiskCache, WarmBuildCompilesNothing) {
  const ScratchFolder folder;
  const auto cold = Build(ManyKernels(5), folder.path());
  EXPECT_EQ(cold->statistics().kernels_compiled, 6);
  EXPECT_EQ(cold->statistics().programs, 1);  // short kernels are not worth two
  const auto warm = Build(ManyKernels(5), folder.path());
  EXPECT_EQ(warm->statistics().kernels_compiled, 0);
  EXPECT_THAT(RunOne(*warm, {1, 2}), ElementsAre(11.5, 12.25));
}

TEST(DiskCache, CorruptEntriesAreRebuilt) {
  const ScratchFolder folder;
  Build(SquarePlan(2), folder.path());
  for (const int damage : {0, 1, 2}) {
    for (const auto& entry : fs::directory_iterator(folder.path() + "/binaries")) {
      std::string file = Slurp(entry.path());
      if (damage == 0) file[file.size() / 2] ^= 1;
      if (damage == 1) file.resize(file.size() / 2);
      if (damage == 2) file.clear();
      Spit(entry.path(), file);
    }
    const auto rebuilt = Build(SquarePlan(2), folder.path());
    EXPECT_EQ(rebuilt->statistics().kernels_compiled, 1) << damage;
    EXPECT_THAT(RunOne(*rebuilt, {3, 4}), ElementsAre(9, 16));
    EXPECT_EQ(Build(SquarePlan(2), folder.path())->statistics().kernels_compiled, 0) << damage;
  }
}

TEST(DiskCache, AnUnwritableFolderOnlyCostsTime) {
  const auto executable = Build(SquarePlan(2), "/proc/no-such-folder");
  EXPECT_THAT(RunOne(*executable, {3, 4}), ElementsAre(9, 16));
}

TEST(BinaryCache, DropsWhatWasNotUsedForLongest) {
  const ScratchFolder folder;
  const BinaryCache cache(folder.path(), 3000);
  const std::string binary(1000, 'b');
  cache.Store("a", binary);
  cache.Store("b", binary);
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(cache.PathOf("a"), past - std::chrono::hours(1));
  fs::last_write_time(cache.PathOf("b"), past);
  std::string read;
  ASSERT_TRUE(cache.Load("a", read));  // now the newest
  EXPECT_EQ(read, binary);
  cache.Store("c", binary);
  EXPECT_FALSE(cache.Load("b", read));
  EXPECT_TRUE(cache.Load("a", read));
  EXPECT_TRUE(cache.Load("c", read));
}

TEST(BinaryCache, ConcurrentWritersLeaveWholeEntries) {
  const ScratchFolder folder;
  std::vector<std::thread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const BinaryCache cache(folder.path(), 200'000);
      for (int i = 0; i < 200; ++i) {
        const std::string key = std::to_string(i % 7), value(20'000, static_cast<char>('a' + i % 7));
        if (t % 2 == 0) cache.Store(key, value);
        std::string read;
        if (cache.Load(key, read)) bad += read != value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
}

TEST(CompileLock, IsHeldByOneAtATimeForEachProgram) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path();
  std::optional<CompileLock> first(std::in_place, folder, "source");
  EXPECT_FALSE(first->waited());
  std::atomic<bool> released = false;
  std::thread other([&] {
    const CompileLock second(folder, "source");
    EXPECT_TRUE(second.waited());
    EXPECT_TRUE(released);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  released = true;
  first.reset();
  other.join();
  EXPECT_FALSE(CompileLock("/proc/none", "source").waited());
}

TEST(Build, ARefusedKernelKeepsSourceAndLog) {
  const ScratchFolder folder;
  Plan plan = SquarePlan(2);
  plan.kernels[0].source += "this is not OpenCL C\n";
  try {
    Build(std::move(plan), folder.path());
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("square"), HasSubstr(".cl"), HasSubstr(".log"), HasSubstr("error")));
  }
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.is_regular_file()) ++kept;
    if (entry.path().extension() == ".cl") {
      EXPECT_THAT(Slurp(entry.path()), HasSubstr("this is not OpenCL C"));
    }
  }
  EXPECT_EQ(kept, 2);
}

// Loops for ever on zeros: only a warm-up that does not work gets past it.
TEST(Build, WarmUpDoesNotRunKernels) {
  const ScratchFolder folder;
  PlanMaker m;
  const int32_t x = m.Parameter(1), y = m.Result(1);
  const int32_t k =
      m.Kernel2("collatz", "int n = (int)*x, s = 0; while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; ++s; } *y = s;", 1);
  m.Add(m.Launch(k, m.Floats(x, 1), m.Floats(y, 1)));
  EXPECT_THAT(RunOne(*Build(m.Take(), folder.path()), {27}), ElementsAre(111));
}

TEST(Build, KernelsWithBarriersAndLocalMemory) {
  const ScratchFolder folder;
  PlanMaker m;
  const int32_t x = m.Parameter(16), y = m.Result(16);
  Grid grid;
  grid.groups = {2, 1, 1};
  grid.local = {8, 1, 1};
  const int32_t reverse = m.WholeKernel(
      "reverse", 2,
      "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void reverse(__global const float* restrict x, __global float* y) {\n"
      "  __local float tile[8];\n  int i = get_local_id(0), g = get_group_id(0) * 8;\n  tile[i] = x[g + i];\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n  y[g + i] = tile[7 - i];\n}\n",
      grid);
  m.Add(m.Launch(reverse, m.Floats(x, 16), m.Floats(y, 16)));
  EXPECT_THAT(RunOne(*Build(m.Take(), folder.path()), Iota(16)),
              ElementsAre(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
}

TEST(WarmUp, GuardReturnsBeforeTheFirstStatement) {
  Kernel kernel;
  kernel.name = "f";
  kernel.source =
      "float f_helper(float x) { return x; }\n__kernel void f(__global float * restrict p0, int n) {\n  *p0 = f_helper(1);\n}";
  EXPECT_THAT(WithEntryGuard(kernel), HasSubstr("int n) { if (!p0) return;\n  *p0"));
  kernel.source = "__kernel void f(__global float* p0) { barrier(CLK_LOCAL_MEM_FENCE); }";
  EXPECT_EQ(WithEntryGuard(kernel), kernel.source);
}

// As ManyKernels, with sources long enough for two programs and processes that compile them.
Plan LongKernels() {
  Plan plan = ManyKernels(5);
  for (Kernel& kernel : plan.kernels) kernel.source += "// " + std::string(8000, '-') + "\n";
  return plan;
}

TEST(Processes, CompileWhatTheirOwnerTakes) {
  if (!TestContext()->quirks().compiles_in_processes) GTEST_SKIP() << "this platform compiles in any thread";
  const ScratchFolder folder;
  ProgramRequest good, bad;
  good.source = "__kernel void f(__global int* x) { *x = 1; }";
  bad.source = "this is not OpenCL C";
  {
    CompilerProcesses processes({good, good, bad}, TestContext()->device(), 1, folder.path());
    ASSERT_TRUE(processes.Claim(0));
    EXPECT_FALSE(processes.Claim(0));
    EXPECT_THAT(processes.Take(1), testing::Optional(testing::Not(testing::IsEmpty())));
    EXPECT_EQ(processes.Take(2), std::nullopt);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Processes, OneThatFailsCostsOnlyTime) {
  const ScratchFolder folder, other;
  const auto built = Build(LongKernels(), folder.path());
  EXPECT_EQ(built->statistics().programs, 2);
  setenv("HLORUN_COMPILER", "/bin/false", 1);
  const auto alone = Build(LongKernels(), other.path());
  unsetenv("HLORUN_COMPILER");
  EXPECT_EQ(alone->statistics().kernels_compiled, 6);
  EXPECT_EQ(RunOne(*built, {1, 2}), RunOne(*alone, {1, 2}));
}

TEST(ProgramText, JoinsKernelsOfOneWorkItem) {
  Plan plan = ManyKernels(4);
  std::vector<Kernel>& kernels = plan.kernels;
  kernels[1].source += "// barrier(";
  kernels[2].grids[0].groups[0] = 100;
  const std::vector<int32_t> members = {0, 1, 2, 3, 4};
  const auto entry_of = [&](const ProgramForm& form, size_t member) {
    return TextOf(kernels, members, form).entries[member];
  };
  const ProgramForm form{.guarded = true, .joined = true, .large_grid_groups = 100};
  EXPECT_EQ(entry_of(form, 0).which, 0);
  EXPECT_EQ(entry_of(form, 0).pointers, 4U);  // the kernel has two
  EXPECT_EQ(entry_of(form, 1).which, -1);     // has a barrier
  EXPECT_EQ(entry_of(form, 1).symbol, SymbolOf(kernels[1]));
  EXPECT_EQ(entry_of(form, 2).which, -1);  // another variant for its grid would be one of all
  EXPECT_EQ(entry_of(form, 4).which, 2);
  EXPECT_EQ(entry_of(form, 0).symbol, entry_of(form, 4).symbol);
  EXPECT_EQ(entry_of({.guarded = true}, 0).which, -1);
}

TEST(ProgramText, KernelsOfATeamTakeATable) {
  const std::vector<Kernel> kernels = ManyKernels(1).kernels;
  const std::vector<int32_t> members = {0, 1};
  const ProgramText joined = TextOf(kernels, members, {.guarded = true, .shares_groups = true, .joined = true});
  EXPECT_EQ(joined.entries[0].symbol, joined.entries[1].symbol);
  EXPECT_EQ(joined.entries[1].which, 1);
  EXPECT_TRUE(joined.entries[1].by_table);
  EXPECT_THAT(joined.source,
              testing::HasSubstr(joined.entries[0].symbol + "(__global const ulong* p0) {\n  if (!p0) return;\n"));
  EXPECT_THAT(joined.source, testing::HasSubstr("((__global const float*)p0[3], (__global float*)p0[4], (int)p0[0], "
                                                "(int)p0[1]); break;"));
  // Each behind a kernel of its own, where the platform wants that.
  const ProgramText apart = TextOf(kernels, members, {.guarded = true, .shares_groups = true});
  EXPECT_NE(apart.entries[0].symbol, apart.entries[1].symbol);
  EXPECT_EQ(apart.entries[1].which, 0);
}

class SavedPlans : public testing::Test {
 protected:
  std::string Save(int kernels) {
    const std::string path = folder_.path() + "/plan";
    SavePlan(Build(ManyKernels(kernels), folder_.path())->Save(), path);
    return path;
  }
  ScratchFolder folder_;
};

TEST_F(SavedPlans, RunWithoutCompiling) {
  const std::string path = Save(4);
  EXPECT_TRUE(LooksLikePlan(Slurp(path)));
  EXPECT_FALSE(LooksLikePlan("HloModule m"));
  SavedPlan saved = LoadPlan(path);
  EXPECT_EQ(saved.plan.module_text, "HloModule hand_made");
  fs::remove(path);  // the mapping keeps the contents
  const auto executable = BuildExecutable(std::move(saved), TestContext(), {});
  EXPECT_EQ(executable->statistics().kernels_compiled, 0);
  EXPECT_THAT(RunOne(*executable, {1, 2}), ElementsAre(7.5, 8.25));
}

// Programs for a team are none for a queue.
TEST_F(SavedPlans, AreOfOneForm) {
  if (TestContext()->team_context() == nullptr) GTEST_SKIP() << "no team";
  DeviceSpec spec = TestContext()->spec();
  spec.raw_pointers = false;
  const auto device = FindDevice(std::getenv("HLORUN_TEST_DEVICE") != nullptr ? std::getenv("HLORUN_TEST_DEVICE") : "");
  try {
    BuildExecutable(LoadPlan(Save(2)), OpenDevice(device, spec), {});
    FAIL() << "was built";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kFailedPrecondition);
  }
}

TEST_F(SavedPlans, SaveAgainTheSame) {
  const std::string path = Save(2);
  const std::string first = Slurp(path);
  SavePlan(LoadPlan(path), path + ".again");
  EXPECT_EQ(first, Slurp(path + ".again"));
}

TEST_F(SavedPlans, EveryKindOfThunkSurvives) {
  PlanMaker m;
  const int32_t x = m.Parameter(4), y = m.Result(4, 0);
  const Slice s = m.Floats(x, 4), d = m.Floats(y, 4);
  const int32_t k = m.Kernel2("k", "*y = *x;", 4);
  CollectiveThunk collective;
  collective.kind = CollectiveKind::kReduceScatter;
  collective.groups = {{0, 1}, {2, 3}};
  collective.pairs = {{0, 1}};
  collective.operands = {s};
  collective.results = {d};
  collective.operand_shapes = {hlo::Shape::Tuple({F32(4), hlo::Shape::Scalar(hlo::ElementType::kS32)})};
  hlo::Shape bounded = F32(4);
  bounded.set_dynamic_dimension(0, true);
  bounded.set_layout(hlo::Layout::RowMajor(1));
  collective.result_shapes = {bounded};
  collective.reduction = hlo::Opcode::kMaximum;
  WhileThunk loop{m.Seq({m.Launch(k, s, d)}), m.Seq({m.Make(CopyThunk{s, d}, "c")}), d, 7};
  m.Add(m.Make(collective, "rs"));
  m.Add(m.Make(loop, "loop"));
  m.Add(m.Make(
      ConditionalThunk{s, false, {m.Seq({}), m.Seq({m.Make(WriteThunk{WriteThunk::Value::kPartitionId, "", d}, "w")})}},
      "if"));
  m.Add(m.Make(HostCallThunk{"target", "opaque", {s}, {d}, {F32(4)}, {F32(4)}}, "call"));
  m.Add(m.Make(LibraryThunk{hlo::ElementType::kC64, 2, 3, 4, 5, true, false, s, d, s, {1, 2, 3}}, "product"));
  SavedPlan saved{m.Take(), {"binary"}, {{0}}, "fingerprint"};
  saved.plan.entry.thunks[0].op_name = "jit(f)/add";
  saved.plan.entry.thunks[0].flops = 12;
  const std::string path = folder_.path() + "/p";
  SavePlan(saved, path);
  const SavedPlan read = LoadPlan(path);
  const auto& thunks = read.plan.entry.thunks;
  ASSERT_EQ(thunks.size(), 5u);
  const auto& rs = std::get<CollectiveThunk>(thunks[0].work);
  EXPECT_EQ(rs.kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(rs.groups, collective.groups);
  EXPECT_EQ(rs.pairs, collective.pairs);
  EXPECT_EQ(rs.operand_shapes, collective.operand_shapes);
  EXPECT_EQ(rs.result_shapes, collective.result_shapes);
  EXPECT_EQ(rs.reduction, hlo::Opcode::kMaximum);
  EXPECT_EQ(thunks[0].op_name, "jit(f)/add");
  EXPECT_EQ(thunks[0].flops, 12);
  const auto& while_thunk = std::get<WhileThunk>(thunks[1].work);
  EXPECT_EQ(while_thunk.trip_count, 7);
  EXPECT_EQ(std::get<LaunchThunk>(while_thunk.condition->thunks.at(0).work).grid, Grid({{4, 1, 1}, {1, 1, 1}}));
  EXPECT_EQ(std::get<CopyThunk>(while_thunk.body->thunks.at(0).work).to, d);
  EXPECT_EQ(std::get<ConditionalThunk>(thunks[2].work).branches.size(), 2u);
  EXPECT_EQ(std::get<HostCallThunk>(thunks[3].work).config, "opaque");
  const auto& product = std::get<LibraryThunk>(thunks[4].work);
  EXPECT_EQ(product.k, 5);
  EXPECT_TRUE(product.lhs_transposed);
  EXPECT_EQ(product.rhs, d);
  EXPECT_EQ(product.numbers, (ClblastNumbers{1, 2, 3}));
  EXPECT_EQ(read.plan.allocations.at(1).aliased_argument, 0);
  EXPECT_EQ(read.plan.device.ToJson(), saved.plan.device.ToJson());
}

// Whatever byte is wrong, loading says so.
TEST_F(SavedPlans, AnyFlippedByteIsFound) {
  const std::string path = Save(2);
  const std::string good = Slurp(path);
  const std::string bad_path = path + ".bad";
  int flips = 0;
  for (size_t at = 0; at < good.size(); at += 101) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    Spit(bad_path, bad);
    EXPECT_THROW(LoadPlan(bad_path), Error) << "byte " << at;
    ++flips;
  }
  EXPECT_GT(flips, 50);
}

TEST_F(SavedPlans, TruncatedFilesAreRefused) {
  const std::string path = Save(1);
  const std::string good = Slurp(path);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, size_t{4096}, good.size() - 1}) {
    Spit(path, good.substr(0, size));
    EXPECT_THROW(LoadPlan(path), Error) << size;
  }
  EXPECT_THROW(LoadPlan(folder_.path() + "/absent"), Error);
}

TEST_F(SavedPlans, AnotherDriverOrVersionIsNamed) {
  SavedPlan saved = LoadPlan(Save(1));
  const std::string mine = saved.fingerprint;
  saved.fingerprint = "another driver 1.2";
  try {
    BuildExecutable(std::move(saved), TestContext(), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("another driver 1.2"), HasSubstr(mine)));
  }
  const std::string path = Save(1);
  std::string file = Slurp(path);
  file[8] = 99;  // the format's version
  Spit(path, file);
  try {
    LoadPlan(path);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(e.what(), HasSubstr("format 99"));
  }
}

TEST(Devices, AreFoundByPositionAndName) {
  const auto devices = ListDevices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(FindDevice("")->Label(), devices[0]->Label());
  EXPECT_EQ(FindDevice("0:0")->Label(), devices[0]->Label());
  std::string part = devices[0]->spec().platform.substr(0, 6);
  part[0] = static_cast<char>(std::tolower(part[0]));
  EXPECT_EQ(FindDevice(part)->platform_index(), 0);
  try {
    FindDevice("9:9");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kNotFound);
    EXPECT_THAT(e.what(), HasSubstr(devices[0]->Label()));
  }
}

TEST(Devices, FingerprintHoldsNoVolatileProperty) {
  const auto a = FindDevice(""), b = FindDevice("");
  EXPECT_EQ(a->Fingerprint(), b->Fingerprint());
  EXPECT_THAT(a->Fingerprint(), AllOf(HasSubstr(a->spec().driver_version), HasSubstr(a->spec().isa)));
  EXPECT_EQ(a->spec().ToJson(), b->spec().ToJson());
}

TEST(LoadedConstants, AreTouchedOnceForEachLibrary) {
  TouchLoadedConstants();
  EXPECT_EQ(TouchLoadedConstants(), 0U);
  void* library = dlopen("libanl.so.1", RTLD_NOW);  // glibc's, a few pages, which nothing else here needs
  if (library == nullptr) GTEST_SKIP() << "no libanl.so.1 here";
  const size_t pages = TouchLoadedConstants();
  EXPECT_GE(pages, 1U);
  EXPECT_LE(pages, 64U);
  EXPECT_EQ(TouchLoadedConstants(), 0U);
  dlclose(library);
}

}  // namespace
}  // namespace hlorun::opencl
