// Data-parallel training: each rank feeds its part of every batch, gradients are summed over the ranks, and the weights
// stay on the devices from step to step.
//
//   mpirun -n 2 ./train
//
// The module is one device's view of the whole step. Its shardings say that the batch is cut: hlorun adds the
// all-reduces.
#include <hlorun/hlorun.h>
#define OMPI_SKIP_MPICXX 1  // its deprecated C++ bindings
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr int kBatch = 64, kInputs = 16, kHidden = 32, kSteps = 60;

// One step of gradient descent on mean((tanh(x w1) w2 - y)^2): weights and batch in, weights and loss out.
constexpr const char* kStep = R"(
HloModule step, num_partitions=RANKS
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  w1 = f32[16,32] parameter(0), sharding={replicated}
  w2 = f32[32,1] parameter(1), sharding={replicated}
  x = f32[64,16] parameter(2), sharding={devices=[RANKS,1]<=[RANKS]}
  y = f32[64,1] parameter(3), sharding={devices=[RANKS,1]<=[RANKS]}
  a = f32[64,32] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[64,32] tanh(a)
  p = f32[64,1] dot(h, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[64,1] subtract(p, y)
  squares = f32[64,1] multiply(e, e)
  zero = f32[] constant(0)
  total = f32[] reduce(squares, zero), dimensions={0,1}, to_apply=sum
  n = f32[] constant(64)
  loss = f32[] divide(total, n)
  rate = f32[] constant(0.003)
  rates = f32[64,1] broadcast(rate), dimensions={}
  de = f32[64,1] multiply(e, rates)
  dw2 = f32[32,1] dot(h, de), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dh = f32[64,32] dot(de, w2), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  one = f32[] constant(1)
  ones = f32[64,32] broadcast(one), dimensions={}
  h2 = f32[64,32] multiply(h, h)
  slope = f32[64,32] subtract(ones, h2)
  da = f32[64,32] multiply(dh, slope)
  dw1 = f32[16,32] dot(x, da), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  w1n = f32[16,32] subtract(w1, dw1)
  w2n = f32[32,1] subtract(w2, dw2)
  ROOT r = (f32[16,32], f32[32,1], f32[]) tuple(w1n, w2n, loss)
}
)";

std::string StepFor(int ranks) {
  std::string text = kStep;
  for (size_t at = text.find("RANKS"); at != std::string::npos; at = text.find("RANKS"))
    text.replace(at, 5, std::to_string(ranks));
  return text;
}

std::vector<float> Numbers(size_t count, unsigned seed, float scale) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = (static_cast<float>(seed >> 8) / 8388608.0F - 1.0F) * scale;
  }
  return values;
}

// Returns the last loss.
float Train(const hlorun::ClientOptions& options, int ranks, bool print) {
  using hlorun::ElementType;
  const auto client = hlorun::Client::Create(options);
  const auto step = client->Compile(hlorun::Module::FromText(StepFor(ranks)), {});
  const std::vector<std::string> shardings = step->parameter_shardings();
  const auto whole = [&](size_t argument, std::vector<int64_t> dimensions, const std::vector<float>& values) {
    const hlorun::Shape shape(ElementType::kF32, std::move(dimensions));
    return ranks == 1 ? client->FromHost(shape, values.data())
                      : client->FromHost(shape, values.data(), shardings[argument]);
  };
  hlorun::Array w1 = whole(0, {kInputs, kHidden}, Numbers(kInputs * kHidden, 1, 0.3F));
  hlorun::Array w2 = whole(1, {kHidden, 1}, Numbers(kHidden, 2, 0.3F));
  float loss = 0;
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<float> x = Numbers(kBatch * kInputs, 100 + static_cast<unsigned>(i % 4), 1);
    std::vector<float> y(kBatch);
    for (size_t b = 0; b < y.size(); ++b) y[b] = std::sin(x[b * kInputs]) + 0.5F * x[b * kInputs + 1];
    const std::vector<hlorun::Array> results =
        step->Run({w1, w2, whole(2, {kBatch, kInputs}, x), whole(3, {kBatch, 1}, y)});
    w1 = results[0];
    w2 = results[1];
    results[2].ToHost(&loss);
    if (print && i % 10 == 0) std::printf("step %2d: loss %.5f\n", i, static_cast<double>(loss));
  }
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0, rank = 0, ranks = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int code = 0;
  try {
    hlorun::ClientOptions together;
    together.communicator = MPI_COMM_WORLD;
    const float loss = Train(together, ranks, rank == 0);
    const float alone = Train({}, 1, false);
    const bool equal = std::abs(loss - alone) <= 1e-4F * std::abs(alone);
    if (rank == 0)
      std::printf("last loss on %d ranks %.6f, on one %.6f: %s\n", ranks, static_cast<double>(loss),
                  static_cast<double>(alone), equal ? "equal" : "DIFFERENT");
    code = equal ? 0 : 1;
  } catch (const hlorun::Error& e) {
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return code;
}
