#include "hlo/proto/sharding_proto.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "hlo/error.h"
#include "hlo/proto/annotation_proto.h"
#include "hlo/proto/shape_proto.h"
#include "hlo/text/mesh_groups.h"
#include "hlo/text/shape_reader.h"
#include "hlo/text/text_cursor.h"

namespace hlorun::hlo {
namespace {

constexpr int64_t kMaxDevices = int64_t{1} << 24;

// Checks that `dims` multiply to a number of devices, and returns it.
int64_t CountDevices(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) {
    if (d < 0 || (d > 0 && count > kMaxDevices / d)) Invalid("[{}] is no number of devices", fmt::join(dims, ","));
    count *= d;
  }
  return count;
}

// A permutation for reshape_dims, empty when it is the identity (as text has it).
template <typename Field>
std::vector<int64_t> PermutationFromProto(const Field& field, size_t rank) {
  std::vector<int64_t> permutation = ToVector(field);
  if (permutation.empty()) return permutation;
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) || sorted.size() != rank) {
      Invalid("{{{}}} is no permutation of {} dimensions", fmt::join(permutation, ","), rank);
    }
  }
  return permutation == sorted ? std::vector<int64_t>{} : permutation;
}

// XLA writes the identity out.
std::vector<int64_t> PermutationToProto(const std::vector<int64_t>& permutation, size_t rank) {
  if (!permutation.empty()) return permutation;
  std::vector<int64_t> identity(rank);
  for (size_t i = 0; i < rank; ++i) identity[i] = static_cast<int64_t>(i);
  return identity;
}

struct KindRow {
  Sharding::Kind kind;
  proto::OpSharding::Type type;
  std::string_view name;  // in last_tile_dims
};
constexpr KindRow kKinds[] = {
    {Sharding::Kind::kReplicated, proto::OpSharding::REPLICATED, "replicated"},
    {Sharding::Kind::kMaximal, proto::OpSharding::MAXIMAL, "maximal"},
    {Sharding::Kind::kTuple, proto::OpSharding::TUPLE, "tuple"},
    {Sharding::Kind::kTiled, proto::OpSharding::OTHER, "other"},
    {Sharding::Kind::kManual, proto::OpSharding::MANUAL, "manual"},
    {Sharding::Kind::kUnknown, proto::OpSharding::UNKNOWN, "unknown"},
    {Sharding::Kind::kUnreduced, proto::OpSharding::UNREDUCED, "unreduced"},
};

const KindRow& RowOf(proto::OpSharding::Type type) {
  for (const KindRow& row : kKinds) {
    if (row.type == type) return row;
  }
  Invalid("a sharding is of the unknown type {}", static_cast<int>(type));
}

void TilesFromProto(const proto::OpSharding& message, Sharding* sharding) {
  sharding->tile_dimensions = ToVector(message.tile_assignment_dimensions());
  const int64_t tiles = CountDevices(sharding->tile_dimensions);
  int64_t devices = message.tile_assignment_devices_size();
  if (message.iota_reshape_dims_size() > 0) {
    sharding->iota_reshape_dims = ToVector(message.iota_reshape_dims());
    sharding->iota_transpose_perm =
        PermutationFromProto(message.iota_transpose_perm(), sharding->iota_reshape_dims.size());
    devices = CountDevices(sharding->iota_reshape_dims);
  } else {
    sharding->devices = ToVector(message.tile_assignment_devices());
  }
  if (tiles != devices) Invalid("a sharding has {} tiles, but names {} devices", tiles, devices);
  sharding->replicate_on_last_tile_dim = message.replicate_on_last_tile_dim();
  for (int type : message.last_tile_dims()) {
    sharding->last_tile_dims.emplace_back(RowOf(static_cast<proto::OpSharding::Type>(type)).name);
  }
}

// --- named meshes: {mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}], replicated={'a'}} ---

// Names stand in quotes in text, and tell axes apart.
void CheckAxisNames(const proto::MeshProto& mesh) {
  std::set<std::string> names;
  for (const auto& axis : mesh.axes()) {
    const auto is_plain = [](char c) { return std::isprint(static_cast<unsigned char>(c)) != 0; };
    if (!std::all_of(axis.name().begin(), axis.name().end(), is_plain) ||
        axis.name().find_first_of("'\"\\()[]{}") != std::string::npos) {
      Invalid("a mesh axis is named \"{}\": names have no quotes, brackets or control characters", axis.name());
    }
    if (!names.insert(axis.name()).second) Invalid("two axes of a mesh are named \"{}\"", axis.name());
  }
}

