#include "driver/api/bucketed_executable.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "driver/api/module_impl.h"
#include "driver/arrays/bound_module.h"
#include "driver/arrays/bounds.h"
#include "hlo/error.h"
#include "passes/dynamic/bound_parameters.h"

namespace hlorun {
namespace {

// A dimension that buckets follow. Those of one name have the same size.
struct VaryingDimension {
  std::string name;
  passes::DimensionOfLeaf at;
  int64_t most = kNoBound;
};

// Those that the exporter named, and those that `bounds` names.
std::vector<VaryingDimension> VaryingDimensions(const hlo::Module& module, const std::vector<std::string>& bounds) {
  std::vector<VaryingDimension> all;
  for (const DimensionName& name : DimensionNames(module)) all.push_back({name.name, {name.leaf, name.dimension}});
  for (const passes::NewSize& bound : BoundsOf(module, bounds)) {
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const VaryingDimension& v) { return v.at == bound.dimension; });
    if (known != all.end()) {
      known->most = bound.size;
    } else {
      all.push_back(
          {fmt::format("{}:{}", bound.dimension.leaf, bound.dimension.dimension), bound.dimension, bound.size});
    }
  }
  return all;
}

// Bounds become kNoBound: what is said of all buckets.
std::vector<Shape> WithoutBounds(const Shape& shape) {
  std::vector<Shape> leaves = hlo::FlattenShape(shape);
  for (Shape& leaf : leaves) {
    for (int64_t d = 0; leaf.IsArray() && d < leaf.rank(); ++d) {
      if (leaf.is_dynamic_dimension(d)) leaf.mutable_dimensions()[static_cast<size_t>(d)] = kNoBound;
    }
  }
  return leaves;
}

class BucketedExecutableImpl : public BucketedExecutable {
 public:
  BucketedExecutableImpl(const Module& module, const BucketOptions& options,
                         std::function<std::shared_ptr<Executable>(const Module&)> compile)
      : module_(module),
        options_(options),
        compile_(std::move(compile)),
        varying_(VaryingDimensions(*module.impl()->module, options.bounds)) {
    if (varying_.empty()) {
      Invalid(
          "--bucket: {} names no sizes that vary: export it with symbolic ones (scripts/export_jax.py --symbolic), or "
          "say which dimension does, and how large it gets (--bound=PARAM:DIM=N)",
          module.name());
    }
    if (options.capacity < 1 || options.multiple < 0)
      Invalid("buckets: the capacity is at least 1, the multiple not negative");
    const std::unique_ptr<hlo::Module> open = module.impl()->module->Clone();
    std::vector<passes::DimensionOfLeaf> dimensions;
    for (const VaryingDimension& varying : varying_) dimensions.push_back(varying.at);
    passes::PrepareForSizes(*open);
    passes::CheckParametersMeet(*open, dimensions);
    passes::BoundParameters(*open, dimensions);
    for (const hlo::Instruction* parameter : open->entry()->parameters()) {
      for (Shape& leaf : WithoutBounds(parameter->shape())) {
        parameter_shapes_.push_back(std::move(leaf));
        parameter_names_.push_back(parameter->name());
        op_names_.push_back(parameter->metadata.op_name);
      }
    }
    for (const VaryingDimension& varying : varying_) {
      parameter_shapes_[static_cast<size_t>(varying.at.leaf)]
          .mutable_dimensions()[static_cast<size_t>(varying.at.dimension)] = varying.most;
    }
    result_shapes_ = WithoutBounds(open->entry()->root()->shape());
  }

  std::vector<Array> Run(const std::vector<Array>& arguments, const RunFlags& flags) override {
    return ExecutableFor(BucketOf(arguments))->Run(arguments, flags);
  }
  std::vector<std::vector<Array>> RunSharded(const std::vector<std::vector<Array>>& arguments,
                                             const RunFlags& flags) override {
    if (arguments.size() != 1)
      Invalid("buckets of sizes run on one device, arguments are given for {}", arguments.size());
    return {Run(arguments[0], flags)};
  }

