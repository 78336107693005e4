// What hlorun::Module holds; for the driver only.
#pragma once

#include <memory>

#include "hlo/module.h"
#include "hlorun/hlorun.h"

namespace hlorun {

struct Module::Impl {
  std::shared_ptr<const hlo::Module> module;
};

}  // namespace hlorun
