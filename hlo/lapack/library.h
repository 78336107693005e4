// LAPACK's functions by element type, from the shared library that the system has.
#pragma once

#include <complex>
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

namespace hlorun::hlo::lapack {

// Throws kFailedPrecondition when the library or the symbol is missing.
void* FindSymbol(const char* name);

// BLAS's triangular solve by Fortran's convention.
template <typename T>
using Trsm = void (*)(const char* side, const char* uplo, const char* trans, const char* diag, const int* m,
                      const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb);

template <typename T>
struct Api;

// `p` is LAPACK's letter of the type; orthogonal and symmetric routines are called unitary and Hermitian for complex.
#define HLORUN_LAPACK_FUNCTION(member, symbol) \
  decltype(&symbol) member = reinterpret_cast<decltype(&symbol)>(FindSymbol(#symbol))
#define HLORUN_LAPACK_API(T, p, orthogonal, symmetric)                \
  template <>                                                         \
  struct Api<T> {                                                     \
    HLORUN_LAPACK_FUNCTION(getrf, LAPACKE_##p##getrf);                \
    HLORUN_LAPACK_FUNCTION(geqrf, LAPACKE_##p##geqrf);                \
    HLORUN_LAPACK_FUNCTION(geqp3, LAPACKE_##p##geqp3);                \
    HLORUN_LAPACK_FUNCTION(orgqr, LAPACKE_##p##orthogonal##gqr);      \
    HLORUN_LAPACK_FUNCTION(ormqr, LAPACKE_##p##orthogonal##mqr);      \
    HLORUN_LAPACK_FUNCTION(potrf, LAPACKE_##p##potrf);                \
    HLORUN_LAPACK_FUNCTION(gtsv, LAPACKE_##p##gtsv);                  \
    HLORUN_LAPACK_FUNCTION(gesdd, LAPACKE_##p##gesdd);                \
    HLORUN_LAPACK_FUNCTION(gesvd, LAPACKE_##p##gesvd);                \
    HLORUN_LAPACK_FUNCTION(syevd, LAPACKE_##p##symmetric##evd);       \
    HLORUN_LAPACK_FUNCTION(sytrd, LAPACKE_##p##symmetric##trd);       \
    HLORUN_LAPACK_FUNCTION(geev, LAPACKE_##p##geev);                  \
    HLORUN_LAPACK_FUNCTION(gees, LAPACKE_##p##gees);                  \
    HLORUN_LAPACK_FUNCTION(gehrd, LAPACKE_##p##gehrd);                \
    Trsm<T> trsm = reinterpret_cast<Trsm<T>>(FindSymbol(#p "trsm_")); \
    static const Api& Get() {                                         \
      static const Api api;                                           \
      return api;                                                     \
    }                                                                 \
  };

HLORUN_LAPACK_API(float, s, or, sy)
HLORUN_LAPACK_API(double, d, or, sy)
HLORUN_LAPACK_API(std::complex<float>, c, un, he)
HLORUN_LAPACK_API(std::complex<double>, z, un, he)

#undef HLORUN_LAPACK_API
#undef HLORUN_LAPACK_FUNCTION

}  // namespace hlorun::hlo::lapack
