// Pipelines: lists of passes that can be printed, cut, timed and dumped after each step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace hlorun::passes {

class Pipeline : public Pass {
 public:
  explicit Pipeline(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }

  template <typename P, typename... Args>
  Pipeline& Add(Args&&... args) {
    passes_.push_back(std::make_unique<P>(std::forward<Args>(args)...));
    return *this;
  }
  // Runs the passes that `fill` adds until none of them changes the module (at most `limit` rounds).
  Pipeline& Fixpoint(std::string name, const std::function<void(Pipeline&)>& fill, int limit = 25);

  bool Run(hlo::Module& module, PassContext& context) override;

  // Called after each pass with its name, whether it changed the module, and its seconds.
  using Observer = std::function<void(const hlo::Module&, std::string_view pass, bool changed, double seconds)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  const std::vector<std::unique_ptr<Pass>>& passes() const { return passes_; }

 private:
  bool RunOnce(hlo::Module& module, PassContext& context);
  std::string name_;
  std::vector<std::unique_ptr<Pass>> passes_;
  int limit_ = 1;
  Observer observer_;
};

// The compiler's table of contents: everything between a parsed module and the plan.
Pipeline OptimizationPipeline(const CompileOptions& options, const DeviceSpec& device);

// Every pass by name, for --passes and --list-passes.
struct PassEntry {
  std::string name;
  std::string summary;  // one line
  std::function<std::unique_ptr<Pass>()> make;
};
const std::vector<PassEntry>& AllPasses();

}  // namespace hlorun::passes
