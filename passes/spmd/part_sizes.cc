#include "passes/spmd/part_sizes.h"

#include "passes/dynamic/signature.h"
#include "passes/spmd/local_builder.h"

namespace hlorun::passes::spmd {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

int64_t AddPartSizes(hlo::Module& module, hlo::Computation* entry, const Mesh& mesh,
                     const std::vector<MeshSharding>& outputs) {
  SizeSignature signature = SignatureOf(module);
  if (signature.results.empty()) return 0;
  const std::vector<hlo::Shape> leaves = hlo::FlattenShape(entry->root()->shape());
  std::vector<Instruction*> elements = entry->root()->operands();
  int64_t no_channels = 0;
  LocalBuilder build(entry, mesh, &no_channels);
  for (size_t i = 0; i < signature.results.size(); ++i) {
    const DimensionOfLeaf& d = signature.results[i];
    const AxisList& axes = outputs[static_cast<size_t>(d.leaf)].dims[static_cast<size_t>(d.dimension)];
    if (mesh.SizeOf(axes) == 1) continue;
    const int64_t part = leaves[static_cast<size_t>(d.leaf)].dimension(d.dimension);
    Instruction* whole = elements[i + 1];
    hlo::Builder b = build.Make();
    Instruction* rest = b.Binary(Opcode::kSubtract, whole, build.StartOf(axes, {0, part}));
    Instruction* at_most = b.Binary(Opcode::kMinimum, rest, b.ScalarConstant(ElementType::kS32, part));
    elements[i + 1] = b.Binary(Opcode::kMaximum, at_most, b.ScalarConstant(ElementType::kS32, 0));
    elements.push_back(whole);
    signature.whole_results.push_back(d);
  }
  if (signature.whole_results.empty()) return 0;
  entry->set_root(build.Make().Tuple(std::move(elements)));
  SetSignature(module, signature);
  return static_cast<int64_t>(signature.whole_results.size());
}

}  // namespace hlorun::passes::spmd
