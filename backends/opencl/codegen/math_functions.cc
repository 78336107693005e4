#include "backends/opencl/codegen/math_functions.h"

#include <algorithm>

namespace hlorun::opencl {
namespace {

using hlo::ElementType;

// p = e^r of e^x = 2^k e^r with |r| <= ln(2)/2.
#define HL_EXP_OF_C                                                         \
  "  @F k = fma(c, (@F)(0x1.715476p+0f), (@F)(0x1.8p+23f)) - 0x1.8p+23f;\n" \
  "  @F r = fma(k, (@F)(-0x1.62e43p-1f), c);\n"                             \
  "  r = fma(k, (@F)(0x1.05c61p-29f), r);\n"                                \
  "  @F p = fma((@F)(0x1.6dbc64p-10f), r, (@F)(0x1.124148p-7f));\n"         \
  "  p = fma(p, r, (@F)(0x1.555454p-5f));\n"                                \
  "  p = fma(p, r, (@F)(0x1.555486p-3f));\n"                                \
  "  p = fma(p, r, (@F)(0.5f));\n"                                          \
  "  p = fma(p, r * r, r) + 1.0f;\n"

// k goes into the exponent of p. The limits are those of x between which the result is a normal number; a NaN's k is
// an integer whose lower bits are zero.
constexpr std::string_view kExp = "static inline @F NAME(@F x) {\n  @F c = x;\n" HL_EXP_OF_C
                                  R"(  p = as_float@n(as_uint@n(p) + (as_uint@n(convert_int@n(k)) << 23));
  p = @?(x < -0x1.5d589ep+6f, (@F)(0.0f), p);
  return @?(x > 0x1.62e42ep+6f, (@F)(INFINITY), p);
}
)";

// The same bits by AVX-512's scaling.
constexpr std::string_view kExpByAssembly = R"(static inline @F NAME(@F x) {
  @F c = @?(x > 89.0f, (@F)(89.0f), x);
  c = @?(c < -104.0f, (@F)(-104.0f), c);
)" HL_EXP_OF_C R"(  __asm__("vscalefps %1, %0, %0" : "+v"(p) : "v"(k));
  return p;
}
)";

// 2^k (e^r - 1) + (2^k - 1), halved until the end, for 2^128 does not fit.
constexpr std::string_view kExpm1 = R"(static inline @F NAME(@F x) {
  @F c = @?(x > 89.0f, (@F)(89.0f), x);
  c = @?(c < -20.0f, (@F)(-20.0f), c);
  @F k = fma(c, (@F)(0x1.715476p+0f), (@F)(0x1.8p+23f)) - 0x1.8p+23f;
  @F r = fma(k, (@F)(-0x1.62e43p-1f), c);
  r = fma(k, (@F)(0x1.05c61p-29f), r);
  @F p = fma((@F)(0x1.a1a602p-13f), r, (@F)(0x1.6d7b94p-10f));
  p = fma(p, r, (@F)(0x1.11108cp-7f));
  p = fma(p, r, (@F)(0x1.5554a6p-5f));
  p = fma(p, r, (@F)(0x1.555556p-3f));
  p = fma(p, r, (@F)(0.5f));
  p = fma(p, r * r, r);
  @F s = as_float@n((convert_int@n(k) + 126) << 23);
  @F y = fma(s, p, s - 0.5f) * 2.0f;
  return @?(fabs(x) < 1e-9f, x, y);
}
)";

// x = m 2^k with m in [sqrt(1/2), sqrt(2)); log m = f - f^2/2 + f^3 P(f), f = m - 1.
#define HL_LOG_OF_F_AND_K                                          \
  "  @F s = f * f;\n"                                              \
  "  @F p = fma((@F)(0x1.1bd2bp-4f), f, (@F)(-0x1.e37744p-4f));\n" \
  "  p = fma(p, f, (@F)(0x1.e65e3cp-4f));\n"                       \
  "  p = fma(p, f, (@F)(-0x1.fb2dd8p-4f));\n"                      \
  "  p = fma(p, f, (@F)(0x1.233086p-3f));\n"                       \
  "  p = fma(p, f, (@F)(-0x1.55636p-3f));\n"                       \
  "  p = fma(p, f, (@F)(0x1.99a564p-3f));\n"                       \
  "  p = fma(p, f, (@F)(-0x1.ffffecp-3f));\n"                      \
  "  p = fma(p, f, (@F)(0x1.555546p-2f));\n"                       \
  "  p = fma(k, (@F)(-0x1.05c61p-29f), f * s * p);\n"              \
  "  @F y = fma((@F)(-0.5f), s, p) + f;\n"                         \
  "  y = fma(k, (@F)(0x1.62e43p-1f), y);\n"

