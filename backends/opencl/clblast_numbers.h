// The numbers that CLBlast's kernels of products are compiled with (its "parameters"), as its tuner chooses them and
// its interface takes them.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>

namespace hlorun::opencl {

struct ClblastNumber {
  const char* kernel;
  const char* name;
};

// Xgemm multiplies large products from copies of its operands, XgemmDirect small ones in place. Each kernel's numbers
// lie side by side.
inline constexpr ClblastNumber kClblastNumbers[] = {
    {"Xgemm", "GEMMK"},        {"Xgemm", "KREG"},         {"Xgemm", "KWG"},          {"Xgemm", "KWI"},
    {"Xgemm", "MDIMA"},        {"Xgemm", "MDIMC"},        {"Xgemm", "MWG"},          {"Xgemm", "NDIMB"},
    {"Xgemm", "NDIMC"},        {"Xgemm", "NWG"},          {"Xgemm", "SA"},           {"Xgemm", "SB"},
    {"Xgemm", "STRM"},         {"Xgemm", "STRN"},         {"Xgemm", "VWM"},          {"Xgemm", "VWN"},
    {"XgemmDirect", "KWID"},   {"XgemmDirect", "MDIMAD"}, {"XgemmDirect", "MDIMCD"}, {"XgemmDirect", "NDIMBD"},
    {"XgemmDirect", "NDIMCD"}, {"XgemmDirect", "PADA"},   {"XgemmDirect", "PADB"},   {"XgemmDirect", "VWMD"},
    {"XgemmDirect", "VWND"},   {"XgemmDirect", "WGD"},
};

// In that order. All of a kernel's are 0: those that CLBlast comes with for the device.
using ClblastNumbers = std::array<int64_t, std::size(kClblastNumbers)>;

}  // namespace hlorun::opencl
