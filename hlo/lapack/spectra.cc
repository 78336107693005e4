#include "hlo/lapack/spectra.h"

#include "hlo/error.h"
#include "hlo/lapack/library.h"

namespace hlorun::hlo::lapack {
namespace {

// a -> (a, s, u, vt, info) in LAPACK's mode: 'A' all of u and vt, 'S' the first min(m, n), 'N' none.
template <typename T, typename Compute>
void SingularValues(const Arrays& arrays, const Compute& compute) {
  const int m = arrays.Size("m"), n = arrays.Size("n"), k = std::min(m, n);
  const int u_columns = arrays.Size("p"), vt_rows = arrays.Size("q");
  const char mode = arrays.Option("mode");
  if (mode != 'A' && mode != 'S' && mode != 'N') Invalid("its mode is '{}'; 'A', 'S' and 'N' are known", mode);
  if (mode != 'N' && (u_columns != (mode == 'A' ? m : k) || vt_rows != (mode == 'A' ? n : k))) {
    Invalid("in mode '{}' u has {} columns and vt {} rows, not {} and {}", mode, mode == 'A' ? m : k,
            mode == 'A' ? n : k, u_columns, vt_rows);
  }
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto s = Room<RealOf<T>>(k);
    auto u = Room<T>(int64_t{m} * u_columns), vt = Room<T>(int64_t{vt_rows} * n);
    int info = IsFinite(a) ? 0 : kNotFinite;
    if (info == 0) info = compute(mode, m, n, a, s, u, vt, vt_rows);
    arrays.SetColumns(0, b, a);
    arrays.SetVector(1, b, s);
    arrays.SetColumns(2, b, u);
    arrays.SetColumns(3, b, vt);
    arrays.SetScalar(4, b, info);
  }
}

// LAPACK gives a real matrix's eigenvectors in real columns: those of a conjugate pair are two columns, re and im.
template <typename T>
std::vector<std::complex<T>> ComplexVectors(const std::vector<T>& imaginary, const std::vector<T>& columns, int n) {
  auto vectors = Room<std::complex<T>>(int64_t{n} * n);
  for (int j = 0; j < n; ++j) {
    const bool is_pair = imaginary[static_cast<size_t>(j)] != 0 && j + 1 < n;
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(j * n + i), next = at + static_cast<size_t>(n);
      vectors[at] = {columns[at], is_pair ? columns[next] : T(0)};
      if (is_pair) vectors[next] = std::conj(vectors[at]);
    }
    if (is_pair) ++j;
  }
  return vectors;
}

}  // namespace

template <typename T>
void Gesdd(const Arrays& arrays) {
  SingularValues<T>(arrays, [](char mode, int m, int n, auto& a, auto& s, auto& u, auto& vt, int vt_rows) {
    return Api<T>::Get().gesdd(LAPACK_COL_MAJOR, mode, m, n, a.data(), std::max(m, 1), s.data(), u.data(),
                               std::max(m, 1), vt.data(), std::max(vt_rows, 1));
  });
}

template <typename T>
void Gesvd(const Arrays& arrays) {
  SingularValues<T>(arrays, [](char mode, int m, int n, auto& a, auto& s, auto& u, auto& vt, int vt_rows) {
    auto not_converged = Room<RealOf<T>>(std::min(m, n));
    return Api<T>::Get().gesvd(LAPACK_COL_MAJOR, mode, mode, m, n, a.data(), std::max(m, 1), s.data(), u.data(),
                               std::max(m, 1), vt.data(), std::max(vt_rows, 1), not_converged.data());
  });
}

template <typename T>
void Syevd(const Arrays& arrays) {
  const int n = arrays.Size("n");
  const char mode = arrays.Option("mode"), uplo = arrays.Option("uplo");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto w = Room<RealOf<T>>(n);
    int info = IsFinite(a) ? 0 : kNotFinite;
    if (info == 0 && n > 0) info = Api<T>::Get().syevd(LAPACK_COL_MAJOR, mode, uplo, n, a.data(), n, w.data());
    arrays.SetColumns(0, b, a);
    arrays.SetVector(1, b, w);
    arrays.SetScalar(2, b, info);
  }
}

