#include "passes/spmd/shardy.h"

#include <charconv>

#include "hlo/error.h"

namespace hlorun::passes::spmd {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool Accept(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void Expect(std::string_view token) {
    if (!Accept(token)) Reject(token);
  }
  bool Is(char c) {
    SkipSpace();
    return at_ < text_.size() && text_[at_] == c;
  }
  int64_t Int() {
    SkipSpace();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) Reject("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  // "name", with or without backslashes before the quotes.
  std::string Quoted() {
    Expect("\"");
    const size_t end = text_.find_first_of("\\\"", at_);
    if (end == std::string_view::npos) Reject("a closing quote");
    std::string name(text_.substr(at_, end - at_));
    at_ = end;
    Expect("\"");
    return name;
  }
  std::string Word() {
    SkipSpace();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) ++at_;
    if (start == at_) Reject("a name");
    return std::string(text_.substr(start, at_ - start));
  }
  [[noreturn]] void Reject(std::string_view expected) const {
    Invalid("sharding attribute {}: expected {} at offset {}", text_, expected, at_);
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\\')) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

// <["data"=4, "model"=2], device_ids=[1, 0]>
ShardyMesh ReadMesh(Scanner& in) {
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

ShardyAxis ReadAxis(Scanner& in) {
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

std::vector<ShardyAxis> ReadAxes(Scanner& in) {
  std::vector<ShardyAxis> axes;
  in.Expect("=");
  in.Expect("{");
  while (!in.Accept("}")) {
    if (!axes.empty()) in.Expect(",");
    axes.push_back(ReadAxis(in));
  }
  return axes;
}

ShardyDimension ReadDimension(Scanner& in) {
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
ShardySharding ReadSharding(Scanner& in) {
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

// The attribute's value may stand in quotes.
Scanner Opened(std::string_view text) {
  Scanner in(text);
  in.Accept("\"");
  return in;
}

}  // namespace

ShardyMeshes ParseShardyMeshes(std::string_view text) {
  ShardyMeshes meshes;
  Scanner in = Opened(text);
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
  Scanner in = Opened(text);
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
  Scanner in = Opened(text);
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
