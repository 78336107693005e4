#include "backends/opencl/kernels/tuning_record.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using Json = nlohmann::ordered_json;

// Of the format, and of what its numbers mean to the kernels.
constexpr int64_t kVersion = 5;
constexpr int64_t kLargestExtent = int64_t{1} << 40;

// Visits every field with its JSON name.
template <typename Device, typename Visit>
void ForEachField(Device& device, Visit&& visit) {
  visit("name", device.name);
  visit("platform", device.platform);
  visit("driver_version", device.driver_version);
  visit("isa", device.isa);
  visit("vector_bytes", device.vector_bytes);
  visit("l2_bytes", device.l2_bytes);
  visit("local_memory_bytes", device.local_memory_bytes);
  visit("max_work_group_size", device.max_work_group_size);
}

// Calls visit(name, value, least) for each number of one spatial dimension of a convolution.
template <typename Dimension, typename Visit>
void ForEachNumberOf(Dimension& d, Visit&& visit) {
  visit("in", d.in, 1);
  visit("out", d.out, 1);
  visit("window", d.window, 1);
  visit("stride", d.stride, 1);
  visit("low", d.low, -kLargestExtent);
  visit("dilation", d.dilation, 1);
  visit("base_dilation", d.base_dilation, 1);
}

Json JsonOf(const ConvolutionDimension& dimension) {
  Json json;
  ForEachNumberOf(dimension, [&](const char* name, int64_t value, int64_t) { json[name] = value; });
  return json;
}

Json JsonOf(const ProductProblem& problem) {
  const ProductShape& s = problem.shape;
  const auto name = [](hlo::ElementType type) { return std::string(hlo::ElementTypeName(type)); };
  if (problem.convolution) {
    const ConvolutionShape& c = *problem.convolution;
    Json json = {{"op", "convolution"},
                 {"batch", c.batch},
                 {"channels", c.channels},
                 {"features", c.features},
                 {"spatial_rank", c.spatial_rank},
                 {"lhs", name(c.input_type)},
                 {"rhs", name(c.weight_type)},
                 {"result", name(problem.result_type)},
                 {"rows", JsonOf(c.rows)},
                 {"columns", JsonOf(c.columns)}};
    if (c.groups > 1) json["groups"] = c.groups;
    return json;
  }
  return {{"op", "dot"},
          {"batch", s.batch},
          {"m", s.m},
          {"n", s.n},
          {"k", s.k},
          {"lhs", name(s.lhs_type)},
          {"lhs_transposed", s.lhs_transposed},
          {"rhs", name(s.rhs_type)},
          {"rhs_transposed", s.rhs_transposed},
          {"result", name(problem.result_type)}};
}

Json JsonOf(const ProductSchedule& schedule) {
  Json json = {{"kind", KindOf(schedule)}};
  ProductSchedule copy = schedule;
  ForEachNumber(copy, [&](const char* name, int64_t value, int64_t, int64_t) { json[name] = value; });
  return json;
}

// Reads one object of a file; every complaint says where.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) Complain("expected a JSON object");
  }

  template <typename T>
  T Get(const char* field) {
    known_.push_back(field);
    if (!json_.contains(field)) Complain(fmt::format("\"{}\" is missing", field));
    const Json& value = json_[field];
    bool fits = false;
    if constexpr (std::is_same_v<T, bool>) {
      fits = value.is_boolean();
    } else if constexpr (std::is_same_v<T, double>) {
      fits = value.is_number();
    } else if constexpr (std::is_integral_v<T>) {
      fits = value.is_number_integer();
    } else {
      fits = value.is_string();
    }
    if (!fits) Complain(fmt::format("\"{}\" has the wrong type: {}", field, value.dump()));
    return value.get<T>();
  }
  int64_t GetExtent(const char* field) {
    const auto value = Get<int64_t>(field);
    if (value < 1 || value > kLargestExtent) Complain(fmt::format("\"{}\" is no size: {}", field, value));
    return value;
  }
  hlo::ElementType GetType(const char* field) {
    const auto name = Get<std::string>(field);
    const std::optional<hlo::ElementType> type = hlo::ElementTypeFromName(name);
    if (!type) Complain(fmt::format("\"{}\" is no element type: {}", field, name));
    return *type;
  }
  const Json& GetPart(const char* field) {
    known_.push_back(field);
    if (!json_.contains(field)) Complain(fmt::format("\"{}\" is missing", field));
    return json_[field];
  }
  bool Has(const char* field) const { return json_.contains(field); }
  // After all fields were read.
  void RefuseOthers() const {
    for (const auto& [field, unused] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), field) == known_.end())
        Complain(fmt::format("unknown field \"{}\"", field));
    }
  }
  [[noreturn]] void Complain(const std::string& what) const { Invalid("{}: {}", where_, what); }

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> known_;
};

ConvolutionDimension ReadDimension(const Json& json, const std::string& where) {
  Reader reader(json, where);
  ConvolutionDimension dimension;
  ForEachNumberOf(dimension, [&](const char* name, int64_t& value, int64_t least) {
    value = reader.Get<int64_t>(name);
    if (value < least || value > kLargestExtent) reader.Complain(fmt::format("\"{}\" is no size: {}", name, value));
  });
  reader.RefuseOthers();
  return dimension;
}