constexpr std::string_view kLog = R"(static inline @F NAME(@F x) {
  @I u = as_int@n(x), e = (u - 0x3f3504f3) >> 23;
  @F k = convert_float@n(e), f = as_float@n(u - (e << 23)) - 1.0f;
)" HL_LOG_OF_F_AND_K R"(  y = @?(x == INFINITY, x, y);
  y = @?(x == 0.0f, (@F)(-INFINITY), y);
  return @?(x >= 0.0f, y, (@F)(NAN));
}
)";

// 1 + x, rounded, gives k; then f = x 2^-k + (2^-k - 1) has what the rounding lost. Beyond 2^24 nothing is lost.
constexpr std::string_view kLog1p = R"(static inline @F NAME(@F x) {
  @F sum = x + 1.0f;
  @I u = as_int@n(sum), e = (u - 0x3f3504f3) >> 23;
  @F k = convert_float@n(e), t = as_float@n((127 - e) << 23);
  @F f = @?(x > 16777216.0f, as_float@n(u - (e << 23)) - 1.0f, fma(x, t, t - 1.0f));
)" HL_LOG_OF_F_AND_K R"(  y = @?(x == INFINITY, x, y);
  y = @?(x == 0.0f, as_float@n(as_int@n(x) & (@I)(-2147483647 - 1)), y);
  y = @?(x == -1.0f, (@F)(-INFINITY), y);
  return @?(x >= -1.0f, y, (@F)(NAN));
}
)";

// One float of at least 2^16: the part of x 2/pi beyond whole turns, from a window of 96 bits of 2/pi.
constexpr std::string_view kHugeQuadrants =
    R"(__constant uint hl_two_over_pi[9] = {0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                      0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};
static float hl_huge_quadrants_of(float x, int* quadrant) {
  uint u = as_uint(x), m = (u & 0x7fffffu) | 0x800000u;
  int e = (int)((u >> 23) & 0xffu) - 127;
  *quadrant = 0;
  if (e == 128) return NAN;
  int skip = e - 25 + 32, word = skip >> 5, bit = skip & 31;
  ulong high = ((ulong)hl_two_over_pi[word] << 32) | hl_two_over_pi[word + 1];
  ulong low = ((ulong)hl_two_over_pi[word + 2] << 32) | (word + 3 < 9 ? hl_two_over_pi[word + 3] : 0u);
  if (bit != 0) {
    high = (high << bit) | (low >> (64 - bit));
    low <<= bit;
  }
  ulong product = ((ulong)m * (high >> 32) << 32) + (ulong)m * (high & 0xffffffffu) + ((ulong)m * (low >> 32) >> 32);
  int q = (int)((product + 0x2000000000000000uL) >> 62);
  float r = (float)(long)(product << 2) * 0x1.921fb6p-64f;
  *quadrant = (u >> 31) ? -q : q;
  return (u >> 31) ? -r : r;
}
)";

// x = q pi/2 + r; three parts of pi/2 are exact enough below 1e5.
#define HL_QUADRANTS                                                             \
  "  @F k = fma(x, (@F)(0x1.45f306p-1f), (@F)(0x1.8p+23f)) - 0x1.8p+23f;\n"      \
  "  @F r = fma(k, (@F)(-0x1.921fb6p+0f), x);\n"                                 \
  "  r = fma(k, (@F)(0x1.777a5cp-25f), r);\n"                                    \
  "  r = fma(k, (@F)(0x1.ee59dap-50f), r);\n"                                    \
  "  @I q = convert_int@n(k);\n"                                                 \
  "  if (@any(fabs(x) > 1e5f)) {\n"                                              \
  "    float xs[@1], rs[@1];\n"                                                  \
  "    int qs[@1];\n"                                                            \
  "    @store(x, xs) @store(r, rs) @store(q, qs)\n"                              \
  "    for (int i = 0; i < @1; ++i) {\n"                                         \
  "      if (fabs(xs[i]) > 1e5f) rs[i] = hl_huge_quadrants_of(xs[i], &qs[i]);\n" \
  "    }\n"                                                                      \
  "    @load(r, rs) @load(q, qs)\n"                                              \
  "  }\n"                                                                        \
  "  @F s = r * r;\n"

