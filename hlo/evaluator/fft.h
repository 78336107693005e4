// Discrete Fourier transforms in f64.
#pragma once

#include <complex>
#include <vector>

namespace hlorun::hlo {

// X[k] = sum over j of e^(sign 2 pi i j k / n) x[j]: forward with sign -1, the inverse, not normalised, with +1. Even
// lengths are halved, odd rests are summed by the definition.
std::vector<std::complex<double>> TransformInDouble(const std::vector<std::complex<double>>& x, double sign);

}  // namespace hlorun::hlo