std::string MeshText(const proto::MeshProto& mesh) {
  CheckAxisNames(mesh);
  if (mesh.axes().empty() && mesh.device_ids_size() == 1) {
    return fmt::format("maximal_mesh[device_id={}]", mesh.device_ids(0));
  }
  std::string axes;
  for (const auto& axis : mesh.axes()) {
    axes += fmt::format("{}'{}'={}", axes.empty() ? "" : ",", axis.name(), axis.size());
  }
  std::string text = fmt::format("mesh[{}]", axes);
  if (mesh.has_iota_transform()) {
    const auto& iota = mesh.iota_transform();
    text += fmt::format(", device_ids=([{}]", fmt::join(iota.reshape_dims(), ","));
    if (iota.transpose_perm_size() > 0) text += fmt::format("T({})", fmt::join(iota.transpose_perm(), ","));
    text += ")";
  } else if (mesh.device_ids_size() > 0) {
    text += fmt::format(", device_ids=({})", fmt::join(mesh.device_ids(), ","));
  }
  return text;
}

std::string AxisText(const proto::MeshProto& mesh, const proto::AxisRefProto& axis) {
  const int64_t index = axis.mesh_axis_index();
  if (index < 0 || index >= mesh.axes_size())
    Invalid("a sharding names axis {} of {} mesh axes", index, mesh.axes_size());
  std::string text = fmt::format("'{}'", mesh.axes(static_cast<int>(index)).name());
  if (axis.has_sub_axis_info()) {
    text += fmt::format(":({}){}", axis.sub_axis_info().pre_size(), axis.sub_axis_info().size());
  }
  return text;
}

template <typename Axes>
std::string AxesText(const proto::MeshProto& mesh, const Axes& axes, std::string_view separator, bool open = false) {
  std::string text;
  for (const proto::AxisRefProto& axis : axes) {
    if (!text.empty()) text += separator;
    text += AxisText(mesh, axis);
  }
  if (open) text += text.empty() ? "?" : fmt::format("{}?", separator);
  return "{" + text + "}";
}

std::string NamedShardingText(const proto::NamedShardingProto& message) {
  const proto::MeshProto& mesh = message.mesh();
  std::string text = "{" + MeshText(mesh);
  const bool maximal = mesh.axes().empty() && mesh.device_ids_size() == 1;
  if (!maximal) {
    std::string dims;
    for (const auto& dim : message.dim_shardings()) {
      dims += (dims.empty() ? "" : ", ") + AxesText(mesh, dim.axes(), ", ", !dim.is_closed());
    }
    text += ", [" + dims + "]";
  }
  const auto add = [&](std::string_view name, const auto& axes) {
    if (!axes.empty()) text += fmt::format(", {}={}", name, AxesText(mesh, axes, ", "));
  };
  add("replicated", message.replicated_axes());
  add("unreduced", message.unreduced_axes());
  add("manual", message.manual_axes());
  const std::string metadata = MetadataListText(message.metadata());
  if (!metadata.empty()) text += ", metadata=" + (message.metadata_size() == 1 ? "{" + metadata + "}" : metadata);
  return text + "}";
}

std::vector<int64_t> Ints(TextCursor& in, std::string_view close) {
  std::vector<int64_t> values;
  while (!in.Accept(close)) {
    values.push_back(in.Int());
    in.Accept(",");
  }
  return values;
}

// The balanced {...} that starts here.
std::string Braces(TextCursor& in) {
  Lexer lexer(in.Rest(), "<sharding>");
  const std::string text(lexer.ExpectBalanced("metadata in braces"));
  in.Skip(text.size());
  return text;
}

void ReadMesh(TextCursor& in, proto::MeshProto* mesh) {
  if (in.Accept("maximal_mesh[")) {
    in.Expect("device_id=");
    mesh->add_device_ids(in.Int());
    in.Expect("]");
    return;
  }
  in.Expect("mesh[");
  while (!in.Accept("]")) {
    proto::MeshProto::MeshAxis* axis = mesh->add_axes();
    axis->set_name(in.Quoted());
    in.Expect("=");
    axis->set_size(in.Int());
    in.Accept(",");
  }
  CheckAxisNames(*mesh);
}

