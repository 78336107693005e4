// Every n-th element of an array, in vectors: the coordinates of points, the parts of quaternions and complex numbers,
// which lie in rows of a few elements each. CPUs load whole vectors and take them apart in registers, and put them
// together before they store.
#pragma once

#include <optional>
#include <string>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// Less than a cache line of f32: of longer rows each element is a load of its own anyway.
inline constexpr int64_t kLongestLoadedRow = 15;
// Of stored rows, small matrices; and of one dimension fewer, beyond which vectors along it do as well.
inline constexpr int64_t kLongestStoredRow = 15, kLongestLine = 4;

// The elements first, first + stride, ... of a buffer. Where it is known of which rows they are, `first` is where the
// first of them begins and `phase` the element's place in each; whoever loads other elements of the same rows loads the
// same vectors. Otherwise no element before the first and behind the last may be touched.
struct EveryNth {
  int64_t stride = 1;
  ir::Expr first;
  std::optional<int64_t> phase;
};
std::optional<EveryNth> EveryNthOf(const ir::Buffer& buffer, const ir::Expr& index);

// The elements first, first, ..., first + 1, ... of a buffer, each `times` times: as larger pictures have them.
struct Repeats {
  int64_t times = 1;
  ir::Expr first;
};
std::optional<Repeats> RepeatsOf(const ir::Expr& index);

// How OpenCL C reads and writes such vectors.
struct VectorText {
  std::string space;      // "__global"
  std::string element;    // "float"
  std::string unaligned;  // a vector of `lanes` of them that may lie anywhere
  int lanes;
};
// A function (const T* p) that returns one element a row, the first row beginning at p; (const T* p) that returns each
// element from p on several times, reading no other (`unaligned` is a vector of those that are read); (T* p, T4 x0, T4
// x1, ...) that stores from p on one element of each vector in turn.
std::string LoadOfEveryNth(const std::string& name, const VectorText& vector, const EveryNth& which);
std::string LoadOfRepeats(const std::string& name, const VectorText& vector, int64_t times);
std::string StoreInTurns(const std::string& name, const VectorText& vector, int64_t stride);

}  // namespace hlorun::opencl