ProductProblem ReadConvolution(Reader& reader, const std::string& where) {
  ConvolutionShape shape;
  shape.batch = reader.GetExtent("batch");
  shape.channels = reader.GetExtent("channels");
  shape.features = reader.GetExtent("features");
  if (reader.Has("groups")) shape.groups = reader.GetExtent("groups");
  if (shape.features % shape.groups != 0) reader.Complain("\"groups\" do not divide \"features\"");
  shape.spatial_rank = reader.GetExtent("spatial_rank");
  shape.input_type = reader.GetType("lhs");
  shape.weight_type = reader.GetType("rhs");
  const hlo::ElementType result_type = reader.GetType("result");
  shape.rows = ReadDimension(reader.GetPart("rows"), where + ": rows");
  shape.columns = ReadDimension(reader.GetPart("columns"), where + ": columns");
  reader.RefuseOthers();
  const std::optional<hlo::ElementType> sums = SumType(shape.input_type, shape.weight_type, result_type);
  if (!sums) reader.Complain("no kernel multiplies these types");
  shape.compute_type = *sums;
  return ConvolutionProblem(shape, result_type);
}

ProductProblem ReadProblem(const Json& json, const std::string& where) {
  Reader reader(json, where);
  const auto op = reader.Get<std::string>("op");
  if (op == "convolution") return ReadConvolution(reader, where);
  if (op != "dot") reader.Complain(fmt::format("\"op\" is \"{}\": dot and convolution are tuned", op));
  ProductProblem problem;
  ProductShape& shape = problem.shape;
  shape.batch = reader.GetExtent("batch");
  shape.m = reader.GetExtent("m");
  shape.n = reader.GetExtent("n");
  shape.k = reader.GetExtent("k");
  shape.lhs_type = reader.GetType("lhs");
  shape.lhs_transposed = reader.Get<bool>("lhs_transposed");
  shape.rhs_type = reader.GetType("rhs");
  shape.rhs_transposed = reader.Get<bool>("rhs_transposed");
  problem.result_type = reader.GetType("result");
  reader.RefuseOthers();
  const std::optional<hlo::ElementType> sums = SumType(shape.lhs_type, shape.rhs_type, problem.result_type);
  if (!sums) reader.Complain("no kernel multiplies these types");
  shape.compute_type = *sums;
  return problem;
}

ProductSchedule ReadSchedule(const Json& json, const std::string& where) {
  Reader reader(json, where);
  const auto kind = reader.Get<std::string>("kind");
  std::optional<ProductSchedule> schedule = ScheduleOfKind(kind);
  if (!schedule) reader.Complain(fmt::format("\"kind\" is \"{}\": expected tiled, panels, clblast or fragments", kind));
  ForEachNumber(*schedule,
                [&](const char* name, int64_t& value, int64_t, int64_t) { value = reader.Get<int64_t>(name); });
  reader.RefuseOthers();
  return *schedule;
}

const char* NameOf(DeviceClass device_class) { return device_class == DeviceClass::kGpu ? "gpu" : "cpu"; }

TunedDevice ReadDevice(const Json& json, const std::string& where) {
  Reader reader(json, where);
  TunedDevice device{DeviceSpec{}};
  const auto device_class = reader.Get<std::string>("class");
  if (device_class != "cpu" && device_class != "gpu") reader.Complain("\"class\" must be \"cpu\" or \"gpu\"");
  device.device_class = device_class == "gpu" ? DeviceClass::kGpu : DeviceClass::kCpu;
  ForEachField(
      device, [&](const char* field, auto& value) { value = reader.Get<std::remove_cvref_t<decltype(value)>>(field); });
  reader.RefuseOthers();
  return device;
}

// What `there` has and `here` has not: "class is gpu, here cpu; l2_bytes is 1, here 2".
std::string Differences(const TunedDevice& there, const TunedDevice& here) {
  std::map<std::string, std::string> mine;
  ForEachField(here, [&](const char* field, const auto& value) { mine[field] = fmt::format("{}", value); });
  std::string text;
  const auto add = [&](const std::string& field, const std::string& value, const std::string& own) {
    if (value != own) text += fmt::format("{}{} is {}, here {}", text.empty() ? "" : "; ", field, value, own);
  };
  add("class", NameOf(there.device_class), NameOf(here.device_class));
  ForEachField(there, [&](const char* field, const auto& value) { add(field, fmt::format("{}", value), mine[field]); });
  return text;
}

// A file whose head is checked.
struct File {
  TunedDevice device{DeviceSpec{}};
  Json products;  // a list
};

File ReadFile(const std::string& text, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception&) {
    Invalid("{}: not JSON: it wants a file that --save_tuning wrote", source);
  }
  Reader reader(json, source);
  if (const auto version = reader.Get<int64_t>("version"); version != kVersion) {
    reader.Complain(fmt::format("\"version\" is {}, this hlorun reads {}: measure anew", version, kVersion));
  }
  File file;
  file.device = ReadDevice(reader.GetPart("device"), source + ": device");
  file.products = reader.GetPart("products");
  reader.RefuseOthers();
  if (!file.products.is_array()) reader.Complain("\"products\" must be a list");
  return file;
}

