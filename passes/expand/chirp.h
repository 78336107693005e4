// A transform of any number of points as a convolution with a chirp, by transforms of a length without large primes
// (L. I. Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970). With
// w[j] = e^(-pi i j^2 / n), since 2 j k = j^2 + k^2 - (k - j)^2,
//   X[k] = w[k] sum over j of (x[j] w[j]) conj(w[k - j]).
#pragma once

#include <array>
#include <cstdint>

#include "hlo/literal.h"

namespace hlorun::passes {

struct Chirp {
  using Parts = std::array<hlo::Literal, 2>;  // real, imaginary

  int64_t length;  // of the convolution: at least 2 n - 1
  Parts factors;   // [n]: w, or its conjugate for the inverse
  Parts spectrum;  // [length]: the forward transform of the chirp's conjugate, wrapped around, over `length`
};

// Of a transform forward, or the inverse without its factor 1/n.
Chirp ChirpOf(hlo::ElementType type, int64_t n, bool inverse);

}  // namespace hlorun::passes