#define HL_SINE_AND_COSINE                                                 \
  HL_QUADRANTS                                                             \
  "  @F sine = fma((@F)(0x1.6cd5ecp-19f), s, (@F)(-0x1.a00f94p-13f));\n"   \
  "  sine = fma(sine, s, (@F)(0x1.111108p-7f));\n"                         \
  "  sine = fma(sine, s, (@F)(-0x1.555556p-3f));\n"                        \
  "  sine = fma(sine, s * r, r);\n"                                        \
  "  @F cosine = fma((@F)(-0x1.242908p-22f), s, (@F)(0x1.a01118p-16f));\n" \
  "  cosine = fma(cosine, s, (@F)(-0x1.6c16b8p-10f));\n"                   \
  "  cosine = fma(cosine, s, (@F)(0x1.555556p-5f));\n"                     \
  "  cosine = fma(cosine, s, (@F)(-0.5f));\n"                              \
  "  cosine = fma(cosine, s, (@F)(1.0f));\n"

constexpr std::string_view kSin =
    "static inline @F NAME(@F x) {\n" HL_SINE_AND_COSINE R"(  @F y = @?((q & 1) == 1, cosine, sine);
  y = as_float@n(as_int@n(y) ^ ((q & 2) << 30));
  return @?(x == 0.0f, x, y);
}
)";

constexpr std::string_view kCos =
    "static inline @F NAME(@F x) {\n" HL_SINE_AND_COSINE R"(  @F y = @?((q & 1) == 1, sine, cosine);
  return as_float@n(as_int@n(y) ^ (((q + 1) & 2) << 30));
}
)";

constexpr std::string_view kTan =
    "static inline @F NAME(@F x) {\n" HL_QUADRANTS R"(  @F t = fma((@F)(0x1.36d914p-7f), s, (@F)(0x1.814dbp-9f));
  t = fma(t, s, (@F)(0x1.923992p-6f));
  t = fma(t, s, (@F)(0x1.b53ff4p-5f));
  t = fma(t, s, (@F)(0x1.113034p-3f));
  t = fma(t, s, (@F)(0x1.5554d2p-2f));
  t = fma(t, s * r, r);
  t = @?((q & 1) == 1, -1.0f / t, t);
  return @?(x == 0.0f, x, t);
}
)";

constexpr std::string_view kTanh = R"(static inline @F NAME(@F x) {
  @F a = fabs(x);
  @F t = @{expm1}(@?(a > 10.0f, (@F)(20.0f), a + a));
  return @?(x == 0.0f, x, copysign(t / (t + 2.0f), x));
}
)";

constexpr std::string_view kLogistic = R"(static inline @F NAME(@F x) { return 1.0f / (1.0f + @{exp}(-x)); }
)";

// sinh = (t + t / (t + 1)) / 2 with t = e^|x| - 1; where e^|x| overflows before it is halved, e^(|x| / 2) is squared.
constexpr std::string_view kSinh = R"(static inline @F NAME(@F x) {
  @F a = fabs(x), t = @{expm1}(a), h = @{exp}(a * 0.5f);
  @F y = @?(a > 80.0f, h * 0.5f * h, 0.5f * (t + t / (t + 1.0f)));
  return @?(x == 0.0f, x, copysign(y, x));
}
)";
constexpr std::string_view kCosh = R"(static inline @F NAME(@F x) {
  @F a = fabs(x), h = @{exp}(a * 0.5f), e = h * h;
  return @?(a > 80.0f, h * 0.5f * h, 0.5f * @{exp}(a) + 0.5f / e);
}
)";