  BucketUse bucket_use() const override {
    const std::lock_guard lock(mutex_);
    return use_;
  }
  std::vector<Shape> parameter_shapes() const override { return parameter_shapes_; }
  std::vector<Shape> whole_parameter_shapes() const override { return parameter_shapes_; }
  std::vector<std::string> parameter_names() const override { return parameter_names_; }
  std::vector<std::string> parameter_op_names() const override { return op_names_; }
  std::vector<std::string> parameter_shardings() const override {
    return std::vector<std::string>(parameter_shapes_.size());
  }
  std::vector<Shape> result_shapes() const override { return result_shapes_; }
  std::vector<std::string> result_shardings() const override { return std::vector<std::string>(result_shapes_.size()); }
  MemoryUse memory() const override {
    return FromLast(MemoryUse(), [](const Executable& e) { return e.memory(); });
  }
  CompileReport report() const override {
    return FromLast(CompileReport(), [](const Executable& e) { return e.report(); });
  }
  std::vector<Remark> remarks() const override {
    return FromLast(std::vector<Remark>(), [](const Executable& e) { return e.remarks(); });
  }
  double flops() const override {
    return FromLast(0.0, [](const Executable& e) { return e.flops(); });
  }
  int64_t device_count() const override { return 1; }
  void Save(const std::string& path) override {
    Fail(ErrorCode::kUnimplemented,
         "{}: executables of buckets are compiled as sizes come; save a plan of a bounded module", path);
  }
  std::string module_text() const override { return module_.ToText(); }
  std::string tuning() const override {
    return FromLast(std::string(), [](const Executable& e) { return e.tuning(); });
  }
  int64_t resource_creations() const override {
    return FromLast(int64_t{0}, [](const Executable& e) { return e.resource_creations(); });
  }

 private:
  using Bucket = std::vector<int64_t>;  // in the order of varying_; equal names agree
  struct Held {
    Bucket bucket;
    std::shared_ptr<Executable> executable;
  };

  int64_t RoundUp(int64_t size) const {
    if (options_.multiple > 0)
      return std::max<int64_t>((size + options_.multiple - 1) / options_.multiple, 1) * options_.multiple;
    int64_t power = 1;
    while (power < size) power *= 2;
    return power;
  }

  Bucket BucketOf(const std::vector<Array>& arguments) const {
    if (arguments.size() != parameter_shapes_.size()) {
      Invalid("the module has {} parameter arrays, {} are given", parameter_shapes_.size(), arguments.size());
    }
    Bucket bucket;
    for (const VaryingDimension& varying : varying_) {
      const auto& [leaf, dimension] = varying.at;
      const auto number = static_cast<size_t>(leaf);
      const Shape& shape = arguments[number].shape();
      if (shape.rank() <= dimension)
        Invalid("argument {} is {}: it has no dimension {}", leaf, shape.ToString(false), dimension);
      CheckBounds(shape, parameter_shapes_[number], fmt::format("argument {} (%{})", leaf, parameter_names_[number]));
      bucket.push_back(std::min(RoundUp(shape.dimension(dimension)), varying.most));
    }
    for (size_t i = 0; i < varying_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (varying_[i].name == varying_[j].name) bucket[i] = bucket[j] = std::max(bucket[i], bucket[j]);
      }
    }
    return bucket;
  }

  std::shared_ptr<Executable> ExecutableFor(const Bucket& bucket) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held.bucket == bucket; });
    if (found != held_.end()) {
      ++use_.reused;
      held_.splice(held_.begin(), held_, found);
      return held_.front().executable;
    }
    std::shared_ptr<hlo::Module> sized = module_.impl()->module->Clone();
    std::vector<passes::NewSize> sizes;
    for (size_t i = 0; i < varying_.size(); ++i) sizes.push_back({varying_[i].at, bucket[i]});
    BoundDimensions(*sized, sizes);
    held_.push_front({bucket, compile_(Module(std::make_shared<const Module::Impl>(Module::Impl{std::move(sized)})))});
    ++use_.compiled;
    if (held_.size() > options_.capacity) {
      held_.pop_back();  // runs that are under way hold it themselves
      ++use_.evicted;
    }
    return held_.front().executable;
  }

  template <typename T, typename Ask>
  T FromLast(T none, Ask ask) const {
    const std::lock_guard lock(mutex_);
    return held_.empty() ? none : ask(*held_.front().executable);
  }

  const Module module_;
  const BucketOptions options_;
  const std::function<std::shared_ptr<Executable>(const Module&)> compile_;
  const std::vector<VaryingDimension> varying_;
  std::vector<Shape> parameter_shapes_, result_shapes_;
  std::vector<std::string> parameter_names_, op_names_;
  mutable std::mutex mutex_;
  std::list<Held> held_;  // most recently used first
  BucketUse use_;
};

}  // namespace

std::shared_ptr<BucketedExecutable> MakeBucketedExecutable(
    const Module& module, const BucketOptions& options,
    std::function<std::shared_ptr<Executable>(const Module&)> compile) {
  return std::make_shared<BucketedExecutableImpl>(module, options, std::move(compile));
}

}  // namespace hlorun
