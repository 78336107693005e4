#include "driver/api/module_impl.h"
#include "driver/arrays/bound_module.h"

#include "hlo/error.h"
#include "hlo/reader.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "passes/spmd/overrides.h"

namespace hlorun {
namespace {

Module Wrap(std::unique_ptr<hlo::Module> module) {
  return Module(
      std::make_shared<const Module::Impl>(Module::Impl{std::shared_ptr<const hlo::Module>(std::move(module))}));
}

}  // namespace

std::vector<Module> Module::AllFromFile(const std::string& path, bool fill_elided) {
  hlo::ReadOptions options;
  options.fill_elided = fill_elided;
  std::vector<Module> modules;
  for (auto& module : hlo::ReadModules(path, options)) modules.push_back(Wrap(std::move(module)));
  if (modules.empty()) Invalid("{}: there is no HLO module in it", path);
  return modules;
}

Module Module::FromFile(const std::string& path, bool fill_elided) { return AllFromFile(path, fill_elided).front(); }

Module Module::FromText(const std::string& text, const std::string& file_name) {
  hlo::ParseOptions options;
  options.file_name = file_name;
  return Wrap(hlo::ParseModule(text, options));
}

const std::string& Module::name() const { return impl_->module->name(); }

std::vector<Shape> Module::parameter_shapes() const {
  std::vector<Shape> leaves;
  for (const hlo::Instruction* parameter : impl_->module->entry()->parameters()) {
    for (const Shape& leaf : hlo::FlattenShape(parameter->shape())) leaves.push_back(leaf);
  }
  return leaves;
}

std::vector<std::string> Module::parameter_names() const {
  std::vector<std::string> names;
  for (const hlo::Instruction* parameter : impl_->module->entry()->parameters()) {
    for (int64_t i = 0; i < hlo::LeafCount(parameter->shape()); ++i) names.push_back(parameter->name());
  }
  return names;
}

Shape Module::result_shape() const { return impl_->module->entry()->root()->shape(); }
int64_t Module::replica_count() const { return impl_->module->replica_count; }
int64_t Module::num_partitions() const { return impl_->module->num_partitions; }
Module Module::WithBounds(const std::vector<std::string>& bounds) const {
  std::shared_ptr<hlo::Module> module = impl_->module->Clone();
  BoundModule(*module, bounds);
  return Module(std::make_shared<const Impl>(Impl{std::move(module)}));
}
Module Module::WithShardings(const std::string& mesh, const std::string& in_shardings,
                             const std::string& out_shardings) const {
  std::shared_ptr<hlo::Module> module = impl_->module->Clone();
  const int64_t devices = passes::spmd::DevicesOfMesh(mesh);
  if (devices > 0) module->num_partitions = devices;
  passes::spmd::OverrideShardings(*module, {mesh, in_shardings, out_shardings});
  return Module(std::make_shared<const Impl>(Impl{std::move(module)}));
}
std::string Module::ToText() const { return hlo::PrintModule(*impl_->module); }

}  // namespace hlorun
