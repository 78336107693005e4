// Chains two modules: y = x^2 / 2 in one, z = y^3 / 6 in the other. The first's result feeds the second on the device,
// with no copy and no wait, and the host reads y while z is computed.
#include <hlorun/hlorun.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr const char* kSquare = R"(
HloModule square
ENTRY main {
  x = f32[1048576] parameter(0)
  half = f32[] constant(0.5)
  halves = f32[1048576] broadcast(half), dimensions={}
  square = f32[1048576] multiply(x, x)
  ROOT y = f32[1048576] multiply(square, halves)
}
)";

constexpr const char* kCube = R"(
HloModule cube
ENTRY main {
  y = f32[1048576] parameter(0)
  sixth = f32[] constant(0.16666667)
  sixths = f32[1048576] broadcast(sixth), dimensions={}
  square = f32[1048576] multiply(y, y)
  cube = f32[1048576] multiply(square, y)
  ROOT z = f32[1048576] multiply(cube, sixths)
}
)";

}  // namespace

int main() {
  try {
    const auto client = hlorun::Client::Create({});
    const auto square = client->Compile(hlorun::Module::FromText(kSquare), {});
    const auto cube = client->Compile(hlorun::Module::FromText(kCube), {});

    std::vector<float> x(1 << 20);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / static_cast<float>(x.size());
    const hlorun::Shape shape(hlorun::ElementType::kF32, {1 << 20});
    const std::vector<hlorun::Array> y = square->Run({client->FromHost(shape, x.data())});
    const std::vector<hlorun::Array> z = cube->Run(y);         // enqueued behind y, not waited for
    const std::vector<float> y_host = y[0].ToVector<float>();  // while z is computed
    const std::vector<float> z_host = z[0].ToVector<float>();

    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected_y = 0.5 * x[i] * x[i];
      worst = std::max(worst, std::abs(y_host[i] - expected_y));
      worst = std::max(worst, std::abs(z_host[i] - expected_y * expected_y * expected_y / 6));
    }
    std::printf("%s: y = x^2/2, z = y^3/6, largest error %.3g\n", client->device().name.c_str(), worst);
    return worst < 1e-6 ? 0 : 1;
  } catch (const hlorun::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
