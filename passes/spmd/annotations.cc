#include "passes/spmd/annotations.h"

#include <algorithm>
#include <set>

#include "hlo/error.h"
#include "passes/spmd/shardy.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Kind = hlo::Sharding::Kind;

constexpr const char* kMeshes = "xla.sdy.meshes";
constexpr const char* kSharding = "xla.sdy.sharding";

std::string_view TargetOf(const Instruction& instruction) {
  return instruction.Is(Opcode::kCustomCall) ? std::string_view(instruction.As<hlo::attr::CustomCall>().target)
                                             : std::string_view();
}

const std::string* FrontendAttribute(const std::map<std::string, std::string>& attributes, const std::string& name) {
  const auto it = attributes.find(name);
  return it == attributes.end() ? nullptr : &it->second;
}

// A sharding before the mesh is known.
struct Draft {
  std::vector<Digits> dims;
  std::vector<bool> open;
  Digits partial, manual;
  bool all_manual = false;
  int priority = 0;
};
using LeafDrafts = std::vector<std::optional<Draft>>;

struct BoundaryDraft {
  bool enters = false;
  LeafDrafts leaves;
  Digits manual;
  bool all_manual = false;
};

class Reader {
 public:
  Reader(const hlo::Module& module, int64_t partitions)
      : module_(module), partitions_(partitions), builder_(partitions) {
    if (const std::string* text = FrontendAttribute(module.frontend_attributes, kMeshes))
      meshes_ = ParseShardyMeshes(*text);
  }

  ModuleAnnotations Read() {
    FindOrder();
    for (const auto& computation : module_.computations()) {
      for (const auto& instruction : computation->instructions()) ReadInstruction(*instruction);
    }
    result_.mesh = builder_.Build(order_);
    CheckSaidTwice();
    for (const auto& [instruction, drafts] : drafts_) {
      LeafAnnotations& leaves = result_.values[instruction];
      for (const auto& draft : drafts) leaves.push_back(draft ? Finish(*draft) : std::nullopt);
    }
    for (const auto& [instruction, draft] : boundaries_) FinishBoundary(*instruction, draft);
    return std::move(result_);
  }

 private:
  // A device order that no permutation of digits makes becomes the mesh's own order; all lists are read through it.
  void FindOrder() {
    for (const auto& [name, mesh] : meshes_) {
      if (static_cast<int64_t>(mesh.device_ids.size()) == partitions_) SetOrder(mesh.device_ids, {partitions_});
    }
    for (const auto& computation : module_.computations()) {
      for (const auto& instruction : computation->instructions()) {
        if (!instruction->sharding) continue;
        const bool is_tuple = instruction->sharding->kind == Kind::kTuple;
        const std::vector<hlo::Sharding> leaves =
            is_tuple ? instruction->sharding->elements : std::vector<hlo::Sharding>{*instruction->sharding};
        for (const hlo::Sharding& leaf : leaves) {
          if (leaf.kind == Kind::kTiled) SetOrder(leaf.DeviceOrder(), leaf.tile_dimensions);
        }
      }
    }
  }

