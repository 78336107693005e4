#include "backends/opencl/runtime/clblast_override.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/opencl/runtime/clblast_library.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

// clblast::RetrieveParameters, which only the C++ interface has.
constexpr const char* kRetrieve =
    "_ZN7clblast18RetrieveParametersEP13_cl_device_idRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEENS_"
    "9PrecisionERSt13unordered_mapIS7_mSt4hashIS7_ESt8equal_toIS7_ESaISt4pairIS8_mEEE";
using Retrieve = int (*)(cl_device_id device, const std::string& kernel, int precision,
                         std::unordered_map<std::string, size_t>& parameters);
using Override = int (*)(cl_device_id device, const char* kernel, int precision, size_t count, const char** names,
                         const size_t* values);

// Those of one kernel, from `first` on.
size_t CountOfKernel(size_t first) {
  size_t end = first;
  while (end < std::size(kClblastNumbers) &&
         std::string_view(kClblastNumbers[end].kernel) == kClblastNumbers[first].kernel)
    ++end;
  return end - first;
}

}  // namespace

ClblastNumbers ClblastNumbersInUse(cl_device_id device, hlo::ElementType type) {
  const int precision = ClblastPrecision(type);
  const auto retrieve = reinterpret_cast<Retrieve>(ClblastSymbol(kRetrieve));
  ClblastNumbers numbers{};
  for (size_t first = 0; first < numbers.size(); first += CountOfKernel(first)) {
    std::unordered_map<std::string, size_t> found;
    const char* kernel = kClblastNumbers[first].kernel;
    if (const int status = retrieve(device, kernel, precision, found); status != 0)
      Fail(ErrorCode::kInternal, "CLBlast does not say what it compiles {} with (its status {})", kernel, status);
    for (size_t i = first; i < first + CountOfKernel(first); ++i)
      numbers[i] = static_cast<int64_t>(found[kClblastNumbers[i].name]);
  }
  return numbers;
}

namespace {

void SetKernel(cl_device_id device, int precision, size_t first, std::span<const int64_t> numbers) {
  std::vector<const char*> names;
  for (size_t i = 0; i < numbers.size(); ++i) names.push_back(kClblastNumbers[first + i].name);
  const std::vector<size_t> values(numbers.begin(), numbers.end());
  const char* kernel = kClblastNumbers[first].kernel;
  const auto override_with = reinterpret_cast<Override>(ClblastSymbol("CLBlastOverrideParameters"));
  if (const int status = override_with(device, kernel, precision, names.size(), names.data(), values.data());
      status != 0)
    Fail(ErrorCode::kInternal, "CLBlast refuses other numbers for {} (its status {})", kernel, status);
}

struct InUse {
  ClblastNumbers numbers{};                // as they were asked for
  std::optional<ClblastNumbers> at_first;  // those that CLBlast comes with; known once others are asked for
};

}  // namespace

void UseClblastNumbers(cl_device_id device, hlo::ElementType type, const ClblastNumbers& numbers) {
  static std::map<std::pair<cl_device_id, hlo::ElementType>, InUse> all;
  InUse& in_use = all[{device, type}];
  if (in_use.numbers == numbers) return;
  const int precision = ClblastPrecision(type);
  if (!in_use.at_first) in_use.at_first = ClblastNumbersInUse(device, type);
  in_use.numbers.fill(-1);  // until all are set
  for (size_t first = 0; first < numbers.size(); first += CountOfKernel(first)) {
    const auto of = [&](const ClblastNumbers& n) { return std::span(n).subspan(first, CountOfKernel(first)); };
    const bool are_own = std::all_of(of(numbers).begin(), of(numbers).end(), [](int64_t n) { return n == 0; });
    SetKernel(device, precision, first, of(are_own ? *in_use.at_first : numbers));
  }
  in_use.numbers = numbers;
}

}  // namespace hlorun::opencl