// Of a file for the device that `spec` describes.
TuningRecord RecordOf(const File& file, const DeviceSpec& spec, const std::string& source) {
  TuningRecord record(spec);
  for (const Json& json : file.products) {
    const std::string where = fmt::format("{}: product {}", source, record.size());
    Reader entry(json, where);
    const ProductProblem problem = ReadProblem(entry.GetPart("problem"), where);
    TunedProduct product;
    product.schedule = ReadSchedule(entry.GetPart("schedule"), where);
    const auto measured = entry.Get<std::string>("measured");
    if (measured != "all" && measured != "few") entry.Complain("\"measured\" must be \"all\" or \"few\"");
    product.measured_all = measured == "all";
    product.us = entry.Get<double>("us");
    product.rule_us = entry.Get<double>("rule_us");
    entry.RefuseOthers();
    if (const std::string reason = WhyNot(product.schedule, problem, spec); !reason.empty()) entry.Complain(reason);
    if (record.Find(problem) != nullptr) entry.Complain(fmt::format("{} is there twice", problem.ToString()));
    record.Set(problem, product);
  }
  return record;
}

}  // namespace

TunedDevice::TunedDevice(const DeviceSpec& spec)
    : name(spec.name),
      platform(spec.platform),
      driver_version(spec.driver_version),
      isa(spec.isa),
      device_class(spec.device_class),
      vector_bytes(spec.vector_bytes),
      l2_bytes(spec.l2_bytes),
      local_memory_bytes(spec.local_memory_bytes),
      max_work_group_size(spec.max_work_group_size) {}

std::string TunedDevice::ToString() const {
  std::string text = fmt::format("class={}", NameOf(device_class));
  ForEachField(*this, [&](const char* field, const auto& value) { text += fmt::format(", {}={}", field, value); });
  return text;
}

const TunedProduct* TuningRecord::Find(const ProductProblem& problem) const {
  const auto found = products_.find(problem.ToString());
  return found == products_.end() ? nullptr : &found->second.product;
}

const LibrarySchedule* TuningRecord::LibraryOf(hlo::ElementType type) const {
  for (const auto& [unused, entry] : products_) {
    const auto* library = std::get_if<LibrarySchedule>(&entry.product.schedule);
    if (library != nullptr && entry.problem.shape.lhs_type == type) return library;
  }
  return nullptr;
}

void TuningRecord::Set(const ProductProblem& problem, const TunedProduct& product) {
  products_.insert_or_assign(problem.ToString(), Entry{problem, product});
}

void TuningRecord::Merge(const TuningRecord& other) {
  for (const auto& [text, entry] : other.products_) {
    const auto own = products_.find(text);
    const bool is_better = own != products_.end() && own->second.product.measured_all && !entry.product.measured_all;
    if (!is_better) products_.insert_or_assign(text, entry);
  }
}

std::string TuningRecord::ToJson() const {
  Json device = {{"class", NameOf(device_.device_class)}};
  ForEachField(device_, [&](const char* field, const auto& value) { device[field] = value; });
  std::string text = fmt::format("{{\"version\": {},\n \"device\": {},\n \"products\": [", kVersion, device.dump());
  const char* separator = "\n  ";
  for (const auto& [unused, entry] : products_) {
    const TunedProduct& p = entry.product;
    const Json json = {{"problem", JsonOf(entry.problem)},
                       {"schedule", JsonOf(p.schedule)},
                       {"measured", p.measured_all ? "all" : "few"},
                       {"us", p.us},
                       {"rule_us", p.rule_us}};
    text += separator + json.dump();
    separator = ",\n  ";
  }
  return text + "\n ]}\n";
}

TuningRecord TuningRecord::FromJson(const std::string& text, const DeviceSpec& spec, const std::string& source) {
  const File file = ReadFile(text, source);
  const TunedDevice here(spec);
  if (file.device != here) {
    Invalid("{}: was measured on another device: {}", source, Differences(file.device, here));
  }
  return RecordOf(file, spec, source);
}

std::optional<TuningRecord> TuningRecord::OfDevice(const std::string& text, const DeviceSpec& spec,
                                                   const std::string& source) {
  const File file = ReadFile(text, source);
  if (file.device != TunedDevice(spec)) return std::nullopt;
  return RecordOf(file, spec, source);
}

const ProductSchedule* TunedScheduleOf(const ProductProblem& problem, const CompileOptions& options) {
  if (options.tuned == nullptr || options.tuned->empty()) return nullptr;
  const TunedProduct* found = options.tuned->Find(problem);
  return found == nullptr ? nullptr : &found->schedule;
}

const ProductSchedule* TunedScheduleOf(const hlo::Instruction& dot, const CompileOptions& options) {
  if (options.tuned == nullptr || options.tuned->empty()) return nullptr;
  const std::optional<ProductProblem> problem = ProductProblemOf(dot);
  return problem ? TunedScheduleOf(*problem, options) : nullptr;
}

}  // namespace hlorun::opencl
