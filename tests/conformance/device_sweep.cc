#include "tests/conformance/device_sweep.h"

#include <algorithm>

#include "backends/opencl/compiler.h"
#include "backends/opencl/kernels/product_candidates.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "tests/conformance/packing.h"

namespace hlorun::conformance {
namespace {

struct Expected {
  Case c;
  std::vector<hlo::Literal> results;
};

// The options with one of the candidates for each product.
CompileOptions WithCandidates(const hlo::Module& module, const DeviceSpec& device, CompileOptions options,
                              int64_t candidate) {
  auto record = std::make_shared<opencl::TuningRecord>(device);
  for (const opencl::ProductUse& use : opencl::CompileModule(module, device, options).products) {
    const auto candidates = opencl::ProductCandidates(use.problem, device, /*few=*/false, /*other_orders=*/true);
    record->Set(use.problem, {.schedule = candidates[static_cast<size_t>(candidate) % candidates.size()]});
  }
  options.tuned = record;
  return options;
}

// Cases as one module, ready to run.
struct Prepared {
  std::shared_ptr<Executable> executable;
  std::vector<Array> inputs;

  std::vector<hlo::Literal> Run() const { return ToLiterals(executable->Run(inputs)); }
};

Prepared Prepare(Client& client, std::span<const Case> cases, const CompileOptions& options, int64_t candidate) {
  const std::unique_ptr<hlo::Module> packed = Packed(cases);
  const Module module = Module::FromText(hlo::PrintModule(*packed), "conformance");
  const auto executable = client.Compile(
      module, candidate < 0 ? options : WithCandidates(*packed, client.device().spec, options, candidate));
  return {executable, ToDevice(client, PackedInputs(cases))};
}

template <typename Bits>
void FlushElements(std::byte* data, int64_t count, Bits exponent) {
  auto* bits = reinterpret_cast<Bits*>(data);
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  for (int64_t i = 0; i < count; ++i) {
    if ((bits[i] & exponent) == 0) bits[i] &= kSign;
  }
}

// Zeros of the same sign for denormals of the types that devices compute in, and of bf16, which has f32's.
void FlushDenormals(hlo::Literal& literal) {
  using hlo::ElementType;
  const int64_t count = literal.ElementCount();
  switch (literal.element_type()) {
    case ElementType::kBF16: return FlushElements<uint16_t>(literal.mutable_data(), count, 0x7f80);
    case ElementType::kF32: return FlushElements<uint32_t>(literal.mutable_data(), count, 0x7f800000);
    case ElementType::kC64: return FlushElements<uint32_t>(literal.mutable_data(), 2 * count, 0x7f800000);
    case ElementType::kF64: return FlushElements<uint64_t>(literal.mutable_data(), count, 0x7ff0000000000000);
    case ElementType::kC128: return FlushElements<uint64_t>(literal.mutable_data(), 2 * count, 0x7ff0000000000000);
    default: return;
  }
}

std::vector<Outcome> Judged(std::span<const Expected> part, std::vector<hlo::Literal> results, bool flushes_denormals) {
  std::vector<Outcome> outcomes;
  size_t next = 0;
  for (const Expected& expected : part) {
    Outcome& outcome = outcomes.emplace_back(expected.c.name, Outcome::Kind::kAgrees, "");
    for (const hlo::Literal& result : expected.results) {
      hlo::Literal& found = results.at(next++);
      if (flushes_denormals) FlushDenormals(found);
      const std::string difference = Difference(expected.c, found, result);
      if (difference.empty() || outcome.kind != Outcome::Kind::kAgrees) continue;
      outcome.kind = Outcome::Kind::kDiffers;
      outcome.message = difference;
    }
  }
  return outcomes;
}

bool Differs(const Outcome& outcome) { return outcome.kind == Outcome::Kind::kDiffers; }

// Whether what differed does so again.
void AddSecondRun(std::span<const Expected> part, const Prepared& prepared, bool flushes_denormals,
                  std::vector<Outcome>& judged) {
  try {
    const std::vector<Outcome> again = Judged(part, prepared.Run(), flushes_denormals);
    for (size_t i = 0; i < judged.size(); ++i) {
      if (Differs(judged[i]) && !Differs(again[i])) judged[i].message += "; right when run again";
    }
  } catch (const Error& error) {
    for (Outcome& outcome : judged) {
      if (Differs(outcome)) outcome.message += std::string("; the second run failed: ") + error.what();
    }
  }
}

void SweepPart(Client& client, std::span<const Expected> part, const CompileOptions& options, int64_t candidate,
               bool flushes_denormals, std::vector<Outcome>& outcomes) {
  if (part.empty()) return;
  std::vector<Case> cases;
  for (const Expected& expected : part) cases.push_back(expected.c);
  std::vector<Outcome> judged;
  try {
    const Prepared prepared = Prepare(client, cases, options, candidate);
    judged = Judged(part, prepared.Run(), flushes_denormals);
    if (std::any_of(judged.begin(), judged.end(), Differs)) AddSecondRun(part, prepared, flushes_denormals, judged);
  } catch (const Error& error) {
    if (part.size() == 1) {
      judged = {{part[0].c.name, Outcome::Kind::kRefused, error.what()}};
    } else {
      SweepPart(client, part.first(part.size() / 2), options, candidate, flushes_denormals, outcomes);
      SweepPart(client, part.subspan(part.size() / 2), options, candidate, flushes_denormals, outcomes);
    }
  }
  outcomes.insert(outcomes.end(), judged.begin(), judged.end());
}

}  // namespace

std::vector<Outcome> Sweep(Client& client, std::span<const Case> cases, const CompileOptions& options,
                           int64_t candidate, bool flushes_denormals) {
  std::vector<Expected> expected;
  for (Case c : cases) {
    try {
      const auto module = hlo::ParseModule(c.text, {.file_name = c.name});
      if (flushes_denormals) std::for_each(c.inputs.begin(), c.inputs.end(), FlushDenormals);
      std::vector<hlo::Literal> results = hlo::FlattenLiteral(hlo::Evaluate(*module, c.inputs));
      if (flushes_denormals) std::for_each(results.begin(), results.end(), FlushDenormals);
      expected.push_back({std::move(c), std::move(results)});
    } catch (const Error&) {
      // Not defined for this type: nothing to hold the device against.
    }
  }
  std::vector<Outcome> outcomes;
  const auto alone =
      std::stable_partition(expected.begin(), expected.end(), [](const Expected& e) { return !e.c.alone; });
  const std::span<const Expected> all(expected);
  const auto together = static_cast<size_t>(alone - expected.begin());
  SweepPart(client, all.first(together), options, candidate, flushes_denormals, outcomes);
  for (size_t i = together; i < all.size(); ++i)
    SweepPart(client, all.subspan(i, 1), options, candidate, flushes_denormals, outcomes);
  return outcomes;
}

}  // namespace hlorun::conformance
