// Mesh: the devices of a job as a grid of axes of prime size.
//
// Every sharding of a module, however it was written (GSPMD tiles, named axes, sub-axes), is a list of axes of one
// mesh: the common refinement of all of them. A device's number is read as digits in a mixed radix, and an axis is one
// digit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hlorun::passes::spmd {

using Axis = int;                    // position in Mesh::sizes(), major to minor
using AxisList = std::vector<Axis>;  // major to minor where it cuts a dimension

// A run of digits of the device's position: (position / stride) % size.
struct Digit {
  int64_t size = 1;
  int64_t stride = 1;
  bool operator==(const Digit&) const = default;
};
using Digits = std::vector<Digit>;  // major to minor

class Mesh {
 public:
  Mesh() = default;
  // `order[position]` is the device at a position; empty is the identity.
  explicit Mesh(std::vector<int64_t> sizes, std::vector<int64_t> order = {});

  int64_t device_count() const { return device_count_; }
  int64_t SizeOf(Axis axis) const { return sizes_[static_cast<size_t>(axis)]; }
  int64_t SizeOf(std::span<const Axis> axes) const;
  AxisList AllAxes() const;
  const std::vector<int64_t>& order() const { return order_; }  // empty: identity
  // The device's coordinate along `axes`, read as one number.
  int64_t Coordinate(int64_t device, std::span<const Axis> axes) const;
  // Devices that differ only along `axes`, in the order of their coordinates along them; groups by first device.
  std::vector<std::vector<int64_t>> Groups(std::span<const Axis> axes) const;
  // The axes that these digits are made of; nullopt when a digit cuts through an axis.
  std::optional<AxisList> AxesOf(const Digits& digits) const;
  bool operator==(const Mesh&) const = default;

 private:
  int64_t StrideOf(Axis axis) const { return strides_[static_cast<size_t>(axis)]; }
  std::vector<int64_t> sizes_, strides_, order_, position_;
  int64_t device_count_ = 1;
};

// Collects the digits that shardings use and finds their common refinement.
class MeshBuilder {
 public:
  explicit MeshBuilder(int64_t device_count) : device_count_(device_count), boundaries_{1, device_count} {}
  // False, without effect, when they do not fit those added before (3x2 devices after 2x3) or the device count.
  bool Add(const Digits& digits);
  Mesh Build(std::vector<int64_t> order = {}) const;

 private:
  int64_t device_count_;
  std::vector<int64_t> boundaries_;  // ascending; each divides the next
};

// Each dimension of a tile grid, row-major over `devices`, as digits of the device's number; nullopt when the order is
// no permutation of digits.
std::optional<std::vector<Digits>> DigitsOfGrid(std::span<const int64_t> grid, std::span<const int64_t> devices);

}  // namespace hlorun::passes::spmd