// x + x P(x^2) below 0.92, else 1 - exp(-Q(|x|)).
constexpr std::string_view kErf = R"(static inline @F NAME(@F x) {
  @F a = fabs(x), s = a * a;
  @F p = fma((@F)(0x1.5e062cp-14f), s, (@F)(-0x1.aaa2d6p-11f));
  p = fma(p, s, (@F)(0x1.54d42ap-8f));
  p = fma(p, s, (@F)(-0x1.b80ff2p-6f));
  p = fma(p, s, (@F)(0x1.ce2e1cp-4f));
  p = fma(p, s, (@F)(-0x1.812744p-2f));
  p = fma(p, s, (@F)(0x1.06eba8p-3f));
  @F c = @?(a > 3.95f, (@F)(3.95f), a);
  @F g = fma((@F)(0x1.6309b2p-16f), c, (@F)(-0x1.c85c2ep-12f));
  g = fma(g, c, (@F)(0x1.1196e4p-8f));
  g = fma(g, c, (@F)(-0x1.9bb518p-6f));
  g = fma(g, c, (@F)(0x1.bb926ep-4f));
  g = fma(g, c, (@F)(0x1.44447p-1f));
  g = fma(g, c, (@F)(0x1.212846p+0f));
  g = fma(g, c, (@F)(-0x1.70d5fp-13f));
  return @?(a < 0.92f, fma(x, p, x), copysign(1.0f - @{exp}(-g), x));
}
)";

// The cube root of 2^(3k) m from that of m, by Halley's iteration from a guess on the bits.
constexpr std::string_view kCbrt = R"(static inline @F NAME(@F x) {
  @F b = fabs(x);
  @I tiny = b < 0x1p-90f;  // whose steps would be denormals
  @F a = @?(tiny, b * 0x1p+96f, b);
  @F t = as_float@n(as_uint@n(a) / 3u + 0x2a5137a0u);
  @F c = t / a * t * t;
  t = t * (c + 2.0f) / (c + c + 1.0f);
  @F lost = fma(-t * t, t, a) / (3.0f * t * t);
  t = t + lost;
  t = @?(tiny, t * 0x1p-32f, t);
  t = @?(a < INFINITY, t, a);
  return @?(x == 0.0f, as_float@n(as_int@n(x) & (@I)(-2147483647 - 1)), copysign(t, x));
}
)";

// Through the angle of the smaller side over the larger: atan t = t + t^3 P(t^2).
constexpr std::string_view kAtan2 = R"(static inline @F NAME(@F y, @F x) {
  @F ax = fabs(x), ay = fabs(y);
  @F large = @?(ay > ax, ay, ax), small = @?(ay > ax, ax, ay);
  @F t = @?(large == 0.0f, (@F)(0.0f), small / large);
  t = @?(small == INFINITY, (@F)(1.0f), t);
  @F s = t * t;
  @F p = fma((@F)(-0x1.defc4ap-10f), s, (@F)(0x1.6a8e34p-7f));
  p = fma(p, s, (@F)(-0x1.01aee6p-5f));
  p = fma(p, s, (@F)(0x1.dd0e38p-5f));
  p = fma(p, s, (@F)(-0x1.58dc4ap-4f));
  p = fma(p, s, (@F)(0x1.c0d278p-4f));
  p = fma(p, s, (@F)(-0x1.2426f8p-3f));
  p = fma(p, s, (@F)(0x1.999276p-3f));
  p = fma(p, s, (@F)(-0x1.55554p-2f));
  @F r = fma(p, s * t, t);
  r = @?(ay > ax, (0x1.921fb6p+0f - r) - 0x1.777a5cp-25f, r);
  r = @?(as_int@n(x) < 0, (0x1.921fb6p+1f - r) - 0x1.777a5cp-24f, r);
  return @?((x != x) | (y != y), (@F)(NAN), copysign(r, y));
}
)";

