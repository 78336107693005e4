// Bytes -> module: an error, or a module that the verifier takes or refuses; a valid one can be written and read again.
#include "hlo/error.h"
#include "hlo/proto/proto.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlorun;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hlo::LooksLikeHloProto(bytes);
  std::unique_ptr<hlo::Module> module;
  try {
    module = hlo::ModuleFromProto(bytes, "proto");
    hlo::VerifyModule(*module);
  } catch (const Error&) {
    return 0;
  }
  try {
    hlo::ArgumentsFromSnapshot(bytes);
  } catch (const Error&) {
  }
  const std::string text = hlo::PrintModule(*module);
  const auto again = hlo::ModuleFromProto(hlo::ModuleToProto(*module), "proto");
  if (hlo::PrintModule(*again) != text) {
    std::fprintf(stderr, "the proto differs:\n%s\n--- and ---\n%s\n", text.c_str(), hlo::PrintModule(*again).c_str());
    std::abort();
  }
  return 0;
}
