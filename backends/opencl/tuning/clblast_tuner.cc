#include "backends/opencl/tuning/clblast_tuner.h"

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <unordered_map>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/runtime/clblast_library.h"

namespace hlorun::opencl {
namespace {

using Found = std::unordered_map<std::string, size_t>;
using Tune = int (*)(cl_command_queue* queue, size_t m, size_t n, size_t k, double fraction, Found& found);

// Its functions are templates of C++: their names are mangled.
struct Mangled {
  hlo::ElementType type;
  const char* argument;  // the template's
  char map_key;          // of std::string within the name's substitutions, counted on by the argument's parts
};
constexpr Mangled kMangled[] = {{hlo::ElementType::kF16, "t", 'B'},
                                {hlo::ElementType::kF32, "f", 'B'},
                                {hlo::ElementType::kF64, "d", 'B'},
                                {hlo::ElementType::kC64, "St7complexIfE", 'D'},
                                {hlo::ElementType::kC128, "St7complexIdE", 'D'}};

// Sizes must be multiples of `step`, the largest tile.
struct TunedKernel {
  const char* name;
  const char* mangled;
  int64_t step, least, most;
};
constexpr TunedKernel kTunedKernels[] = {{"Xgemm", "9TuneXgemm", 256, 256, 1024},
                                         {"XgemmDirect", "15TuneXgemmDirect", 64, 64, 256}};

std::string NameOf(const TunedKernel& kernel, const Mangled& type) {
  const std::string key = fmt::format("S{}_", type.map_key);
  return fmt::format(
      "_ZN7clblast{}I{}EENS_10StatusCodeEPP17_cl_command_queuemmmdRSt13unordered_mapINSt7__cxx1112basic_stringIcSt11"
      "char_traitsIcESaIcEEEmSt4hashI{}ESt8equal_toI{}ESaISt4pairIK{}mEEE",
      kernel.mangled, type.argument, key, key, key);
}

Found NumbersFor(const TunedKernel& kernel, const Mangled& type, const ProductShape& shape, double share,
                 cl_command_queue queue) {
  const auto tune = reinterpret_cast<Tune>(FindClblastSymbol(NameOf(kernel, type)));
  if (tune == nullptr) return {};
  const auto size = [&](int64_t extent) {
    return static_cast<size_t>(std::clamp(CeilDiv(extent, kernel.step) * kernel.step, kernel.least, kernel.most));
  };
  Found found;
  const int status = tune(&queue, size(shape.m), size(shape.n), size(shape.k), share, found);
  return status == 0 ? found : Found{};
}

}  // namespace

std::optional<ClblastNumbers> TuneClblast(const ProductShape& shape, const std::shared_ptr<DeviceContext>& context,
                                          double share) {
  const auto* type = std::find_if(std::begin(kMangled), std::end(kMangled),
                                  [&](const Mangled& mangled) { return mangled.type == shape.lhs_type; });
  if (type == std::end(kMangled)) return std::nullopt;
  ClblastNumbers numbers{};
  bool has_found = false;
  try {
    for (const TunedKernel& kernel : kTunedKernels) {
      const Found found = NumbersFor(kernel, *type, shape, share, context->transfer_queue()());
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (std::string_view(kClblastNumbers[i].kernel) != kernel.name) continue;
        const auto number = found.find(kClblastNumbers[i].name);
        if (number != found.end()) numbers[i] = static_cast<int64_t>(number->second);
      }
      has_found |= !found.empty();
    }
  } catch (const std::exception&) {
    return std::nullopt;  // sizes that it refuses, no memory: CLBlast stays as it comes
  }
  return has_found ? std::optional(numbers) : std::nullopt;
}

}  // namespace hlorun::opencl
