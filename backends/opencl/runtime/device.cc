#include "backends/opencl/runtime/device.h"

#include <algorithm>
#include <cctype>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/host_cpu.h"
#include "backends/opencl/runtime/probe.h"
#include "backends/opencl/runtime/quirks.h"

namespace hlorun::opencl {
namespace {

// Bumped when kernels compiled from the same source must not be reused (warm-up, entry guard, argument passing
// changed), or the text in saved plans was found wrong.
constexpr int kCodegenVersion = 5;

// Vendors' queries that the headers of this machine may not name.
constexpr cl_device_info kWarpSizeNv = 0x4003, kWavefrontWidthAmd = 0x4043, kSubGroupSizesIntel = 0x4108;

struct Found {
  cl::Platform platform;
  cl::Device device;
  int platform_index, device_index;
};

bool StartsWith(const std::string& text, const std::string& part) { return text.compare(0, part.size(), part) == 0; }

std::vector<Found> Discover() {
  const std::vector<std::string> hidden = ShowInlineDevices();
  NameCpuToPlatforms();
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error&) {
    // The loader reports "no platform" as an error; the caller words it.
  }
  std::vector<Found> found;
  for (size_t p = 0; p < platforms.size(); ++p) {
    std::vector<cl::Device> devices;
    try {
      platforms[p].getDevices(CL_DEVICE_TYPE_ALL, &devices);
    } catch (const cl::Error&) {
      continue;  // a platform without a device of its own
    }
    std::erase_if(devices, [&](const cl::Device& device) {
      const std::string name = device.getInfo<CL_DEVICE_NAME>();
      return std::any_of(hidden.begin(), hidden.end(), [&](const std::string& h) { return StartsWith(name, h); });
    });
    for (size_t d = 0; d < devices.size(); ++d) {
      found.push_back({platforms[p], devices[d], static_cast<int>(p), static_cast<int>(d)});
    }
  }
  if (found.empty()) {
    Fail(
        ErrorCode::kNotFound,
        "no OpenCL device found: install a platform, such as the package pocl-opencl-icd for any CPU, "
        "intel-opencl-icd for Intel GPUs, mesa-opencl-icd or the vendor's driver; OCL_ICD_VENDORS, if set, must name a "
        "folder of .icd files");
  }
  return found;
}

std::shared_ptr<Device> Make(const Found& found) {
  return std::make_shared<Device>(found.platform, found.device, found.platform_index, found.device_index);
}

bool Contains(std::string text, std::string part) {
  const auto lower = [](std::string& s) {
    std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  };
  lower(text);
  lower(part);
  return text.find(part) != std::string::npos;
}

std::string LabelOf(const Found& f) {
  return fmt::format("{}:{} {} ({}, {})", f.platform_index, f.device_index, f.device.getInfo<CL_DEVICE_NAME>(),
                     f.platform.getInfo<CL_PLATFORM_NAME>(), f.device.getInfo<CL_DEVICE_VERSION>());
}

bool Matches(const Found& f, const std::string& selector) {
  if (selector == fmt::format("{}:{}", f.platform_index, f.device_index)) return true;
  const bool is_position =
      std::all_of(selector.begin(), selector.end(), [](unsigned char c) { return std::isdigit(c) || c == ':'; });
  // "pocl" is in the platform's version only.
  return !is_position && (Contains(f.platform.getInfo<CL_PLATFORM_NAME>(), selector) ||
                          Contains(f.device.getInfo<CL_DEVICE_NAME>(), selector) ||
                          Contains(f.platform.getInfo<CL_PLATFORM_VERSION>(), selector));
}

// Of sizes that a device offers, the largest that is at most `most`.
int64_t SubGroupSize(const cl::Device& device, int64_t most) {
  for (cl_device_info query : {kWarpSizeNv, kWavefrontWidthAmd}) {
    cl_uint value = 0;
    if (clGetDeviceInfo(device(), query, sizeof(value), &value, nullptr) == CL_SUCCESS && value > 0) return value;
  }
  size_t sizes[16] = {}, bytes = 0;
  if (clGetDeviceInfo(device(), kSubGroupSizesIntel, sizeof(sizes), sizes, &bytes) != CL_SUCCESS) return 0;
  int64_t best = 0;
  for (size_t i = 0; i < bytes / sizeof(size_t); ++i) {
    const auto size = static_cast<int64_t>(sizes[i]);
    if (size <= most) best = std::max(best, size);
  }
  return best;
}

void FillFromGpu(DeviceSpec& spec, const cl::Device& device) {
  spec.vector_bytes = 4 * static_cast<int64_t>(device.getInfo<CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT>());
  spec.l2_bytes = static_cast<int64_t>(device.getInfo<CL_DEVICE_GLOBAL_MEM_CACHE_SIZE>());
  spec.l3_bytes = 0;
}

// Not believed of CPUs: Intel's runtime says so of one that plays a GPU, where it costs 1.6 times the time.
bool HasIntegerDot(const cl::Device& device, const std::string& extensions) {
  cl_device_integer_dot_product_acceleration_properties_khr is_fast{};
  return Contains(extensions, "cl_khr_integer_dot_product") &&
         clGetDeviceInfo(device(), CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR,
                         sizeof(is_fast), &is_fast, nullptr) == CL_SUCCESS &&
         is_fast.signed_accelerated == CL_TRUE && is_fast.unsigned_accelerated == CL_TRUE;
}

// The form in which work-items of sub-groups may hand each other values, to be believed after a probe; empty: none.
std::string SubGroupMovesOf(const std::string& extensions, const Quirks& quirks) {
  if (quirks.sub_group_moves != nullptr) return quirks.sub_group_moves;
  return Contains(extensions, "cl_khr_subgroup_shuffle") && Contains(extensions, "cl_intel_required_subgroup_size")
             ? "khr"
             : "";
}

}  // namespace

