// Text -> module -> text is a fixed point, and so is the proto of it; whatever the verifier says of it, nothing
// crashes.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "hlo/error.h"
#include "hlo/proto/proto.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"

namespace hlorun::hlo {
namespace {

[[noreturn]] void Differ(const char* what, const std::string& a, const std::string& b) {
  std::fprintf(stderr, "%s differs:\n%s\n--- and ---\n%s\n", what, a.c_str(), b.c_str());
  std::abort();
}

bool IsValid(const Module& module) {
  try {
    VerifyModule(module);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// The proto holds in fields what some attributes hold as text (named meshes, statistics); text that does not fit into
// them is an error that says so.
std::optional<std::string> ProtoOf(const Module& module) {
  try {
    return ModuleToProto(module);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What was read must be readable again: errors from here on escape and end the fuzzer.
void CheckFixedPoint(const Module& module) {
  const std::string text = PrintModule(module);
  const auto again = ParseModule(text);
  if (PrintModule(*again) != text) Differ("the text", text, PrintModule(*again));
  if (!IsValid(module)) return;
  if (!IsValid(*again)) Differ("validity", text, "not valid");
  const std::optional<std::string> proto = ProtoOf(module);
  if (!proto) return;
  const auto from_proto = ModuleFromProto(*proto, "proto");
  // What is kept as text may come back with other spaces, but never with another meaning.
  if (ModuleToProto(*from_proto) != *proto) Differ("the proto", text, PrintModule(*from_proto));
}

}  // namespace
}  // namespace hlorun::hlo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlorun;
  std::vector<std::unique_ptr<hlo::Module>> modules;
  try {
    modules = hlo::ParseModules({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
    return 0;
  }
  for (const auto& module : modules) hlo::CheckFixedPoint(*module);
  return 0;
}
