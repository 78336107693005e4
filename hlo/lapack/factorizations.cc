#include "hlo/lapack/factorizations.h"

#include "hlo/error.h"
#include "hlo/lapack/library.h"

namespace hlorun::hlo::lapack {
namespace {

// For routines whose custom-call has no info: a negative one is an argument that LAPACK does not take.
void CheckInfo(int info, const char* routine) {
  if (info < 0) Invalid("LAPACK's {} refuses its argument {}", routine, -info);
}

}  // namespace

template <typename T>
void Getrf(const Arrays& arrays) {
  const int m = arrays.Size("m"), n = arrays.Size("n");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto pivots = Room<int>(std::min(m, n));
    const int info = Api<T>::Get().getrf(LAPACK_COL_MAJOR, m, n, a.data(), std::max(m, 1), pivots.data());
    arrays.SetColumns(0, b, a);
    arrays.SetVector(1, b, pivots);
    arrays.SetScalar(2, b, info);
  }
}

template <typename T>
void Geqrf(const Arrays& arrays) {
  const int m = arrays.Size("m"), n = arrays.Size("n");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto tau = Room<T>(std::min(m, n));
    CheckInfo(Api<T>::Get().geqrf(LAPACK_COL_MAJOR, m, n, a.data(), std::max(m, 1), tau.data()), "geqrf");
    arrays.SetColumns(0, b, a);
    arrays.SetVector(1, b, tau);
  }
}

template <typename T>
void Geqp3(const Arrays& arrays) {
  const int m = arrays.Size("m"), n = arrays.Size("n");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto pivots = arrays.Vector<int>(1, b);
    auto tau = Room<T>(std::min(m, n));
    CheckInfo(Api<T>::Get().geqp3(LAPACK_COL_MAJOR, m, n, a.data(), std::max(m, 1), pivots.data(), tau.data()),
              "geqp3");
    arrays.SetColumns(0, b, a);
    arrays.SetVector(1, b, pivots);
    arrays.SetVector(2, b, tau);
  }
}

template <typename T>
void Orgqr(const Arrays& arrays) {
  const int m = arrays.Size("m"), n = arrays.Size("n"), k = arrays.Size("k");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    const auto tau = arrays.Vector<T>(1, b);
    CheckInfo(Api<T>::Get().orgqr(LAPACK_COL_MAJOR, m, n, k, a.data(), std::max(m, 1), tau.data()), "orgqr");
    arrays.SetColumns(0, b, a);
  }
}

template <typename T>
void Ormqr(const Arrays& arrays) {
  const int m = arrays.Size("m"), n = arrays.Size("n"), k = arrays.Size("k"), rows = arrays.Size("p");
  const bool left = arrays.Integer("left") != 0;
  const char transposed = kIsComplex<T> ? 'C' : 'T';
  const char transpose = arrays.Integer("transpose") != 0 ? transposed : 'N';
  if (rows != (left ? m : n)) Invalid("the reflectors have {} rows, the matrix is {} x {}", rows, m, n);
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    const auto a = arrays.Columns<T>(0, b);
    const auto tau = arrays.Vector<T>(1, b);
    auto c = arrays.Columns<T>(2, b);
    CheckInfo(Api<T>::Get().ormqr(LAPACK_COL_MAJOR, left ? 'L' : 'R', transpose, m, n, k, a.data(), std::max(rows, 1),
                                  tau.data(), c.data(), std::max(m, 1)),
              "ormqr");
    arrays.SetColumns(0, b, c);
  }
}

template <typename T>
void Potrf(const Arrays& arrays) {
  const int n = arrays.Size("n");
  const char uplo = arrays.Option("uplo");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    const int info = Api<T>::Get().potrf(LAPACK_COL_MAJOR, uplo, n, a.data(), std::max(n, 1));
    arrays.SetColumns(0, b, a);
    arrays.SetScalar(1, b, info);
  }
}

template <typename T>
void SolveTriangular(const Arrays& arrays) {
  const int m = arrays.Size("m"), n = arrays.Size("n"), k = arrays.Size("k");
  const char side = arrays.Option("side"), uplo = arrays.Option("uplo"), diagonal = arrays.Option("diag");
  const char transpose = arrays.Option("trans_x");
  if (k != (side == 'L' ? m : n)) Invalid("the triangle is {0} x {0}, the right-hand side {1} x {2}", k, m, n);
  const int leading_a = std::max(k, 1), leading_b = std::max(m, 1);
  const T one = 1;
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    const auto a = arrays.Columns<T>(0, b);
    auto x = arrays.Columns<T>(1, b);
    Api<T>::Get().trsm(&side, &uplo, &transpose, &diagonal, &m, &n, &one, a.data(), &leading_a, x.data(), &leading_b);
    arrays.SetColumns(0, b, x);
  }
}

// The diagonals have n elements each: the first of the lower and the last of the upper one are not used.
template <typename T>
void Gtsv(const Arrays& arrays) {
  const int n = arrays.Size("n"), columns = arrays.Size("k");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto lower = arrays.Vector<T>(0, b), diagonal = arrays.Vector<T>(1, b), upper = arrays.Vector<T>(2, b);
    auto x = arrays.Columns<T>(3, b);
    const int info = n == 0 ? 0
                            : Api<T>::Get().gtsv(LAPACK_COL_MAJOR, n, columns, lower.data() + 1, diagonal.data(),
                                                 upper.data(), x.data(), std::max(n, 1));
    arrays.SetVector(0, b, lower);
    arrays.SetVector(1, b, diagonal);
    arrays.SetVector(2, b, upper);
    arrays.SetColumns(3, b, x);
    arrays.SetScalar(4, b, info);
  }
}

#define HLORUN_INSTANTIATE(T)                      \
  template void Getrf<T>(const Arrays&);           \
  template void Geqrf<T>(const Arrays&);           \
  template void Geqp3<T>(const Arrays&);           \
  template void Orgqr<T>(const Arrays&);           \
  template void Ormqr<T>(const Arrays&);           \
  template void Potrf<T>(const Arrays&);           \
  template void SolveTriangular<T>(const Arrays&); \
  template void Gtsv<T>(const Arrays&);
HLORUN_INSTANTIATE(float)
HLORUN_INSTANTIATE(double)
HLORUN_INSTANTIATE(std::complex<float>)
HLORUN_INSTANTIATE(std::complex<double>)
#undef HLORUN_INSTANTIATE

}  // namespace hlorun::hlo::lapack