Device::Device(cl::Platform platform, cl::Device device, int platform_index, int device_index)
    : platform_(std::move(platform)),
      device_(std::move(device)),
      platform_index_(platform_index),
      device_index_(device_index) {
  const cl_device_type type = device_.getInfo<CL_DEVICE_TYPE>();
  const bool is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  spec_.name = device_.getInfo<CL_DEVICE_NAME>();
  spec_.platform = platform_.getInfo<CL_PLATFORM_NAME>();
  spec_.driver_version = device_.getInfo<CL_DRIVER_VERSION>();
  spec_.device_class = is_cpu ? DeviceClass::kCpu : DeviceClass::kGpu;
  spec_.compute_units = device_.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
  spec_.local_memory_bytes = static_cast<int64_t>(device_.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>());
  spec_.max_work_group_size = static_cast<int64_t>(device_.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>());
  spec_.global_memory_bytes = static_cast<int64_t>(device_.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>());
  spec_.max_allocation_bytes = static_cast<int64_t>(device_.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>());
  spec_.buffer_alignment = std::max<int64_t>(64, device_.getInfo<CL_DEVICE_MEM_BASE_ADDR_ALIGN>() / 8);
  spec_.argument_bytes = static_cast<int64_t>(device_.getInfo<CL_DEVICE_MAX_PARAMETER_SIZE>());
  if (is_cpu) {
    FillFromCpu(spec_);
  } else {
    FillFromGpu(spec_, device_);
  }
  // A CPU's lanes are those of a vector: of two vectors, each step costs three times as much (docs/gpu.md).
  spec_.sub_group_size = SubGroupSize(device_, is_cpu ? spec_.vector_bytes / 4 : 32);
  const std::string extensions = device_.getInfo<CL_DEVICE_EXTENSIONS>();
  spec_.has_f64 = Contains(extensions, "cl_khr_fp64");
  spec_.has_f16 = Contains(extensions, "cl_khr_fp16");
  spec_.has_int64_atomics = Contains(extensions, "cl_khr_int64_base_atomics");
  cl_bool unified = CL_FALSE;
  clGetDeviceInfo(device_(), CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified, nullptr);
  spec_.unified_memory = unified == CL_TRUE;

  const Quirks quirks = QuirksOf(spec_.platform, type);
  spec_.has_inline_assembly = quirks.inline_assembly;
  spec_.spare_registers = quirks.spare_registers;
  if (quirks.volatile_memory_size) spec_.global_memory_bytes = ThisCpu().memory_bytes;
  cl_device_svm_capabilities svm = 0;
  clGetDeviceInfo(device_(), CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, nullptr);
  spec_.raw_pointers =
      (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0 ||
      (quirks.may_take_raw_pointers && ProbeRawPointers(platform_index_, device_index_, Fingerprint()));
  calls_kernels_ =
      spec_.raw_pointers && quirks.calls_kernels && ProbeNativeCalls(platform_index_, device_index_, Fingerprint());
  const auto has_instructions = [&](const char* feature) { return is_cpu && ThisCpu().Has(feature); };
  if (quirks.bf16_dot != nullptr && has_instructions("avx512bf16") &&
      ProbeBf16Dot(quirks.bf16_dot, platform_index_, device_index_, Fingerprint())) {
    spec_.bf16_dot = quirks.bf16_dot;
  }
  if (quirks.s8_dot != nullptr && has_instructions("avx512vnni") &&
      ProbeS8Dot(quirks.s8_dot, platform_index_, device_index_, Fingerprint())) {
    spec_.s8_dot = quirks.s8_dot;
  }
  if (quirks.half_conversion != nullptr && has_instructions("f16c") &&
      ProbeHalves(quirks.half_conversion, spec_.vector_bytes / 4, platform_index_, device_index_, Fingerprint())) {
    spec_.half_conversion = quirks.half_conversion;
  }
  const auto has_tiles = [&](const char* feature, const char* type) {
    return quirks.matrix_unit && has_instructions(feature) &&
           ProbeMatrixUnit(type, platform_index_, device_index_, Fingerprint());
  };
  spec_.has_bf16_tiles = has_tiles("amxbf16", "bf16");
  spec_.has_s8_tiles = has_tiles("amxint8", "s8");
  if (quirks.matrix_fragments != nullptr &&
      ProbeFragments(quirks.matrix_fragments, platform_index_, device_index_, Fingerprint())) {
    spec_.matrix_fragments = quirks.matrix_fragments;
    spec_.has_s8_fragments = ProbeS8Fragments(quirks.matrix_fragments, platform_index_, device_index_, Fingerprint());
    spec_.has_wide_fragments =
        ProbeWideFragments(quirks.matrix_fragments, platform_index_, device_index_, Fingerprint());
  }
  spec_.has_integer_dot = !is_cpu && HasIntegerDot(device_, extensions);
  const std::string moves = SubGroupMovesOf(extensions, quirks);
  if (!moves.empty() && spec_.sub_group_size > 1 &&
      ProbeSubGroupMoves(moves, spec_.sub_group_size, platform_index_, device_index_, Fingerprint())) {
    spec_.sub_group_moves = moves;
  }
  // A plain mapping has no limit of the runtime's.
  if (spec_.raw_pointers) spec_.max_allocation_bytes = spec_.global_memory_bytes;
}

Device::Device(const Device& like, cl::Device device)
    : platform_(like.platform_),
      device_(std::move(device)),
      platform_index_(like.platform_index_),
      device_index_(like.device_index_),
      spec_(like.spec_),
      calls_kernels_(like.calls_kernels_) {
  spec_.name = device_.getInfo<CL_DEVICE_NAME>();
}

std::shared_ptr<Device> Device::InlineDevice() const {
  const char* prefix = QuirksOf(spec_.platform, device_.getInfo<CL_DEVICE_TYPE>()).inline_device;
  const auto itself = [&] { return calls_kernels_ ? std::make_shared<Device>(*this, device_) : nullptr; };
  if (prefix == nullptr || StartsWith(spec_.name, prefix)) return itself();
  std::vector<cl::Device> devices;
  platform_.getDevices(CL_DEVICE_TYPE_ALL, &devices);
  for (const cl::Device& device : devices) {
    if (StartsWith(device.getInfo<CL_DEVICE_NAME>(), prefix)) return std::make_shared<Device>(*this, device);
  }
  return itself();
}

std::string Device::Label() const { return LabelOf({platform_, device_, platform_index_, device_index_}); }

std::string Device::Fingerprint() const {
  const std::string target = CpuTargetOf(QuirksOf(spec_.platform, device_.getInfo<CL_DEVICE_TYPE>()));
  return fmt::format("{}, {}, driver {}, device {}, ISA {}{}, options {}, hlorun codegen {}", spec_.platform,
                     platform_.getInfo<CL_PLATFORM_VERSION>(), spec_.driver_version, spec_.name,
                     spec_.isa.empty() ? "-" : spec_.isa, target.empty() ? "" : " as " + target,
                     BuildOptionsOf(device_), kCodegenVersion);
}

std::vector<std::shared_ptr<Device>> ListDevices() {
  std::vector<std::shared_ptr<Device>> devices;
  for (const Found& found : Discover()) devices.push_back(Make(found));
  return devices;
}

std::shared_ptr<Device> FindDevice(const std::string& selector) {
  const std::vector<Found> all = Discover();
  if (selector.empty()) return Make(all.front());
  for (const Found& found : all) {
    if (Matches(found, selector)) return Make(found);
  }
  std::string list;
  for (const Found& found : all) list += (list.empty() ? "" : "; ") + LabelOf(found);
  Fail(ErrorCode::kNotFound, "no OpenCL device matches \"{}\"; there are: {}", selector, list);
}

}  // namespace hlorun::opencl