void ReadDeviceIds(TextCursor& in, proto::MeshProto* mesh) {
  in.Expect("(");
  if (!in.Accept("[")) {
    Assign(Ints(in, ")"), mesh->mutable_device_ids());
    return;
  }
  Assign(Ints(in, "]"), mesh->mutable_iota_transform()->mutable_reshape_dims());
  if (in.Accept("T(")) Assign(Ints(in, ")"), mesh->mutable_iota_transform()->mutable_transpose_perm());
  in.Expect(")");
}

// {'a', 'b':(1)2, ?}; returns whether '?' stood there.
template <typename Axes>
bool ReadAxes(TextCursor& in, const proto::MeshProto& mesh, Axes* axes) {
  bool open = false;
  in.Expect("{");
  while (!in.Accept("}")) {
    if (in.Accept("?")) {
      open = true;
    } else {
      const std::string name = in.Quoted();
      proto::AxisRefProto* axis = axes->Add();
      int64_t index = 0;
      while (index < mesh.axes_size() && mesh.axes(static_cast<int>(index)).name() != name) ++index;
      if (index == mesh.axes_size()) in.Reject("an axis of the mesh instead of '" + name + "'");
      axis->set_mesh_axis_index(index);
      if (in.Accept(":(")) {
        axis->mutable_sub_axis_info()->set_pre_size(in.Int());
        in.Expect(")");
        axis->mutable_sub_axis_info()->set_size(in.Int());
      }
    }
    in.Accept(",");
  }
  return open;
}

void NamedShardingToProto(std::string_view text, proto::NamedShardingProto* message) {
  TextCursor in(text, "sharding");
  in.Expect("{");
  proto::MeshProto* mesh = message->mutable_mesh();
  ReadMesh(in, mesh);
  while (in.Accept(",")) {
    if (in.Accept("device_ids=")) {
      ReadDeviceIds(in, mesh);
    } else if (in.Accept("[")) {
      while (!in.Accept("]")) {
        proto::NamedShardingProto::DimensionSharding* dim = message->add_dim_shardings();
        dim->set_is_closed(!ReadAxes(in, *mesh, dim->mutable_axes()));
        in.Accept(",");
      }
    } else if (in.Accept("replicated=")) {
      ReadAxes(in, *mesh, message->mutable_replicated_axes());
    } else if (in.Accept("unreduced=")) {
      ReadAxes(in, *mesh, message->mutable_unreduced_axes());
    } else if (in.Accept("manual=")) {
      ReadAxes(in, *mesh, message->mutable_manual_axes());
    } else if (in.Accept("metadata=")) {
      MetadataListFromText(Braces(in), message->mutable_metadata());
    } else {
      in.Reject("device_ids=, [...], replicated=, unreduced=, manual= or metadata=");
    }
  }
  in.Expect("}");
}

// --- replica groups as mesh axes: mesh['a'=2,'b'=4] {'a'} ---

void MeshGroupsToProto(std::string_view text, proto::MeshAxesReplicaGroupListProto* message) {
  TextCursor in(text, "sharding");
  ReadMesh(in, message->mutable_mesh());
  while (in.Accept(",")) {
    in.Expect("device_ids=");
    ReadDeviceIds(in, message->mutable_mesh());
  }
  ReadAxes(in, message->mesh(), message->mutable_axes());
}

template <typename List>
void GroupsFromList(const List& list, ReplicaGroups* groups) {
  for (const proto::ReplicaGroup& group : list) groups->groups.push_back(ToVector(group.replica_ids()));
}

}  // namespace

Sharding ShardingFromProto(const proto::OpSharding& message) {
  Sharding sharding;
  if (message.has_named_sharding()) {
    sharding.kind = Sharding::Kind::kVerbatim;
    sharding.verbatim = NamedShardingText(message.named_sharding());
    return sharding;
  }
  sharding.kind = RowOf(message.type()).kind;
  if (sharding.kind == Sharding::Kind::kTuple) {
    for (const proto::OpSharding& element : message.tuple_shardings()) {
      sharding.elements.push_back(ShardingFromProto(element));
    }
    return sharding;
  }
  if (sharding.kind == Sharding::Kind::kTiled) TilesFromProto(message, &sharding);
  if (sharding.kind == Sharding::Kind::kMaximal) {
    if (message.tile_assignment_devices_size() != 1) Invalid("a maximal sharding must name one device");
    sharding.maximal_device = message.tile_assignment_devices(0);
  }
  if (message.is_shard_group()) {
    const bool like = message.shard_group_type() == proto::OpSharding::LIKE;
    sharding.shard_group = fmt::format("{} {}", like ? "shard_like" : "shard_as", message.shard_group_id());
  }
  sharding.metadata = MetadataListText(message.metadata());
  return sharding;
}