template <typename T>
void Sytrd(const Arrays& arrays) {
  const int n = arrays.Size("n");
  const char uplo = arrays.Option("uplo");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto d = Room<RealOf<T>>(n), e = Room<RealOf<T>>(n - 1);
    auto tau = Room<T>(n - 1);
    const int info =
        n == 0 ? 0 : Api<T>::Get().sytrd(LAPACK_COL_MAJOR, uplo, n, a.data(), n, d.data(), e.data(), tau.data());
    arrays.SetColumns(0, b, a);
    arrays.SetVector(1, b, d);
    arrays.SetVector(2, b, e);
    arrays.SetVector(3, b, tau);
    arrays.SetScalar(4, b, info);
  }
}

template <typename T>
void Geev(const Arrays& arrays) {
  const int n = arrays.Size("n");
  const char left = arrays.Option("compute_left"), right = arrays.Option("compute_right");
  const int64_t square = int64_t{n} * n;
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto vl = Room<T>(square), vr = Room<T>(square);
    int info = IsFinite(a) ? 0 : kNotFinite;
    if constexpr (kIsComplex<T>) {
      auto w = Room<T>(n);
      if (info == 0 && n > 0) {
        info = Api<T>::Get().geev(LAPACK_COL_MAJOR, left, right, n, a.data(), n, w.data(), vl.data(), n, vr.data(), n);
      }
      arrays.SetVector(0, b, w);
      arrays.SetColumns(1, b, vl);
      arrays.SetColumns(2, b, vr);
      arrays.SetScalar(3, b, info);
    } else {
      auto re = Room<T>(n), im = Room<T>(n);
      if (info == 0 && n > 0) {
        info = Api<T>::Get().geev(LAPACK_COL_MAJOR, left, right, n, a.data(), n, re.data(), im.data(), vl.data(), n,
                                  vr.data(), n);
      }
      arrays.SetVector(0, b, re);
      arrays.SetVector(1, b, im);
      arrays.SetColumns(2, b, ComplexVectors(im, vl, n));
      arrays.SetColumns(3, b, ComplexVectors(im, vr, n));
      arrays.SetScalar(4, b, info);
    }
  }
}

template <typename T>
void Gees(const Arrays& arrays) {
  const int n = arrays.Size("n");
  const char mode = arrays.Option("mode");
  if (arrays.Option("sort") != 'N') Fail(ErrorCode::kUnimplemented, "Schur forms with selected eigenvalues first");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto vectors = Room<T>(int64_t{n} * n);
    int info = IsFinite(a) ? 0 : kNotFinite;
    int selected = 0;
    size_t next = 2;
    if constexpr (kIsComplex<T>) {
      auto w = Room<T>(n);
      if (info == 0 && n > 0) {
        info = Api<T>::Get().gees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, a.data(), n, &selected, w.data(),
                                  vectors.data(), n);
      }
      arrays.SetVector(next++, b, w);
    } else {
      auto re = Room<T>(n), im = Room<T>(n);
      if (info == 0 && n > 0) {
        info = Api<T>::Get().gees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, a.data(), n, &selected, re.data(), im.data(),
                                  vectors.data(), n);
      }
      arrays.SetVector(next++, b, re);
      arrays.SetVector(next++, b, im);
    }
    arrays.SetColumns(0, b, a);
    arrays.SetColumns(1, b, vectors);
    arrays.SetScalar(next, b, selected);
    arrays.SetScalar(next + 1, b, info);
  }
}

template <typename T>
void Gehrd(const Arrays& arrays) {
  const int n = arrays.Size("n");
  const int low = arrays.Integer("low"), high = arrays.Integer("high");
  for (int64_t b = 0; b < arrays.batch(); ++b) {
    auto a = arrays.Columns<T>(0, b);
    auto tau = Room<T>(n - 1);
    const int info = n == 0 ? 0 : Api<T>::Get().gehrd(LAPACK_COL_MAJOR, n, low, high, a.data(), n, tau.data());
    arrays.SetColumns(0, b, a);
    arrays.SetVector(1, b, tau);
    arrays.SetScalar(2, b, info);
  }
}

#define HLORUN_INSTANTIATE(T)            \
  template void Gesdd<T>(const Arrays&); \
  template void Gesvd<T>(const Arrays&); \
  template void Syevd<T>(const Arrays&); \
  template void Sytrd<T>(const Arrays&); \
  template void Geev<T>(const Arrays&);  \
  template void Gees<T>(const Arrays&);  \
  template void Gehrd<T>(const Arrays&);
HLORUN_INSTANTIATE(float)
HLORUN_INSTANTIATE(double)
HLORUN_INSTANTIATE(std::complex<float>)
HLORUN_INSTANTIATE(std::complex<double>)
#undef HLORUN_INSTANTIATE

}  // namespace hlorun::hlo::lapack
