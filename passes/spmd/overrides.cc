#include "passes/spmd/overrides.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/shards.h"
#include "hlo/text/parser.h"
#include "passes/spmd/shardy.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Instruction;
using hlo::Sharding;

constexpr const char* kMeshes = "xla.sdy.meshes";
constexpr const char* kSharding = "xla.sdy.sharding";

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Cuts at `separator` outside of brackets.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}') --depth;
    if (text[i] != separator || depth != 0) continue;
    pieces.push_back(Trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  pieces.push_back(Trimmed(text.substr(begin)));
  return pieces;
}

// The inside of "[...]" or "(...)"; nullopt for anything else.
std::optional<std::string_view> Inside(std::string_view text, char open, char close) {
  if (text.size() < 2 || text.front() != open || text.back() != close) return std::nullopt;
  return Trimmed(text.substr(1, text.size() - 2));
}

ShardyMesh ParseMesh(const std::string& text) {
  ShardyMesh mesh;
  std::set<std::string> names;
  for (const std::string_view axis : Split(text, ',')) {
    const size_t colon = std::min(axis.find(':'), axis.size());
    const std::string name(axis.substr(0, colon));
    int64_t size = 0;
    const char* end = axis.data() + axis.size();
    const bool is_number = colon < axis.size() && std::from_chars(axis.data() + colon + 1, end, size).ptr == end;
    if (name.empty() || !is_number || size < 1)
      Invalid("--mesh={}: expected NAME:SIZE,.., such as data:2,model:2", text);
    if (!names.insert(name).second) Invalid("--mesh={}: it has the axis {} twice", text, name);
    mesh.axes.emplace_back(name, size);
  }
  return mesh;
}

std::string TextOf(const ShardyMesh& mesh) {
  std::string text;
  for (const auto& [name, size] : mesh.axes) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name, size);
  return text;
}

// One flag's list of shardings over the leaves of parameters or results.
class ShardingList {
 public:
  ShardingList(std::string flag, const std::string& text, const std::optional<ShardyMesh>& mesh)
      : flag_(std::move(flag)), mesh_(mesh), entries_(Split(text, ';')) {
    if (text.empty()) entries_.clear();
  }

  // Of leaf `index`, which `what` names; nullopt where nothing is given.
  std::optional<Sharding> Of(size_t index, const hlo::Shape& leaf, const std::string& what) const {
    if (index >= entries_.size() || entries_[index].empty()) return std::nullopt;
    const std::string_view entry = entries_[index];
    if (entry.front() == '{') return Checked(entry, leaf, what);
    const std::optional<std::string_view> inside = Inside(entry, '[', ']');
    if (!inside)
      Fail(entry, what,
           "expected axes of each dimension, such as [data,None], or HloSharding text, such as {devices=[2,1]<=[2]}");
    return FromAxes(entry, *inside, leaf, what);
  }

  void CheckCount(size_t leaves, const char* what) const {
    if (entries_.size() <= leaves) return;
    Invalid("--{}: there are {} shardings, but the module has {} {}", flag_, entries_.size(), leaves, what);
  }

 private:
  [[noreturn]] void Fail(std::string_view entry, const std::string& what, const std::string& why) const {
    Invalid("--{}: {} for {}: {}", flag_, entry, what, why);
  }

  Sharding Checked(std::string_view entry, const hlo::Shape& leaf, const std::string& what) const {
    try {
      Sharding sharding = hlo::ParseSharding(entry);
      if (sharding.kind == Sharding::Kind::kTuple)
        Fail(entry, what, "a tuple's sharding has one entry for each of its arrays");
      if (leaf.IsArray()) hlo::ShardShape(leaf, sharding);
      return sharding;
    } catch (const Error& error) {
      if (error.message().starts_with("--")) throw;
      Fail(entry, what, error.message());
    }
  }

  size_t AxisNamed(std::string_view name, std::string_view entry, const std::string& what) const {
    for (size_t i = 0; i < mesh_->axes.size(); ++i) {
      if (mesh_->axes[i].first == name) return i;
    }
    Fail(entry, what, fmt::format("the mesh {} has no axis {}", TextOf(*mesh_), name));
  }

  // Tiles by the axes of each dimension; copies along the others.
  Sharding FromAxes(std::string_view entry, std::string_view inside, const hlo::Shape& leaf,
                    const std::string& what) const {
    if (!mesh_) Fail(entry, what, "there is no mesh with such axes: give one (--mesh=data:2,model:2)");
    const std::vector<std::string_view> dims = inside.empty() ? std::vector<std::string_view>{} : Split(inside, ',');
    if (static_cast<int64_t>(dims.size()) > leaf.rank()) {
      Fail(entry, what,
           fmt::format("it has {} dimensions, the array {} has {}", dims.size(), leaf.ToString(false), leaf.rank()));
    }
    Sharding sharding;
    std::vector<int64_t> order;
    for (int64_t d = 0; d < leaf.rank(); ++d) {
      int64_t tiles = 1;
      for (const std::string_view name :
           AxesOf(static_cast<size_t>(d) < dims.size() ? dims[static_cast<size_t>(d)] : "")) {
        const size_t axis = AxisNamed(name, entry, what);
        if (std::find(order.begin(), order.end(), static_cast<int64_t>(axis)) != order.end()) {
          Fail(entry, what, fmt::format("it uses the axis {} twice", name));
        }
        order.push_back(static_cast<int64_t>(axis));
        tiles *= mesh_->axes[axis].second;
      }
      sharding.tile_dimensions.push_back(tiles);
    }
    if (std::all_of(sharding.tile_dimensions.begin(), sharding.tile_dimensions.end(), [](int64_t t) { return t == 1; }))
      return Sharding{};
    return Tiled(std::move(sharding), std::move(order));
  }

