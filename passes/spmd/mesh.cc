#include "passes/spmd/mesh.h"

#include <algorithm>
#include <numeric>

#include "hlo/error.h"

namespace hlorun::passes::spmd {
namespace {

std::vector<int64_t> PrimeFactors(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

// The digits of one dimension of a grid, from the numbers along it while all other coordinates are zero.
std::optional<Digits> DigitsOfLine(const std::vector<int64_t>& line) {
  Digits digits;  // minor to major
  const auto size = static_cast<int64_t>(line.size());
  for (int64_t block = 1; block < size;) {
    const int64_t stride = line[static_cast<size_t>(block)];
    if (stride <= 0) return std::nullopt;
    int64_t run = 2;
    while (run * block < size && line[static_cast<size_t>(run * block)] == run * stride) ++run;
    while (run > 1 && size % (run * block) != 0) --run;
    if (run < 2) return std::nullopt;
    digits.push_back({run, stride});
    block *= run;
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

Mesh::Mesh(std::vector<int64_t> sizes, std::vector<int64_t> order)
    : sizes_(std::move(sizes)), strides_(sizes_.size()), order_(std::move(order)) {
  for (size_t i = sizes_.size(); i-- > 0;) {
    strides_[i] = device_count_;
    device_count_ *= sizes_[i];
  }
  if (order_.empty()) return;
  HLORUN_CHECK(static_cast<int64_t>(order_.size()) == device_count_);
  position_.resize(order_.size());
  for (size_t p = 0; p < order_.size(); ++p) position_[static_cast<size_t>(order_[p])] = static_cast<int64_t>(p);
}

int64_t Mesh::SizeOf(std::span<const Axis> axes) const {
  int64_t size = 1;
  for (const Axis axis : axes) size *= SizeOf(axis);
  return size;
}

AxisList Mesh::AllAxes() const {
  AxisList all(sizes_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int64_t Mesh::Coordinate(int64_t device, std::span<const Axis> axes) const {
  const int64_t position = position_.empty() ? device : position_[static_cast<size_t>(device)];
  int64_t coordinate = 0;
  for (const Axis axis : axes) coordinate = coordinate * SizeOf(axis) + position / StrideOf(axis) % SizeOf(axis);
  return coordinate;
}

std::vector<std::vector<int64_t>> Mesh::Groups(std::span<const Axis> axes) const {
  AxisList rest;
  for (const Axis axis : AllAxes()) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) rest.push_back(axis);
  }
  std::vector<std::vector<int64_t>> groups(static_cast<size_t>(SizeOf(rest)),
                                           std::vector<int64_t>(static_cast<size_t>(SizeOf(axes))));
  for (int64_t device = 0; device < device_count_; ++device) {
    groups[static_cast<size_t>(Coordinate(device, rest))][static_cast<size_t>(Coordinate(device, axes))] = device;
  }
  return groups;
}

std::optional<AxisList> Mesh::AxesOf(const Digits& digits) const {
  AxisList axes;
  for (const Digit& digit : digits) {
    int64_t covered = 1;
    for (const Axis axis : AllAxes()) {
      const bool inside = StrideOf(axis) >= digit.stride && StrideOf(axis) * SizeOf(axis) <= digit.stride * digit.size;
      if (!inside) continue;
      axes.push_back(axis);
      covered *= SizeOf(axis);
    }
    if (covered != digit.size) return std::nullopt;
  }
  return axes;
}

bool MeshBuilder::Add(const Digits& digits) {
  std::vector<int64_t> boundaries = boundaries_;
  for (const Digit& digit : digits) {
    boundaries.push_back(digit.stride);
    boundaries.push_back(digit.stride * digit.size);
  }
  std::sort(boundaries.begin(), boundaries.end());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  if (boundaries.front() < 1 || boundaries.back() != device_count_) return false;
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    if (boundaries[i + 1] % boundaries[i] != 0) return false;
  }
  boundaries_ = std::move(boundaries);
  return true;
}

Mesh MeshBuilder::Build(std::vector<int64_t> order) const {
  std::vector<int64_t> sizes;
  for (size_t i = boundaries_.size(); i-- > 1;) {
    for (const int64_t prime : PrimeFactors(boundaries_[i] / boundaries_[i - 1])) sizes.push_back(prime);
  }
  return Mesh(std::move(sizes), std::move(order));
}

std::optional<std::vector<Digits>> DigitsOfGrid(std::span<const int64_t> grid, std::span<const int64_t> devices) {
  std::vector<Digits> digits(grid.size());
  if (devices.empty() || devices[0] != 0) return std::nullopt;
  auto stride = static_cast<int64_t>(devices.size());
  for (size_t d = 0; d < grid.size(); ++d) {
    stride /= grid[d];
    std::vector<int64_t> line;
    for (int64_t i = 0; i < grid[d]; ++i) line.push_back(devices[static_cast<size_t>(i * stride)]);
    const std::optional<Digits> found = DigitsOfLine(line);
    if (!found) return std::nullopt;
    digits[d] = *found;
  }
  // The digits must give every device, not only those along the edges.
  for (size_t linear = 0; linear < devices.size(); ++linear) {
    auto rest = static_cast<int64_t>(linear);
    int64_t device = 0;
    for (size_t d = grid.size(); d-- > 0;) {
      for (size_t i = digits[d].size(); i-- > 0;) {
        device += rest % digits[d][i].size * digits[d][i].stride;
        rest /= digits[d][i].size;
      }
    }
    if (device != devices[linear]) return std::nullopt;
  }
  return digits;
}

}  // namespace hlorun::passes::spmd
