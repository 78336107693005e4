// registered MODULE CALLS.json: runs the module with the file's custom-calls, then with mylib::square from a C++
// function.
#include <cstdio>
#include <vector>

#include "hlorun/hlorun.h"

namespace {

std::vector<float> Run(const char* module, std::shared_ptr<const hlorun::CustomCallRegistry> calls) {
  const auto client = hlorun::Client::Create({});
  hlorun::CompileOptions options;
  options.custom_calls = std::move(calls);
  const auto executable = client->Compile(hlorun::Module::FromFile(module), options);
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  return executable->Run({client->FromHost(hlorun::Shape(hlorun::ElementType::kF32, {3, 3}), x.data())})[0]
      .ToVector<float>();
}

}  // namespace

int main(int, char** argv) {
  const auto registry = std::make_shared<hlorun::CustomCallRegistry>();
  registry->Add({"mylib::square",
                 hlorun::hlo::Signature({"f32[...]"}, {"f32[...]"}),
                 [](const hlorun::hlo::HostCall& call) {
                   const auto* x = reinterpret_cast<const float*>(call.operands[0].data);
                   auto* y = reinterpret_cast<float*>(call.results[0].data);
                   for (int64_t i = 0; i < call.results[0].shape.ElementCount(); ++i) y[i] = x[i] * x[i];
                 },
                 {}});
  const std::vector<float> from_file = Run(argv[1], hlorun::LoadCustomCalls(argv[2])),
                           from_code = Run(argv[1], registry);
  // (x + 2)^2 - x
  for (size_t i = 0; i < 9; ++i) {
    const float x = static_cast<float>(i) + 1, expected = (x + 2) * (x + 2) - x;
    if (from_file[i] == expected && from_code[i] == expected) continue;
    std::printf("element %zu: %g and %g, not %g\n", i, from_file[i], from_code[i], expected);
    return 1;
  }
  std::puts("mylib::square: equal from a file and from C++");
}
