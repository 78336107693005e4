// Eigenvalues, singular values, Schur forms, and the reductions to Hessenberg and tridiagonal form.
#pragma once

#include "hlo/lapack/matrices.h"

namespace hlorun::hlo::lapack {

template <typename T>
void Gesdd(const Arrays& arrays);
template <typename T>
void Gesvd(const Arrays& arrays);
template <typename T>
void Syevd(const Arrays& arrays);
template <typename T>
void Sytrd(const Arrays& arrays);
template <typename T>
void Geev(const Arrays& arrays);
template <typename T>
void Gees(const Arrays& arrays);
template <typename T>
void Gehrd(const Arrays& arrays);

}  // namespace hlorun::hlo::lapack