// exp(y log x) with the logarithm in two floats: with s = (m - 1) / (m + 1), log m = 2 s + s^3 (2/3 + s^2 T(s^2)).
constexpr std::string_view kPow = R"(static inline @F NAME(@F x, @F y) {
  @F a = fabs(x);
  @I u = as_int@n(a), e = (u - 0x3f3504f3) >> 23;
  @F m = as_float@n(u - (e << 23)), k = convert_float@n(e);
  @F f = m - 1.0f, d = m + 1.0f, dl = m - (d - 1.0f);
  @F sh = f / d;
  @F sl = fma(-sh, dl, fma(-sh, d, f)) / d;
  @F zh = sh * sh, zl = fma(sh, sh, -zh) + 2.0f * sh * sl;
  @F w = fma((@F)(0x1.8eda88p-3f), zh, (@F)(0x1.c65724p-3f));
  w = fma(w, zh, (@F)(0x1.24937ap-2f));
  w = zh * fma(w, zh, (@F)(0x1.999998p-2f));
  @F ch = w + 0x1.555556p-1f, cl = (0x1.555556p-1f - ch) + w - 0x1.555556p-26f;
  @F vh = sh * zh, vl = fma(sh, zh, -vh) + sh * zl + sl * zh;
  @F qh = vh * ch, ql = fma(vh, ch, -qh) + vh * cl + vl * ch;
  @F kh = k * 0x1.62e4p-1f, b = sh + sh;
  @F h1 = kh + b, l1 = b - (h1 - kh);
  @F h2 = h1 + qh, l2 = qh - (h2 - h1);
  @F low = l1 + l2 + (sl + sl) + ql;
  low = fma(k, (@F)(0x1.7f7d1cp-20f), low);
  @F lh = h2 + low, ll = low - (lh - h2);
  @F ph = y * lh, pl = fma(y, lh, -ph) + y * ll;
  pl = @?(fabs(ph) < 120.0f, pl, (@F)(0.0f));
  ph = @?(ph > 120.0f, (@F)(120.0f), ph);
  ph = @?(ph < -120.0f, (@F)(-120.0f), ph);
  @F n = fma(ph, (@F)(0x1.715476p+0f), (@F)(0x1.8p+23f)) - 0x1.8p+23f;
  @F r = fma(n, (@F)(-0x1.62e43p-1f), ph);
  r = fma(n, (@F)(0x1.05c61p-29f), r) + pl;
  @F p = fma((@F)(0x1.6dbc64p-10f), r, (@F)(0x1.124148p-7f));
  p = fma(p, r, (@F)(0x1.555454p-5f));
  p = fma(p, r, (@F)(0x1.555486p-3f));
  p = fma(p, r, (@F)(0.5f));
  p = fma(p, r * r, r) + 1.0f;
  @I i = convert_int@n(n), h = i >> 1;
  @F z = p * as_float@n((h + 127) << 23) * as_float@n((i - h + 127) << 23);
  // Zeros, infinities, then signs: y is whole, odd, or neither.
  @I down = as_int@n(y) < 0;
  z = @?(a == 0.0f, @?(down, (@F)(INFINITY), (@F)(0.0f)), z);
  z = @?(a == INFINITY, @?(down, (@F)(0.0f), (@F)(INFINITY)), z);
  z = @?(a == 1.0f, (@F)(1.0f), z);
  z = @?((x != x) | (y != y), (@F)(NAN), z);
  @F half_y = y * 0.5f;
  @I magnitude = as_int@n(fabs(y));
  @I whole = (trunc(y) == y) & ((magnitude == 0) | (magnitude >= 0x800000));
  @I odd = whole & (trunc(half_y) != half_y);
  z = @?((as_int@n(x) < 0) & odd, -z, z);
  z = @?((x < 0.0f) & (x != -INFINITY) & (whole == 0), (@F)(NAN), z);
  z = @?(magnitude == 0, (@F)(1.0f), z);
  return @?(x == 1.0f, (@F)(1.0f), z);
}
)";

