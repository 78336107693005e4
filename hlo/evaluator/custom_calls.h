// What the evaluator knows of custom-calls. Passes and backends that introduce internal targets ("hlorun.*") register
// what they mean, so that a module can be evaluated after any pass.
#pragma once

#include <string>

#include "hlo/evaluator/evaluation.h"

namespace hlorun::hlo {

// Defines `target`. Thread-safe; meant to be called once a target, before evaluation; a second definition replaces the
// first.
void RegisterCustomCallEvaluator(const std::string& target, OpFunction function);

}  // namespace hlorun::hlo
