#include "hlo/fault.h"

#include <array>
#include <charconv>
#include <chrono>
#include <thread>

#include "hlo/error.h"

namespace hlorun {
namespace {

struct FaultRow {
  const char* name;
  FaultArgument argument;
  const char* meaning;
};

constexpr FaultRow kRows[] = {
#define HLORUN_FAULT_ROW(enumerator, name, argument, meaning) {name, FaultArgument::argument, meaning},
    HLORUN_FAULTS(HLORUN_FAULT_ROW)
#undef HLORUN_FAULT_ROW
};
constexpr size_t kCount = std::size(kRows);

// Of each point: what is left to count, or how long it takes.
struct ArmedFault {
  std::atomic<int64_t> visits_left{0};  // 0: not armed, or spent
  std::atomic<double> seconds{0};
};
std::array<ArmedFault, kCount> g_armed;

size_t RowOf(std::string_view name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (name == kRows[i].name) return i;
  }
  std::string known;
  for (const FaultRow& row : kRows) known += std::string(known.empty() ? "" : ", ") + row.name;
  Invalid("HLORUN_FAULT: there is no point \"{}\"; there are: {}", name, known);
}

template <typename Number>
Number ParseNumber(std::string_view text, std::string_view item) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    Invalid("HLORUN_FAULT: \"{}\" is no number in {} (name[@rank][:argument])", text, item);
  }
  return value;
}

void ArmOne(std::string_view item, int rank) {
  const size_t colon = item.find(':');
  std::string_view name = item.substr(0, colon);
  std::string_view argument = colon == std::string_view::npos ? "" : item.substr(colon + 1);
  const size_t at = name.find('@');
  const bool here = at == std::string_view::npos || ParseNumber<int>(name.substr(at + 1), item) == rank;
  name = name.substr(0, at);
  const size_t row = RowOf(name);
  if (kRows[row].argument == FaultArgument::kSeconds) {
    if (argument.ends_with('s')) argument.remove_suffix(1);
    const double seconds = argument.empty() ? 1 : ParseNumber<double>(argument, item);
    if (here) g_armed[row].seconds = seconds;
  } else {
    const auto visits = argument.empty() ? 1 : ParseNumber<int64_t>(argument, item);
    if (here) g_armed[row].visits_left = visits;
  }
  if (here) fault_internal::armed = true;
}

}  // namespace

namespace fault_internal {

std::atomic<bool> armed{false};

bool Hits(Fault fault) {
  std::atomic<int64_t>& left = g_armed[static_cast<size_t>(fault)].visits_left;
  if (left.load() <= 0) return false;
  return left.fetch_sub(1) == 1;
}

void Pause(Fault fault) {
  const double seconds = g_armed[static_cast<size_t>(fault)].seconds;
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace fault_internal

void ArmFaults(const std::string& text, int rank) {
  fault_internal::armed = false;
  for (ArmedFault& fault : g_armed) {
    fault.visits_left = 0;
    fault.seconds = 0;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    ArmOne(item, rank);
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
  }
}

std::string FaultTable() {
  std::string table;
  for (const FaultRow& row : kRows) table += fmt::format("{:<14}{}\n", row.name, row.meaning);
  return table;
}

}  // namespace hlorun
