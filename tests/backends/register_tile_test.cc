// How high tiles of a product are: by the vector registers that the device has and its platform's compiler leaves.
#include "backends/opencl/kernels/register_tile.h"

#include <gtest/gtest.h>

#include "backends/opencl/kernels/product_plan.h"

namespace hlorun::opencl {
namespace {

TEST(RegisterTile, LeavesRegistersToTheCompiler) {
  DeviceSpec device;
  device.vector_bytes = 64;
  EXPECT_EQ(MostTileRows(device, 1), 14);
  EXPECT_EQ(MostTileRows(device, 2), 14);
  EXPECT_EQ(MostTileRows(device, 4), 6);
  device.spare_registers = 4;
  EXPECT_EQ(MostTileRows(device, 1), 14);
  EXPECT_EQ(MostTileRows(device, 2), 12);
  EXPECT_EQ(MostTileRows(device, 4), 5);
}

TEST(RegisterTile, OfSixteenRegistersNoneIsSpare) {
  DeviceSpec device;
  device.vector_bytes = 32;
  EXPECT_EQ(MostTileRows(device, 2), 6);
  device.spare_registers = 4;
  EXPECT_EQ(MostTileRows(device, 2), 6);
}

TEST(RegisterTile, ProductsAreCutIntoSuchTiles) {
  DeviceSpec device;
  device.vector_bytes = 64;
  EXPECT_EQ(PlanProduct({.m = 512, .n = 384, .k = 384}, device).rows, 14);
  device.spare_registers = 4;
  EXPECT_EQ(PlanProduct({.m = 512, .n = 384, .k = 384}, device).rows, 12);
}

}  // namespace
}  // namespace hlorun::opencl