void ShardingToProto(const Sharding& sharding, proto::OpSharding* message) {
  if (sharding.kind == Sharding::Kind::kVerbatim) {
    NamedShardingToProto(sharding.verbatim, message->mutable_named_sharding());
    return;
  }
  for (const KindRow& row : kKinds) {
    if (row.kind == sharding.kind) message->set_type(row.type);
  }
  for (const Sharding& element : sharding.elements) ShardingToProto(element, message->add_tuple_shardings());
  if (sharding.kind == Sharding::Kind::kMaximal) message->add_tile_assignment_devices(sharding.maximal_device);
  Assign(sharding.tile_dimensions, message->mutable_tile_assignment_dimensions());
  Assign(sharding.devices, message->mutable_tile_assignment_devices());
  if (!sharding.iota_reshape_dims.empty()) {
    Assign(sharding.iota_reshape_dims, message->mutable_iota_reshape_dims());
    Assign(PermutationToProto(sharding.iota_transpose_perm, sharding.iota_reshape_dims.size()),
           message->mutable_iota_transpose_perm());
  }
  message->set_replicate_on_last_tile_dim(sharding.replicate_on_last_tile_dim);
  for (const std::string& name : sharding.last_tile_dims) {
    const auto* row =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindRow& r) { return r.name == name; });
    if (row == std::end(kKinds)) Invalid("last_tile_dims names '{}', which is no kind of sharding", name);
    message->add_last_tile_dims(row->type);
  }
  if (!sharding.shard_group.empty()) {
    Lexer lexer(sharding.shard_group, "<sharding>");
    message->set_is_shard_group(true);
    message->set_shard_group_type(lexer.ExpectWord("shard_as or shard_like") == "shard_like" ? proto::OpSharding::LIKE
                                                                                             : proto::OpSharding::AS);
    message->set_shard_group_id(lexer.ExpectInt("a shard group's number"));
  }
  MetadataListFromText(sharding.metadata, message->mutable_metadata());
}

ReplicaGroups ReplicaGroupsFromProto(const proto::HloInstructionProto& message) {
  ReplicaGroups groups;
  if (message.has_mesh_axes_replica_group_list()) {
    const auto& list = message.mesh_axes_replica_group_list();
    const std::string text = MeshText(list.mesh()) + " " + AxesText(list.mesh(), list.axes(), ",");
    Lexer lexer(text, "<replica groups>");
    groups = ReadMeshGroups(lexer);
  } else if (message.has_iota_collective_device_list()) {
    const auto& iota = message.iota_collective_device_list();
    groups.group_count = iota.num_replica_groups();
    groups.group_size = iota.num_devices_per_group();
    groups.reshape_dims = ToVector(iota.iota_reshape_dims());
    groups.transpose_permutation = PermutationFromProto(iota.iota_transpose_perm(), groups.reshape_dims.size());
    if (groups.group_count < 1 || groups.group_size < 1 ||
        CountDevices({groups.group_count, groups.group_size}) != CountDevices(groups.reshape_dims)) {
      Invalid("replica groups: {} groups of {} are not the devices of [{}]", groups.group_count, groups.group_size,
              fmt::join(groups.reshape_dims, ","));
    }
  } else if (message.has_collective_device_list()) {
    GroupsFromList(message.collective_device_list().replica_groups(), &groups);
  } else {
    GroupsFromList(message.replica_groups(), &groups);
  }
  return groups;
}

void ReplicaGroupsToProto(const ReplicaGroups& groups, proto::HloInstructionProto* message) {
  if (!groups.mesh_form.empty()) {
    MeshGroupsToProto(groups.mesh_form, message->mutable_mesh_axes_replica_group_list());
    return;
  }
  if (groups.group_count > 0) {
    proto::IotaReplicaGroupListProto* iota = message->mutable_iota_collective_device_list();
    iota->set_num_replica_groups(groups.group_count);
    iota->set_num_devices_per_group(groups.group_size);
    Assign(groups.reshape_dims, iota->mutable_iota_reshape_dims());
    Assign(PermutationToProto(groups.transpose_permutation, groups.reshape_dims.size()),
           iota->mutable_iota_transpose_perm());
    return;
  }
  proto::CollectiveDeviceListProto* list = message->mutable_collective_device_list();
  for (const std::vector<int64_t>& group : groups.groups) {
    Assign(group, list->add_replica_groups()->mutable_replica_ids());
  }
}

}  // namespace hlorun::hlo