  void SetOrder(const std::vector<int64_t>& devices, const std::vector<int64_t>& grid) {
    if (!order_.empty() || static_cast<int64_t>(devices.size()) != partitions_) return;
    std::vector<int64_t> sorted = devices;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < partitions_; ++i) {
      if (sorted[static_cast<size_t>(i)] != i) return;
    }
    if (!DigitsOfGrid(grid, devices)) order_ = devices;
  }

  std::vector<int64_t> Positions(std::vector<int64_t> devices) const {
    if (order_.empty()) return devices;
    for (int64_t& device : devices) device = std::find(order_.begin(), order_.end(), device) - order_.begin();
    return devices;
  }

  void ReadInstruction(const Instruction& instruction) {
    try {
      if (TargetOf(instruction).starts_with("SPMD") || IsManualBoundary(instruction)) {
        ReadBoundary(instruction);
      } else {
        LeafDrafts drafts = ReadLeaves(instruction);
        const bool any = std::any_of(drafts.begin(), drafts.end(), [](const auto& d) { return d.has_value(); });
        if (any) drafts_.emplace_back(&instruction, std::move(drafts));
      }
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", Place(instruction), error.message()));
    }
  }

  LeafDrafts ReadLeaves(const Instruction& instruction) {
    const std::vector<hlo::Shape> shapes = hlo::FlattenShape(instruction.shape());
    if (const std::string* text = FrontendAttribute(instruction.frontend_attributes, kSharding)) {
      LeafDrafts drafts = ReadShardy(instruction, ParseShardyShardings(*text), shapes);
      if (instruction.sharding)
        said_twice_.push_back({&instruction, ReadHloSharding(instruction, shapes, false), drafts});
      return drafts;
    }
    if (!instruction.sharding) return LeafDrafts(shapes.size());
    return ReadHloSharding(instruction, shapes, true);
  }

  // warns: where the sharding does not fit the mesh.
  LeafDrafts ReadHloSharding(const Instruction& instruction, const std::vector<hlo::Shape>& shapes, bool warns) {
    LeafDrafts drafts(shapes.size());
    const hlo::Sharding& sharding = *instruction.sharding;
    std::vector<hlo::Sharding> flat;
    Flatten(sharding, flat);
    if (sharding.kind != Kind::kTuple) flat.assign(shapes.size(), sharding);
    if (flat.size() != shapes.size()) {
      Invalid("its sharding {} has {} leaves, its shape {} has {}", sharding.ToString(), flat.size(),
              instruction.shape().ToString(false), shapes.size());
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i].IsArray()) drafts[i] = ReadTiles(instruction, flat[i], shapes[i], warns);
    }
    OpenUnspecified(instruction, drafts);
    return drafts;
  }

  static void Flatten(const hlo::Sharding& sharding, std::vector<hlo::Sharding>& into) {
    if (sharding.kind != Kind::kTuple) return into.push_back(sharding);
    for (const hlo::Sharding& element : sharding.elements) Flatten(element, into);
  }

  // backend_config="unspecified_dims=[0,2]" of a Sharding custom-call.
  static void OpenUnspecified(const Instruction& instruction, LeafDrafts& drafts) {
    if (!instruction.Is(Opcode::kCustomCall) || drafts.empty() || !drafts[0]) return;
    const std::string& opaque = instruction.As<hlo::attr::CustomCall>().opaque;
    const size_t at = opaque.find("unspecified_dims=[");
    if (at == std::string::npos) return;
    for (size_t i = at + 18; i < opaque.size() && opaque[i] != ']'; ++i) {
      const auto dim = static_cast<size_t>(opaque[i] - '0');
      if (dim < drafts[0]->open.size()) drafts[0]->open[dim] = true;
    }
  }

  std::optional<Draft> ReadTiles(const Instruction& instruction, const hlo::Sharding& sharding, const hlo::Shape& shape,
                                 bool warns) {
    Draft draft;
    const auto rank = static_cast<size_t>(shape.rank());
    draft.dims.resize(rank);
    draft.open.assign(rank, false);
    switch (sharding.kind) {
      case Kind::kReplicated:
      case Kind::kMaximal:  // computed everywhere: the device that is asked for has it
        return draft;
      case Kind::kManual: draft.all_manual = true; return draft;
      case Kind::kTiled: break;
      case Kind::kVerbatim:
        if (warns) Warn(instruction, sharding.ToString());
        return std::nullopt;
      default: return std::nullopt;
    }
    if (sharding.tile_dimensions.size() < rank) {
      Invalid("its sharding {} has {} dimensions, its shape {} has {}", sharding.ToString(),
              sharding.tile_dimensions.size(), shape.ToString(false), rank);
    }
    const std::vector<int64_t> devices = sharding.DeviceOrder();
    if (hlo::CheckedProduct(sharding.tile_dimensions) != static_cast<int64_t>(devices.size())) {
      Invalid("its sharding {} has {} tiles for {} devices", sharding.ToString(),
              hlo::CheckedProduct(sharding.tile_dimensions), devices.size());
    }
    if (static_cast<int64_t>(devices.size()) != partitions_) {
      const Instruction* other = OneForAllPartitions();
      Invalid("its sharding {} is for {} devices, {} for {} partitions; --num_partitions overrides",
              sharding.ToString(), devices.size(),
              other == nullptr ? "the module is"
                               : fmt::format("that of {}, {}, is", Place(*other), other->sharding->ToString()),
              partitions_);
    }
    const auto digits = DigitsOfGrid(sharding.tile_dimensions, Positions(devices));
    bool fits = digits.has_value();
    for (size_t d = 0; fits && d < digits->size(); ++d) fits = builder_.Add((*digits)[d]);
    if (!fits) {
      if (warns) Warn(instruction, sharding.ToString());
      return std::nullopt;
    }
    for (size_t d = 0; d < rank; ++d) draft.dims[d] = (*digits)[d];
    for (size_t i = 0; i < sharding.last_tile_dims.size() && rank + i < digits->size(); ++i) {
      Digits* into = sharding.last_tile_dims[i] == "manual"      ? &draft.manual
                     : sharding.last_tile_dims[i] == "unreduced" ? &draft.partial
                                                                 : nullptr;
      if (into != nullptr) into->insert(into->end(), (*digits)[rank + i].begin(), (*digits)[rank + i].end());
    }
    return draft;
  }

  std::string Place(const Instruction& instruction) const {
    const std::string source = module_.SourceOf(instruction);
    return fmt::format("%{}{}{}", instruction.name(), source.empty() ? "" : " at ", source);
  }

  // Another annotation to name beside one that is for other devices.
  const Instruction* OneForAllPartitions() const {
    for (const auto& computation : module_.computations()) {
      for (const auto& instruction : computation->instructions()) {
        const bool is_tiled = instruction->sharding && instruction->sharding->kind == Kind::kTiled;
        if (is_tiled && static_cast<int64_t>(instruction->sharding->DeviceOrder().size()) == partitions_)
          return instruction.get();
      }
    }
    return nullptr;
  }

  // An instruction with a sharding in both notations: closed dimensions must be cut alike.
  void CheckSaidTwice() const {
    for (const auto& [instruction, tiles, shardy] : said_twice_) {
      for (size_t leaf = 0; leaf < tiles.size() && leaf < shardy.size(); ++leaf) {
        if (!tiles[leaf] || !shardy[leaf] || tiles[leaf]->all_manual) continue;
        for (size_t d = 0; d < shardy[leaf]->dims.size(); ++d) {
          if (shardy[leaf]->open[d] || Axes(tiles[leaf]->dims[d]) == Axes(shardy[leaf]->dims[d])) continue;
          Invalid("{}: its annotations contradict each other in dimension {}: sharding={} and {}={}",
                  Place(*instruction), d, instruction->sharding->ToString(), kSharding,
                  instruction->frontend_attributes.at(kSharding));
        }
      }
    }
  }

  void Warn(const Instruction& instruction, const std::string& sharding) {
    result_.warnings.push_back(fmt::format("%{}: the sharding {} does not fit the mesh of the others and is ignored",
                                           instruction.name(), sharding));
  }

  const ShardyMesh& MeshOf(const ShardySharding& sharding) const {
    if (sharding.mesh_name.empty()) return sharding.mesh;
    const auto it = meshes_.find(sharding.mesh_name);
    if (it == meshes_.end())
      Invalid("its sharding names the mesh @{}, which the module does not define", sharding.mesh_name);
    CheckProduct(it->first, it->second);
    return it->second;
  }

  // A mesh without axes is one device.
  void CheckProduct(const std::string& name, const ShardyMesh& mesh) const {
    std::vector<int64_t> sizes;
    std::string product;
    for (const auto& [axis, size] : mesh.axes) {
      sizes.push_back(size);
      product += fmt::format("{}{}:{}", product.empty() ? "" : " x ", axis, size);
    }
    const int64_t devices = hlo::CheckedProduct(sizes);
    if (sizes.empty() || devices == partitions_) return;
    Invalid(
        "its mesh @{}, {}, has {} devices, the module is for {} partitions: use --num_partitions={} on as many devices, "
        "or another mesh",
        name, product, devices, partitions_, devices);
  }

  void AppendAxis(const ShardyMesh& mesh, const ShardyAxis& axis, Digits& digits) {
    int64_t stride = 1;
    for (size_t i = mesh.axes.size(); i-- > 0;) {
      const auto& [name, size] = mesh.axes[i];
      if (name != axis.name) {
        stride *= size;
        continue;
      }
      const int64_t taken = axis.size == 0 ? size : axis.size;
      if (axis.size != 0 && size % (axis.pre_size * axis.size) != 0) {
        Invalid("sub-axis \"{}\":({}){} does not divide the axis of size {}", name, axis.pre_size, axis.size, size);
      }
      const int64_t behind = axis.size == 0 ? 1 : size / (axis.pre_size * axis.size);
      if (taken > 1) digits.push_back({taken, stride * behind});
      if (!builder_.Add(digits)) {
        Invalid("the axes of its sharding do not fit {} partitions together with the other shardings", partitions_);
      }
      return;
    }
    Invalid("its sharding names the axis \"{}\", which its mesh does not have", axis.name);
  }

  LeafDrafts ReadShardy(const Instruction& instruction, const std::vector<ShardySharding>& shardings,
                        const std::vector<hlo::Shape>& shapes) {
    LeafDrafts drafts(shapes.size());
    for (size_t i = 0; i < shapes.size() && i < shardings.size(); ++i) {
      if (!shapes[i].IsArray()) continue;
      drafts[i] = ReadShardyLeaf(instruction, shardings[i], shapes[i].rank());
    }
    return drafts;
  }

  Draft ReadShardyLeaf(const Instruction& instruction, const ShardySharding& sharding, int64_t rank) {
    const ShardyMesh& mesh = MeshOf(sharding);
    Draft draft;
    draft.dims.resize(static_cast<size_t>(rank));
    draft.open.assign(static_cast<size_t>(rank), false);
    if (!sharding.dimensions.empty() && static_cast<int64_t>(sharding.dimensions.size()) != rank) {
      Invalid("its sharding has {} dimensions, its shape {} has {}", sharding.dimensions.size(),
              instruction.shape().ToString(false), rank);
    }
    std::set<std::pair<std::string, int64_t>> seen;
    for (size_t d = 0; d < sharding.dimensions.size(); ++d) {
      for (const ShardyAxis& axis : sharding.dimensions[d].axes) {
        if (!seen.insert({axis.name, axis.pre_size}).second)
          Invalid("its sharding uses the axis \"{}\" twice", axis.name);
        AppendAxis(mesh, axis, draft.dims[d]);
      }
      draft.open[d] = sharding.dimensions[d].open;
      draft.priority = std::max(draft.priority, sharding.dimensions[d].priority);
    }
    for (const ShardyAxis& axis : sharding.unreduced) AppendAxis(mesh, axis, draft.partial);
    return draft;
  }

  void ReadBoundary(const Instruction& instruction) {
    BoundaryDraft draft;
    const std::string_view target = TargetOf(instruction);
    draft.enters = target == "SPMDFullToShardShape" || target == "xla.sdy.GlobalToLocalShape";
    if (target.starts_with("SPMD")) {
      // The whole array's sharding is on the operand (a Sharding custom-call) when entering, on the result when
      // leaving.
      const Instruction& whole = draft.enters ? *instruction.operand(0) : instruction;
      const Instruction& part = draft.enters ? instruction : *instruction.operand(0);
      draft.leaves = ReadLeaves(whole);
      const LeafDrafts inside = ReadLeaves(part);
      draft.all_manual = inside.empty() || !inside[0] || inside[0]->all_manual;
      if (!draft.all_manual) draft.manual = inside[0]->manual;
    } else {
      const std::string* shardings = FrontendAttribute(instruction.frontend_attributes,
                                                       draft.enters ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
      const std::string* axes = FrontendAttribute(instruction.frontend_attributes, "xla.sdy.manual_axes");
      if (shardings == nullptr || axes == nullptr) Invalid("a {} needs its shardings and manual axes", target);
      const std::vector<ShardySharding> parsed = ParseShardyShardings(*shardings);
      draft.leaves = ReadShardy(instruction, parsed, WholeShapes(instruction, draft.enters));
      for (const std::string& name : ParseManualAxes(*axes)) {
        if (!parsed.empty()) AppendAxis(MeshOf(parsed[0]), {name, 1, 0}, draft.manual);
      }
    }
    boundaries_.emplace_back(&instruction, std::move(draft));
  }

  static std::vector<hlo::Shape> WholeShapes(const Instruction& instruction, bool enters) {
    if (!enters) return hlo::FlattenShape(instruction.shape());
    std::vector<hlo::Shape> shapes;
    for (const Instruction* operand : instruction.operands()) {
      for (hlo::Shape& leaf : hlo::FlattenShape(operand->shape())) shapes.push_back(std::move(leaf));
    }
    return shapes;
  }

  std::optional<Annotation> Finish(const Draft& draft) const {
    Annotation annotation;
    annotation.open = draft.open;
    annotation.priority = draft.priority;
    for (const Digits& digits : draft.dims) annotation.sharding.dims.push_back(Axes(digits));
    annotation.sharding.partial = Sorted(Axes(draft.partial));
    annotation.sharding.manual = draft.all_manual ? result_.mesh.AllAxes() : Sorted(Axes(draft.manual));
    return annotation;
  }

  void FinishBoundary(const Instruction& instruction, const BoundaryDraft& draft) {
    ManualBoundary& boundary = result_.boundaries[&instruction];
    boundary.enters = draft.enters;
    boundary.manual = draft.all_manual ? result_.mesh.AllAxes() : Sorted(Axes(draft.manual));
    const std::vector<hlo::Shape> shapes = WholeShapes(instruction, draft.enters);
    for (size_t i = 0; i < shapes.size(); ++i) {
      const bool known = i < draft.leaves.size() && draft.leaves[i].has_value();
      boundary.shardings.push_back(known ? Finish(*draft.leaves[i])->sharding
                                         : MeshSharding::Replicated(shapes[i].rank()));
      boundary.shardings.back().manual.clear();
      boundary.open.push_back(known ? draft.leaves[i]->open
                                    : std::vector<bool>(static_cast<size_t>(shapes[i].rank()), true));
    }
  }

  AxisList Axes(const Digits& digits) const {
    const std::optional<AxisList> axes = result_.mesh.AxesOf(digits);
    HLORUN_CHECK(axes.has_value());
    return *axes;
  }
  static AxisList Sorted(AxisList axes) {
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  const hlo::Module& module_;
  int64_t partitions_;
  MeshBuilder builder_;
  ShardyMeshes meshes_;
  std::vector<int64_t> order_;
  std::vector<std::pair<const Instruction*, LeafDrafts>> drafts_;
  std::vector<std::pair<const Instruction*, BoundaryDraft>> boundaries_;
  struct SaidTwice {
    const Instruction* instruction;
    LeafDrafts tiles, shardy;
  };
  std::vector<SaidTwice> said_twice_;
  ModuleAnnotations result_;
};

}  // namespace

