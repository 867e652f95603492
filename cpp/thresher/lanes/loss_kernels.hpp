// Kernels of losses for the vector level of the including file (kernels_of_level.hpp): the losses of
// a row's predictions in all lanes, sums of scores, and what the rule one-pass does once for a row.
#include "thresher/lanes/kernels.hpp"

namespace thresher::lanes::THRESHER_LEVEL {

// ---- the logistic loss -----------------------------------------------------------------------

// e^t for t <= 0; e^-700 below -700, where it is negligible.
template <class P>
THRESHER_INLINE P exp_of_negative(const P& given) {
  const P least = P::all(-700.0), magic = P::all(0x1.8p52);
  const P t = where_greater(given, least, given, least);
  const P n = (t * P::all(1.4426950408889634074) + magic) - magic;  // the nearest integer
  const P r = (t - n * P::all(0x1.62e42fefa0000p-1)) - n * P::all(0x1.cf79abc9e3b3ap-40);  // ln 2
  const P r2 = r * r, r4 = r2 * r2;  // four independent chains, each a quarter as long
  const auto chain = [&](double first, const auto&... terms) __attribute__((always_inline)) {
    P sum = P::all(first);
    ((sum = sum * r4 + P::all(terms)), ...);
    return sum;
  };
  const P sum = (chain(1.0 / 479001600, 1.0 / 40320, 1.0 / 24, 1.0) +
                 r2 * chain(1.0 / 3628800, 1.0 / 720, 0.5)) +
                r * (chain(1.0 / 6227020800, 1.0 / 362880, 1.0 / 120, 1.0) +
                     r2 * chain(1.0 / 39916800, 1.0 / 5040, 1.0 / 6));
  return P::make([&](std::size_t i) __attribute__((always_inline)) {
    using Vector = typename P::Vector;
    using Bits = typename P::BitVector;
    const Bits power = (Bits)(n.part[i] + (Vector{} + 0x1.8p52)) << 52;  // n in the exponent
    return (Vector)((Bits)sum.part[i] + power);
  });
}

using Doubles = Wide<double, THRESHER_BYTES / sizeof(double)>;

// In vectors as wide as those of `weigh`, which reads p at once: a processor cannot forward narrow
// stores to a wide load, and would wait until all stores of the row are done.
inline void predictions(std::size_t n, double scale, const double* dot, const double* bias,
                        double* p) {
  using P = Doubles;
  for (std::size_t s = 0; s < n; s += P::size)
    (P::all(scale) * P::load(dot + s) + P::load(bias + s)).store(p + s);
}

// Whether a number is not +0.
template <class P>
THRESHER_INLINE bool has_bits(const P& numbers) {
  double values[P::size];
  std::uint64_t bits[P::size], all = 0;
  numbers.store(values);
  std::memcpy(bits, values, sizeof bits);
  for (std::size_t i = 0; i < P::size; ++i) all |= bits[i];
  return all != 0;
}

template <bool Logistic>
Weighed weigh(const LossesOfRow& row, double weight, const double* rates, double bound) {
  using P = Doubles;
  const P weights = P::all(weight), zero = P::all(0), one = P::all(1), most = P::all(bound);
  const P finite = P::all(1.7976931348623157e308);
  P outside = zero, any = zero;
  for (std::size_t s = 0; s < row.n; s += P::size) {
    const P alive = P::load(row.alive + s), p = P::load(row.p + s);
    P value, slope, factor;
    if constexpr (Logistic) {
      const P y = P::load(row.y + s), margin = p * y, e = exp_of_negative(zero - absolute(margin));
      value = where_greater(margin, zero, zero, zero - margin);
      factor = one + e;
      slope = zero - y * (where_greater(margin, zero, e, one) / factor);
    } else {
      value = P::load(row.value + s), slope = P::load(row.slope + s);
      factor = P::load(row.factor + s);
    }
    // A prediction that is not finite has no slope; g is then not finite either.
    P g = where_not_greater(absolute(p), finite, weights * slope, p);
    g = where_greater(alive, zero, g, zero);
    g.store(row.g + s);
    where_greater(alive, zero, value, zero).store(row.value + s);
    where_greater(alive, zero, factor, one).store(row.factor + s);
    outside = outside | where_greater(most, absolute(g) * P::load(rates + s), zero, one);
    any = any | absolute(g);
  }
  return {!has_bits(outside), has_bits(any)};  // no number here is -0
}

inline double add(const LossesOfRow& row, double* sum, double* product) {
  using P = Doubles;
  P most = P::all(0);
  for (std::size_t s = 0; s < row.n; s += P::size) {
    (P::load(sum + s) + P::load(row.value + s)).store(sum + s);
    const P p = P::load(product + s) * P::load(row.factor + s);
    p.store(product + s);
    most = where_greater(p, most, p, most);
  }
  double found[P::size], largest = 0.0;
  most.store(found);
  for (std::size_t i = 0; i < P::size; ++i) largest = found[i] > largest ? found[i] : largest;
  return largest;
}

// The probability of a label, computed and clipped as by predict_proba and scikit-learn: that of -1
// is 1 minus that of 1.
inline void likelihoods(const double* raw, std::size_t n, bool is_one, double* product,
                        double* mark) {
  using P = Doubles;
  const P zero = P::all(0), one = P::all(1);
  const P least = P::all(0x1p-52), most = P::all(1 - 0x1p-52);
  for (std::size_t s = 0; s < n; s += P::size) {
    const P p = P::load(raw + s), e = exp_of_negative(zero - absolute(p));
    P own = where_greater(p, zero, one, e) / (one + e);
    if (!is_one) own = one - own;
    own = where_greater(own, least, own, least);
    own = where_greater(most, own, own, most);
    (P::load(product + s) * own).store(product + s);
    (P::load(mark + s) + p * zero).store(mark + s);
  }
}

// ---- the rule one-pass ------------------------------------------------------------------------

// The margin u after the step is u = v + q / (1 + e^u), between v and v + q: by Halley's method with
// bisection. A lane that has converged stays as it is, so that lanes do not depend on each other.
template <std::size_t N>
void land(const double* m, double y, const double* q, double* slope, double* probability) {
  using P = Wide<double, N>;
  const P zero = P::all(0), one = P::all(1), half = P::all(0.5), close = P::all(1e-5);
  const P v = P::load(m) * P::all(y);
  P u = v, e, rest;
  const auto look = [&]() __attribute__((always_inline)) {  // rest = 1 / (1 + e^u)
    e = exp_of_negative(zero - absolute(u));
    rest = where_greater(u, zero, e, one) / (one + e);
  };
  look();
  if (q) {
    const P step = P::load(q), bend = where_greater(step, one, P::all(0.25), rest * (one - rest));
    P low = v, high = v + step, open = where_greater(step, zero, one, zero);
    u = where_greater(step, zero, v + step * rest / (one + bend * step), v);
    for (int i = 0; i < 40; ++i) {
      double left[N], any = 0.0;
      open.store(left);
      for (std::size_t l = 0; l < N; ++l) any += left[l];
      look();
      if (any == 0.0) break;
      const P f = (u - v) - step * rest;
      high = where_greater(f, zero, u, high), low = where_greater(f, zero, low, u);
      const P curve = step * rest * (one - rest), slope_f = one + curve;
      // f'' = -curve (1 - 2 rest)
      P next = u - f * slope_f / (slope_f * slope_f + half * f * curve * (one - rest - rest));
      const P middle = half * (low + high);
      next = where_greater(low, next, middle, where_greater(next, high, middle, next));
      const P moved = absolute(next - u), enough = close * (one + absolute(u));
      u = where_greater(open, zero, next, u);
      open = where_greater(moved, enough, open, zero);
    }
  }
  (zero - P::all(y) * rest).store(slope);
  (where_greater(u, zero, one, e) / (one + e)).store(probability);
}

// Sf = S f for a symmetric matrix of N rows of 16 numbers.
template <std::size_t N>
void multiply(const double* S, const double* f, std::size_t rows, double* Sf) {
  using P = Wide<double, N>;
  P sum = P::all(0);
  for (std::size_t i = 0; i < rows; ++i) sum += P::all(f[i]) * P::load(S + 16 * i);
  sum.store(Sf);
}
// S -= c Sf Sf'
template <std::size_t N>
void shrink(double* S, const double* Sf, std::size_t rows, double c) {
  using P = Wide<double, N>;
  const P f = P::load(Sf);
  for (std::size_t i = 0; i < rows; ++i)
    (P::load(S + 16 * i) - P::all(c * Sf[i]) * f).store(S + 16 * i);
}

}  // namespace thresher::lanes::THRESHER_LEVEL
