#include "driver/arrays/varied_inputs.h"

#include <utility>

namespace hlorun {
namespace {

// Of values made ahead; one run's may be more bytes.
constexpr int64_t kBytesAhead = int64_t{256} << 20;
constexpr size_t kRunsAhead = 64;

int64_t BytesOf(const std::vector<hlo::Literal>& inputs) {
  int64_t bytes = 0;
  for (const hlo::Literal& input : inputs) bytes += input.ByteSize();
  return bytes;
}

}  // namespace

VariedInputs::VariedInputs(int64_t runs, Make make) : runs_(runs), make_(std::move(make)) {}

void VariedInputs::MakeAhead() {
  int64_t bytes = 0;
  do {
    ahead_.push_back(make_(++made_));
    bytes += BytesOf(ahead_.back());
  } while (made_ < runs_ && ahead_.size() < kRunsAhead && bytes + BytesOf(ahead_.back()) <= kBytesAhead);
}

std::vector<hlo::Literal> VariedInputs::Next() {
  if (ahead_.empty()) MakeAhead();
  // Copies, though nobody else wants the originals: those were written long ago, and lie in no cache.
  std::vector<hlo::Literal> originals = std::move(ahead_.front()), inputs = originals;
  ahead_.pop_front();
  for (hlo::Literal& input : inputs) {
    if (input.ByteSize() > 0) input.mutable_data();
  }
  return inputs;
}

}  // namespace hlorun