bool IsShardingConstraint(const Instruction& instruction) {
  const std::string_view target = TargetOf(instruction);
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding" || target == "xla.sdy.PropagationBarrier";
}

bool IsPropagationBarrier(const Instruction& instruction) {
  return TargetOf(instruction) == "xla.sdy.PropagationBarrier";
}

bool IsManualBoundary(const Instruction& instruction) {
  const std::string_view target = TargetOf(instruction);
  return target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" ||
         target == "xla.sdy.GlobalToLocalShape" || target == "xla.sdy.LocalToGlobalShape";
}

bool IsAnnotated(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->sharding || instruction->frontend_attributes.contains(kSharding)) return true;
      if (IsShardingConstraint(*instruction) || IsManualBoundary(*instruction)) return true;
    }
  }
  return false;
}

int64_t PartitionCountOf(const hlo::Module& module) {
  if (module.num_partitions > 1) return module.num_partitions;
  int64_t count = 1;
  if (const std::string* text = FrontendAttribute(module.frontend_attributes, kMeshes)) {
    for (const auto& [name, mesh] : ParseShardyMeshes(*text)) {
      int64_t devices = 1;
      for (const auto& [axis, size] : mesh.axes) devices *= size;
      count = std::max(count, devices);
    }
  }
  if (count > 1) return count;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->sharding) continue;
      const hlo::Sharding& sharding = *instruction->sharding;
      const auto leaves = sharding.kind == Kind::kTuple ? sharding.elements : std::vector<hlo::Sharding>{sharding};
      for (const hlo::Sharding& leaf : leaves) {
        if (leaf.kind == Kind::kTiled) count = std::max(count, static_cast<int64_t>(leaf.DeviceOrder().size()));
      }
    }
  }
  return count;
}

ModuleAnnotations ReadAnnotations(const hlo::Module& module, int64_t partitions) {
  return Reader(module, partitions).Read();
}

}  // namespace hlorun::passes::spmd
