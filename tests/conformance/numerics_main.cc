// How accurate a device's elementary functions are: a table for docs/numerics.md, and an exit status for ctest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <cmath>
#include <iostream>
#include <random>
#include <span>

#include "hlo/number_types.h"
#include "tests/conformance/numerics.h"

namespace hlorun::conformance {
namespace {

struct Flags {
  std::string device, only;
  int64_t values = 1 << 18;   // of one argument, seeded
  int64_t pairs = 1 << 18;    // of two
  int64_t doubles = 1 << 14;  // f64
  bool all = false;           // every f32 in place of `values`
  double limit = 4;
  uint64_t seed = 1;
};

constexpr int64_t kChunk = 1 << 16;
constexpr int64_t kLongChunk = 1 << 22;

// Half of them any bit pattern, half in the range where most programs are.
std::vector<double> Arguments(std::mt19937_64& engine, int64_t count, ElementType type, double low, double high) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = engine();
    const double usual = low + (high - low) * std::ldexp(static_cast<double>(engine() >> 11), -53);
    const double any = type == ElementType::kF64
                           ? std::bit_cast<double>(bits)
                           : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    const double value = i % 2 == 0 ? usual : any;
    values.push_back(type == ElementType::kF64 ? value : static_cast<double>(static_cast<float>(value)));
  }
  return values;
}

// Within some binary orders of magnitude below x, where remainders are not x itself and quotients have few digits: all
// of them, for one that is far away may send a whole vector another way.
std::vector<double> NearArguments(std::mt19937_64& engine, std::span<const double> x, ElementType type) {
  constexpr int kOrders = 21;
  std::vector<double> values;
  for (const double of : x) {
    const uint64_t bits = engine();
    const double significand = 1 + std::ldexp(static_cast<double>(bits >> 11), -53);
    const int exponent = of == 0 || !std::isfinite(of) ? 0 : std::ilogb(of);
    const double value = std::ldexp(significand, exponent - static_cast<int>(bits % kOrders));
    values.push_back(type == ElementType::kF64 ? value : static_cast<double>(static_cast<float>(value)));
  }
  return values;
}

bool Print(const Measurement& measurement, const char* type, double limit) {
  bool fine = true;
  for (size_t i = 0; i < measurement.functions().size(); ++i) {
    const Accuracy& a = measurement.accuracies()[i];
    const bool exceeds = !(a.ulps <= limit);
    fine = fine && !exceeds;
    const auto* f = measurement.functions()[i];
    std::cout << fmt::format("| {} | {} | {:.2f} | {:.9g}{} | {}{}\n", f->opcode, type, a.ulps, a.x,
                             f->arguments == 2 ? fmt::format(", {:.9g}", a.y) : "", a.values,
                             exceeds ? fmt::format(" | got {:.9g}, exact {:.9g}", a.got, a.exact) : " |");
  }
  return fine;
}

bool EveryFloat(Client& client, const Flags& flags) {
  Measurement measurement(client, ElementType::kF32, 1, kLongChunk, flags.only);
  std::vector<double> x(kLongChunk);
  for (uint64_t begin = 0; begin < (uint64_t{1} << 32); begin += kLongChunk) {
    for (int64_t i = 0; i < kLongChunk; ++i) {
      x[static_cast<size_t>(i)] =
          static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(begin + static_cast<uint64_t>(i))));
    }
    measurement.Run(x, {});
  }
  return Print(measurement, "f32", flags.limit);
}

// Each function on arguments of its own range: one module for each, since what is drawn differs.
bool Seeded(Client& client, const Flags& flags, ElementType type, int arguments, int64_t count) {
  const int64_t chunk = std::min(count, kChunk);
  Measurement measurement(client, type, arguments, chunk, flags.only);
  std::mt19937_64 engine(flags.seed);
  for (int64_t done = 0; done < count;) {
    for (const ElementaryFunction* f : measurement.functions()) {
      const std::vector<double> x = Arguments(engine, chunk, type, f->low, f->high);
      const bool near = done / chunk % 2 != 0;
      measurement.Run(x, arguments == 1 ? std::vector<double>()
                         : near         ? NearArguments(engine, x, type)
                                        : Arguments(engine, chunk, type, f->low, f->high));
      done += chunk;
    }
    if (measurement.functions().empty()) break;
  }
  return Print(measurement, type == ElementType::kF64 ? "f64" : "f32", flags.limit);
}

// All values of a type of 16 bits, for functions of one argument: computed in f32 and rounded once, so that the error
// is half a unit and what four units of f32 add to it.
bool SixteenBits(Client& client, const Flags& flags, ElementType type) {
  constexpr double kRoundedOnce = 0.501;
  std::vector<double> x;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    x.push_back(type == ElementType::kF16 ? static_cast<double>(std::bit_cast<hlo::half>(pattern))
                                          : static_cast<double>(std::bit_cast<hlo::bfloat16>(pattern)));
  }
  Measurement measurement(client, type, 1, static_cast<int64_t>(x.size()), flags.only);
  measurement.Run(x, {});
  return Print(measurement, type == ElementType::kF16 ? "f16" : "bf16", kRoundedOnce);
}

int Run(const Flags& flags) {
  ClientOptions options;
  options.device = flags.device;
  const std::shared_ptr<Client> client = Client::Create(options);
  std::cout << client->device().platform_name << ", " << client->device().name
            << "\n\n| function | type | largest error, ulp | at | values |\n|---|---|---|---|---|\n";
  bool fine = flags.all ? EveryFloat(*client, flags) : Seeded(*client, flags, ElementType::kF32, 1, flags.values);
  fine &= Seeded(*client, flags, ElementType::kF32, 2, flags.pairs);
  fine &= SixteenBits(*client, flags, ElementType::kF16);
  fine &= SixteenBits(*client, flags, ElementType::kBF16);
  if (flags.doubles > 0) {
    fine &= Seeded(*client, flags, ElementType::kF64, 1, flags.doubles);
    fine &= Seeded(*client, flags, ElementType::kF64, 2, flags.doubles);
  }
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace hlorun::conformance

int main(int argc, char** argv) {
  CLI::App app("Accuracy of a device's elementary functions against the C library's f64");
  hlorun::conformance::Flags flags;
  app.add_option("--device", flags.device, "as hlorun's --device");
  app.add_option("--only", flags.only, "one opcode");
  app.add_option("--values", flags.values, "seeded arguments of functions of one");
  app.add_option("--pairs", flags.pairs, "seeded pairs for functions of two");
  app.add_option("--doubles", flags.doubles, "seeded f64 arguments; 0: none");
  app.add_option("--limit", flags.limit, "largest error, in ulp, that passes");
  app.add_option("--seed", flags.seed, "of the arguments");
  app.add_flag("--all", flags.all, "every f32 value for functions of one argument");
  CLI11_PARSE(app, argc, argv);
  try {
    return hlorun::conformance::Run(flags);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
