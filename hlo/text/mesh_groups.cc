#include "hlo/text/mesh_groups.h"

#include <algorithm>
#include <numeric>

#include "hlo/iota_order.h"
#include "hlo/text/shape_reader.h"

namespace hlorun::hlo {
namespace {

struct Axis {
  std::string_view name;
  int64_t size;
};

// A whole axis, or the part of it that is left of size / (before * extent) positions and right of `before`.
struct AxisPart {
  size_t axis;
  int64_t before = 1;
  int64_t extent;
};

std::string_view ReadAxisName(Lexer& lexer) {
  lexer.Expect('\'', "an axis's name in single quotes");
  const size_t begin = lexer.offset();
  while (!lexer.Is('\'') && !lexer.AtEnd()) lexer.Next();
  const std::string_view name = lexer.text().substr(begin, lexer.offset() - begin);
  lexer.Expect('\'', "the quote behind an axis's name");
  return name;
}

constexpr int64_t kMaxDevices = int64_t{1} << 24;

std::vector<Axis> ReadAxes(Lexer& lexer) {
  std::vector<Axis> axes;
  int64_t devices = 1;
  lexer.Expect('[', "'[' of a mesh");
  while (!lexer.Accept(']')) {
    if (!axes.empty()) lexer.Expect(',', "',' or ']' between a mesh's axes");
    const std::string_view name = ReadAxisName(lexer);
    lexer.Expect('=', "'=' behind an axis's name");
    const size_t offset = lexer.offset();
    const int64_t size = lexer.ExpectInt("an axis's size");
    if (size < 1 || devices > kMaxDevices / size)
      lexer.FailAt(offset, fmt::format("{} is not the size of an axis", size));
    devices *= size;
    axes.push_back({name, size});
  }
  return axes;
}

// The mesh's devices in order: "([4,2]T(1,0))", "(3,1,0,2)".
std::vector<int64_t> ReadDeviceIds(Lexer& lexer, int64_t count) {
  const size_t offset = lexer.offset();
  std::vector<int64_t> devices;
  if (lexer.FollowedBy('[')) {
    lexer.Expect('(', "'(' of device_ids");
    const std::vector<int64_t> dimensions = ReadInts(lexer, "dimensions", '[', ']');
    std::vector<int64_t> permutation;
    if (lexer.AcceptWord("T")) permutation = ReadInts(lexer, "a permutation", '(', ')');
    lexer.Expect(')', "')' of device_ids");
    std::vector<int64_t> sorted = permutation, identity(dimensions.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(identity.begin(), identity.end(), 0);
    if (!permutation.empty() && sorted != identity) lexer.FailAt(offset, "the list behind T is no permutation");
    const bool fits =
        std::all_of(dimensions.begin(), dimensions.end(), [](int64_t d) { return d > 0 && d <= kMaxDevices; });
    if (!fits || dimensions.size() > 16 || CheckedProduct(dimensions) != count) {
      lexer.FailAt(offset, fmt::format("device_ids must hold the mesh's {} devices", count));
    }
    devices = TransposedIota(dimensions, permutation);
  } else {
    devices = ReadInts(lexer, "device numbers in parentheses", '(', ')');
  }
  if (static_cast<int64_t>(devices.size()) != count) {
    lexer.FailAt(offset, fmt::format("device_ids holds {} devices, but the mesh has {}", devices.size(), count));
  }
  return devices;
}

std::vector<AxisPart> ReadGroupedAxes(Lexer& lexer, const std::vector<Axis>& axes) {
  std::vector<AxisPart> parts;
  lexer.Expect('{', "'{' of the axes that form a group");
  while (!lexer.Accept('}')) {
    if (!parts.empty()) lexer.Expect(',', "',' or '}' between axes");
    const size_t offset = lexer.offset();
    const std::string_view name = ReadAxisName(lexer);
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == name; });
    if (axis == axes.end()) lexer.FailAt(offset, fmt::format("the mesh has no axis '{}'", name));
    AxisPart part{static_cast<size_t>(axis - axes.begin()), 1, axis->size};
    if (lexer.Accept(':')) {
      lexer.Expect('(', "'(' of a part of an axis");
      part.before = lexer.ExpectInt("the size before the part");
      lexer.Expect(')', "')' of a part of an axis");
      part.extent = lexer.ExpectInt("the part's size");
      const bool in_range =
          part.before >= 1 && part.extent >= 1 && part.before <= axis->size && part.extent <= axis->size;
      if (!in_range || axis->size % (part.before * part.extent) != 0) {
        lexer.FailAt(offset, fmt::format("axis '{}' of size {} has no such part", name, axis->size));
      }
    }
    parts.push_back(part);
  }
  return parts;
}

// Splits axes where parts begin and end. Returns the dimensions, and for each part which of them it is.
std::vector<int64_t> SplitAxes(const Lexer& lexer, size_t offset, const std::vector<Axis>& axes,
                               const std::vector<AxisPart>& parts, std::vector<int64_t>& dimension_of_part) {
  std::vector<int64_t> dimensions;
  dimension_of_part.assign(parts.size(), -1);
  for (size_t a = 0; a < axes.size(); ++a) {
    std::vector<size_t> mine;
    for (size_t p = 0; p < parts.size(); ++p) {
      if (parts[p].axis == a) mine.push_back(p);
    }
    std::sort(mine.begin(), mine.end(), [&](size_t x, size_t y) { return parts[x].before < parts[y].before; });
    int64_t done = 1;
    for (size_t p : mine) {
      if (parts[p].before < done || parts[p].before % done != 0) lexer.FailAt(offset, "two parts of an axis overlap");
      if (parts[p].before > done) dimensions.push_back(parts[p].before / done);
      dimension_of_part[p] = static_cast<int64_t>(dimensions.size());
      dimensions.push_back(parts[p].extent);
      done = parts[p].before * parts[p].extent;
    }
    if (done < axes[a].size || mine.empty()) dimensions.push_back(axes[a].size / done);
  }
  return dimensions;
}

}  // namespace

