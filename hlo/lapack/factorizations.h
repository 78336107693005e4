// Factorisations and solves: LU, QR, Cholesky, triangular and tridiagonal systems.
#pragma once

#include "hlo/lapack/matrices.h"

namespace hlorun::hlo::lapack {

template <typename T>
void Getrf(const Arrays& arrays);
template <typename T>
void Geqrf(const Arrays& arrays);
template <typename T>
void Geqp3(const Arrays& arrays);
template <typename T>
void Orgqr(const Arrays& arrays);
template <typename T>
void Ormqr(const Arrays& arrays);
template <typename T>
void Potrf(const Arrays& arrays);
template <typename T>
void SolveTriangular(const Arrays& arrays);
template <typename T>
void Gtsv(const Arrays& arrays);

}  // namespace hlorun::hlo::lapack