// Exact. Where the quotient is small, one fused step and a correction (by an infinity the step is no number); else, and
// where the step could give a denormal, which is flushed before its sign is asked for, long division on the
// significands, for the whole vector.
constexpr std::string_view kFmodF32 = R"(static float hl_long_fmod_f32(float x, float y) {
  uint a = as_uint(x) & 0x7fffffffu, b = as_uint(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b < 0x800000u) return NAN;
  if (a < b) return x;
  int ea = (int)(a >> 23), eb = (int)(b >> 23);
  ulong m = (a & 0x7fffffu) | 0x800000u, d = (b & 0x7fffffu) | 0x800000u;
  m %= d;
  for (int left = ea - eb; left > 0 && m != 0; left -= 40) m = (m << (left < 40 ? left : 40)) % d;
  float r = m == 0 ? 0.0f : ldexp((float)m, eb - 150);
  return copysign(r, x);
}
static inline @F NAME(@F x, @F y) {
  @F a = fabs(x), b = fabs(y), q = fabs(x / y);
  if (@any(!(q < 4194304.0f) | (b < 0x1p-102f))) {
    float xs[@1], ys[@1];
    @store(x, xs) @store(y, ys)
    for (int i = 0; i < @1; ++i) xs[i] = hl_long_fmod_f32(xs[i], ys[i]);
    @F slow = x;
    @load(slow, xs)
    return slow;
  }
  @F r = fma(-trunc(q), b, a);
  r = @?(r < 0.0f, r + b, r);
  r = @?(r >= b, r - b, r);
  r = @?(a < b, a, r);
  return copysign(r, x);
}
)";

constexpr std::string_view kFmodF64 = R"(static double hl_long_fmod_f64(double x, double y) {
  ulong a = as_ulong(x) & 0x7fffffffffffffffuL, b = as_ulong(y) & 0x7fffffffffffffffuL;
  if (a >= 0x7ff0000000000000uL || b > 0x7ff0000000000000uL || b < 0x10000000000000uL) return as_double(0x7ff8000000000000uL);
  if (a < b) return x;
  int ea = (int)(a >> 52), eb = (int)(b >> 52);
  ulong m = (a & 0xfffffffffffffuL) | 0x10000000000000uL, d = (b & 0xfffffffffffffuL) | 0x10000000000000uL;
  m %= d;
  for (int left = ea - eb; left > 0 && m != 0; left -= 11) m = (m << (left < 11 ? left : 11)) % d;
  if (m == 0) return copysign(0.0, x);
  int up = (int)clz(m) - 11;
  if (eb - up <= 0) return copysign(0.0, x);
  return copysign(as_double(((m << up) & 0xfffffffffffffuL) | ((ulong)(eb - up) << 52)), x);
}
static inline @D NAME(@D x, @D y) {
  double xs[@1], ys[@1];
  @store(x, xs) @store(y, ys)
  for (int i = 0; i < @1; ++i) xs[i] = hl_long_fmod_f64(xs[i], ys[i]);
  @D r = x;
  @load(r, xs)
  return r;
}
)";

const std::vector<MathFunction>& MathFunctions() {
  static const std::vector<MathFunction> kFunctions = {
      {"atan2", ElementType::kF32, kAtan2},
      {"cbrt", ElementType::kF32, kCbrt},
      {"cos", ElementType::kF32, kCos, {"huge_quadrants"}},
      {"cosh", ElementType::kF32, kCosh, {"exp"}},
      {"erf", ElementType::kF32, kErf, {"exp"}},
      {"exp", ElementType::kF32, kExp, {}, kExpByAssembly},
      {"expm1", ElementType::kF32, kExpm1},
      {"fmod", ElementType::kF32, kFmodF32},
      {"fmod", ElementType::kF64, kFmodF64},
      {"huge_quadrants", ElementType::kF32, kHugeQuadrants},
      {"log", ElementType::kF32, kLog},
      {"log1p", ElementType::kF32, kLog1p},
      {"logistic", ElementType::kF32, kLogistic, {"exp"}},
      {"pow", ElementType::kF32, kPow},
      {"sin", ElementType::kF32, kSin, {"huge_quadrants"}},
      {"sinh", ElementType::kF32, kSinh, {"exp", "expm1"}},
      {"tan", ElementType::kF32, kTan, {"huge_quadrants"}},
      {"tanh", ElementType::kF32, kTanh, {"expm1"}},
  };
  return kFunctions;
}

}  // namespace

const MathFunction* FindMathFunction(std::string_view builtin, ElementType type) {
  const auto& all = MathFunctions();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const MathFunction& f) { return f.name == builtin && f.type == type; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace hlorun::opencl