ReplicaGroups ReadMeshGroups(Lexer& lexer) {
  const size_t begin = lexer.offset();
  if (!lexer.AcceptWord("mesh")) lexer.FailExpected("mesh");
  const std::vector<Axis> axes = ReadAxes(lexer);
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  std::vector<int64_t> devices(static_cast<size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  if (lexer.Accept(',')) {
    if (!lexer.AcceptWord("device_ids")) lexer.FailExpected("device_ids");
    lexer.Expect('=', "'=' behind device_ids");
    devices = ReadDeviceIds(lexer, count);
  }
  const size_t parts_offset = lexer.offset();
  const std::vector<AxisPart> parts = ReadGroupedAxes(lexer, axes);

  // The grouped dimensions go last, in the order in which they are listed (as XLA:CPU of jaxlib 0.10.2 gathers).
  std::vector<int64_t> dimension_of_part;
  const std::vector<int64_t> dimensions = SplitAxes(lexer, parts_offset, axes, parts, dimension_of_part);
  std::vector<int64_t> permutation;
  for (int64_t d = 0; d < static_cast<int64_t>(dimensions.size()); ++d) {
    if (std::find(dimension_of_part.begin(), dimension_of_part.end(), d) == dimension_of_part.end())
      permutation.push_back(d);
  }
  int64_t size = 1;
  for (size_t part = 0; part < parts.size(); ++part) {
    permutation.push_back(dimension_of_part[part]);
    size *= parts[part].extent;
  }
  ReplicaGroups groups;
  const std::vector<int64_t> positions = TransposedIota(dimensions, permutation);
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i % static_cast<size_t>(size) == 0) groups.groups.emplace_back();
    groups.groups.back().push_back(devices[static_cast<size_t>(positions[i])]);
  }
  std::string_view text = lexer.text().substr(begin, lexer.offset() - begin);
  while (!text.empty() && text.back() != '}') text.remove_suffix(1);
  groups.mesh_form = text;
  return groups;
}

}  // namespace hlorun::hlo