  static std::vector<std::string_view> AxesOf(std::string_view dimension) {
    if (dimension.empty() || dimension == "None") return {};
    const std::optional<std::string_view> several = Inside(dimension, '(', ')');
    return several ? Split(*several, ',') : std::vector<std::string_view>{dimension};
  }

  // `order`: the axes that cut dimensions, in their order.
  Sharding Tiled(Sharding sharding, std::vector<int64_t> order) const {
    sharding.kind = Sharding::Kind::kTiled;
    int64_t copies = 1;
    for (size_t i = 0; i < mesh_->axes.size(); ++i) {
      sharding.iota_reshape_dims.push_back(mesh_->axes[i].second);
      if (std::find(order.begin(), order.end(), static_cast<int64_t>(i)) != order.end()) continue;
      order.push_back(static_cast<int64_t>(i));
      copies *= mesh_->axes[i].second;
    }
    if (!std::is_sorted(order.begin(), order.end())) sharding.iota_transpose_perm = std::move(order);
    if (copies > 1) {
      sharding.tile_dimensions.push_back(copies);
      sharding.replicate_on_last_tile_dim = true;
    }
    if (!mesh_->device_ids.empty()) {
      const std::vector<int64_t> positions = sharding.DeviceOrder();
      for (const int64_t position : positions)
        sharding.devices.push_back(mesh_->device_ids[static_cast<size_t>(position)]);
    }
    return sharding;
  }

  std::string flag_;
  const std::optional<ShardyMesh>& mesh_;
  std::vector<std::string_view> entries_;
};

// The mesh that axis names mean: the given one, which also takes the place of the module's; else the module's only one.
std::optional<ShardyMesh> ChooseMesh(hlo::Module& module, const std::string& given) {
  const auto said = module.frontend_attributes.find(kMeshes);
  const ShardyMeshes own = said == module.frontend_attributes.end() ? ShardyMeshes{} : ParseShardyMeshes(said->second);
  if (given.empty()) return own.size() == 1 ? std::optional(own.begin()->second) : std::nullopt;
  ShardyMesh mesh = ParseMesh(given);
  if (own.empty()) return mesh;
  std::string axes, text;
  for (const auto& [name, size] : mesh.axes) axes += fmt::format("{}\"{}\"={}", axes.empty() ? "" : ", ", name, size);
  for (const auto& [name, replaced] : own)
    text += fmt::format("{}{} = #sdy.mesh<[{}]>", text.empty() ? "" : ", ", name, axes);
  module.frontend_attributes[kMeshes] = "{" + text + "}";
  return mesh;
}

// Replaces what an instruction says of those leaves that `list` has; returns how many leaves there are.
size_t Override(Instruction& instruction, const ShardingList& list, size_t first, const std::string& what) {
  const std::vector<hlo::Shape> leaves = hlo::FlattenShape(instruction.shape());
  std::vector<std::optional<Sharding>> given;
  for (size_t i = 0; i < leaves.size(); ++i)
    given.push_back(list.Of(first + i, leaves[i], fmt::format("{} {}", what, first + i)));
  const auto count = std::count_if(given.begin(), given.end(), [](const auto& g) { return g.has_value(); });
  if (count == 0) return leaves.size();
  if (static_cast<size_t>(count) < given.size() && instruction.frontend_attributes.contains(kSharding)) {
    Invalid("%{} is a tuple that the module annotates by axes: give a sharding for each of its {} arrays",
            instruction.name(), given.size());
  }
  instruction.frontend_attributes.erase(kSharding);
  if (!instruction.shape().IsTuple()) {
    instruction.sharding = std::move(given[0]);
    return leaves.size();
  }
  Sharding open;
  open.kind = Sharding::Kind::kUnknown;
  Sharding tuple;
  tuple.kind = Sharding::Kind::kTuple;
  const bool has_own = instruction.sharding && instruction.sharding->kind == Sharding::Kind::kTuple &&
                       instruction.sharding->elements.size() == leaves.size();
  for (size_t i = 0; i < leaves.size(); ++i) {
    tuple.elements.push_back(given[i] ? std::move(*given[i]) : has_own ? instruction.sharding->elements[i] : open);
  }
  instruction.sharding = std::move(tuple);
  return leaves.size();
}

}  // namespace

int64_t DevicesOfMesh(const std::string& mesh) {
  if (mesh.empty()) return 0;
  std::vector<int64_t> sizes;
  for (const auto& [name, size] : ParseMesh(mesh).axes) sizes.push_back(size);
  return hlo::CheckedProduct(sizes);
}

void OverrideShardings(hlo::Module& module, const ShardingOverrides& overrides) {
  if (overrides.empty()) return;
  const std::optional<ShardyMesh> mesh = ChooseMesh(module, overrides.mesh);
  const ShardingList in("in_shardings", overrides.in_shardings, mesh),
      out("out_shardings", overrides.out_shardings, mesh);
  size_t leaf = 0;
  for (Instruction* parameter : module.entry()->parameters()) leaf += Override(*parameter, in, leaf, "parameter array");
  in.CheckCount(leaf, "parameter arrays");
  hlo::Computation* entry = module.entry();
  out.CheckCount(static_cast<size_t>(hlo::LeafCount(entry->root()->shape())), "results");
  if (overrides.out_shardings.empty()) return;
  if (entry->root()->Is(hlo::Opcode::kParameter)) {
    // What the parameter says is its own.
    entry->set_root(hlo::Builder(entry, entry->root()).Unary(hlo::Opcode::kCopy, entry->root()));
  }
  Override(*entry->root(), out, 0, "result");
}

}  // namespace hlorun::passes::spmd
