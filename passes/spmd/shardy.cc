#include "passes/spmd/shardy.h"

#include "hlo/error.h"
#include "hlo/text/text_cursor.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::TextCursor;

// <["data"=4, "model"=2], device_ids=[1, 0]>
ShardyMesh ReadMesh(TextCursor& in) {
  ShardyMesh mesh;
  in.Expect("<[");
  while (!in.Accept("]")) {
    if (!mesh.axes.empty()) in.Expect(",");
    std::string name = in.Quoted();
    in.Expect("=");
    const int64_t size = in.Int();
    if (size < 1) in.Reject("an axis size of at least 1");
    mesh.axes.emplace_back(std::move(name), size);
  }
  if (in.Accept(",")) {
    in.Expect("device_ids");
    in.Expect("=");
    in.Expect("[");
    while (!in.Accept("]")) {
      if (!mesh.device_ids.empty()) in.Expect(",");
      mesh.device_ids.push_back(in.Int());
    }
  }
  in.Expect(">");
  return mesh;
}

ShardyAxis ReadAxis(TextCursor& in) {
  ShardyAxis axis;
  axis.name = in.Quoted();
  if (in.Accept(":")) {
    in.Expect("(");
    axis.pre_size = in.Int();
    in.Expect(")");
    axis.size = in.Int();
  }
  return axis;
}

std::vector<ShardyAxis> ReadAxes(TextCursor& in) {
  std::vector<ShardyAxis> axes;
  in.Expect("=");
  in.Expect("{");
  while (!in.Accept("}")) {
    if (!axes.empty()) in.Expect(",");
    axes.push_back(ReadAxis(in));
  }
  return axes;
}

ShardyDimension ReadDimension(TextCursor& in) {
  ShardyDimension dimension;
  in.Expect("{");
  for (bool first = true; !in.Accept("}"); first = false) {
    if (!first) in.Expect(",");
    if (in.Accept("?")) {
      dimension.open = true;
    } else {
      dimension.axes.push_back(ReadAxis(in));
    }
  }
  if (in.Accept("p")) dimension.priority = static_cast<int>(in.Int());
  return dimension;
}

// <@mesh, [{...}, ...], replicated={...}, unreduced={...}>
ShardySharding ReadSharding(TextCursor& in) {
  ShardySharding sharding;
  in.Expect("<");
  if (in.Accept("@")) {
    sharding.mesh_name = in.Is('"') ? in.Quoted() : in.Word();
  } else {
    in.Accept("#sdy.");
    in.Expect("mesh");
    sharding.mesh = ReadMesh(in);
  }
  in.Expect(",");
  in.Expect("[");
  for (bool first = true; !in.Accept("]"); first = false) {
    if (!first) in.Expect(",");
    sharding.dimensions.push_back(ReadDimension(in));
  }
  while (in.Accept(",")) {
    if (in.Accept("replicated")) {
      sharding.replicated = ReadAxes(in);
    } else {
      in.Expect("unreduced");
      sharding.unreduced = ReadAxes(in);
    }
  }
  in.Expect(">");
  return sharding;
}

// The attribute's value may stand in quotes, and those in it behind backslashes.
TextCursor Opened(std::string_view text) {
  TextCursor in(text, "sharding attribute", " \\");
  in.Accept("\"");
  return in;
}

}  // namespace

ShardyMeshes ParseShardyMeshes(std::string_view text) {
  ShardyMeshes meshes;
  TextCursor in = Opened(text);
  in.Expect("{");
  while (!in.Accept("}")) {
    if (!meshes.empty()) in.Expect(",");
    std::string name = in.Is('"') ? in.Quoted() : in.Word();
    in.Expect("=");
    in.Expect("#sdy.mesh");
    meshes[name] = ReadMesh(in);
  }
  return meshes;
}

std::vector<ShardySharding> ParseShardyShardings(std::string_view text) {
  TextCursor in = Opened(text);
  std::vector<ShardySharding> shardings;
  in.Expect("#sdy.sharding");
  if (!in.Accept("_per_value")) return {ReadSharding(in)};
  in.Expect("<[");
  while (!in.Accept("]")) {
    if (!shardings.empty()) in.Expect(",");
    shardings.push_back(ReadSharding(in));
  }
  in.Expect(">");
  return shardings;
}

std::vector<std::string> ParseManualAxes(std::string_view text) {
  TextCursor in = Opened(text);
  std::vector<std::string> names;
  in.Expect("#sdy<manual_axes");
  in.Expect("{");
  while (!in.Accept("}")) {
    if (!names.empty()) in.Expect(",");
    names.push_back(in.Quoted());
  }
  return names;
}

}  // namespace hlorun::passes::spmd
