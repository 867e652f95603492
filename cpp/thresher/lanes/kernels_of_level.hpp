// The kernels for the vector level of the including file. kernels.hpp describes them.
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/wide.hpp"
#include "thresher/rules/coordinate_steps.hpp"

// After wide.hpp, which it needs.
#include "thresher/lanes/bank_kernels.hpp"

namespace thresher::lanes::THRESHER_LEVEL {

// Sums term(k, pointer to the line, pointer to x) over the row, for each lane.
template <class Real, std::size_t N, class Term>
THRESHER_INLINE void add_up(const RowOfCells<Real> row, std::size_t line, double* dot,
                            const Term& given) {
  using P = Wide<Real, N>;
  Real* const lines = row.first.numbers + line;  // of cell 0
  const auto term = [=](std::size_t k) __attribute__((always_inline)) {
    __builtin_prefetch(lines + row.later[k] * row.stride, 1);
    return given(k, lines + row.numbers[k] * row.stride, row.x + k);
  };
  const std::size_t n = row.n;
  for (std::size_t l = 0; l < N; ++l) dot[l] = 0.0;
  for (std::size_t k = 0; k < n;) {
    const std::size_t to = n - k < 4096 ? n : k + 4096;
    P even = P::all(0), odd = even;
    for (; k + 2 <= to; k += 2) even += term(k), odd += term(k + 1);
    if (k < to) even += term(k), ++k;
    Real evens[N], odds[N];
    even.store(evens), odd.store(odds);
    for (std::size_t l = 0; l < N; ++l)
      dot[l] += static_cast<double>(evens[l]) + static_cast<double>(odds[l]);
  }
}

template <class Real, std::size_t N>
void inner(const RowOfCells<Real>& row, std::size_t line, double* dot) {
  using P = Wide<Real, N>;
  const auto term = [=](std::size_t, const Real* w, const Real* x)
                        __attribute__((always_inline)) { return P::load(w) * P::all(*x); };
  add_up<Real, N>(row, line, dot, term);
}

// ---- truncated gradient ----------------------------------------------------------------------

template <class Real, std::size_t N, Pay pay, bool Inside>
void open(const RowOfCells<Real>& given, std::size_t line, std::size_t stamp,
          const Debt<Real>& debt, bool writes, double* dot) {
  const RowOfCells<Real> row = given;  // by value, as it stays in registers
  using P = Wide<Real, N>;
  using Stamp = std::make_unsigned_t<typename P::Bits>;
  const auto stamps = P::last_bits(debt.now);
  const P pull = P::load(debt.pull), theta = P::load(debt.theta);
  const double Q_now = debt.Q_now, B_now = debt.B_now, B_before = debt.B_before;
  const double *Q = debt.Q, *B = debt.B;
  [[maybe_unused]] const bool l2 = debt.l2;
  const std::uint64_t now = debt.now;
  // If `writes` is false, results go to an unused array. This avoids a branch and a second kernel.
  Real unused[N];
  Real* const lines = row.first.numbers + line;
  Real* const out = writes ? lines : unused;
  const std::ptrdiff_t kept = writes ? -1 : 0;  // mask of an offset
  Real* const stamps_outside = row.first.stamps + stamp;
  const bool sets_stamps = writes && debt.last;
  // Captured by value: captures by reference would be loaded again after every store.
  const auto term = [=](std::size_t k, Real* place, const Real* x) __attribute__((always_inline)) {
    Stamp e;
    if constexpr (Inside) {
      std::memcpy(&e, place + N - 1, sizeof e);
    } else {
      __builtin_prefetch(stamps_outside + row.later[k] * row.stamp_stride, 1);
      std::memcpy(&e, stamps_outside + row.numbers[k] * row.stamp_stride, sizeof e);
    }
    P v = Inside ? P::load_without_last(place) : P::load(place);
    P w;
    if constexpr (pay == Pay::round) {
      P before = v;  // the last event
      if (l2) {
        before = v * P::all(static_cast<Real>(B_before / B[e]));
        v = v * P::all(static_cast<Real>(B_now / B[e]));
      }
      w = e == now ? v : where_greater(theta, absolute(before), P::all(0), v);
    } else {
      double owed = Q_now - Q[e];
      if constexpr (pay == Pay::truncate_l2) {
        owed *= B_now;
        v = v * P::all(static_cast<Real>(B_now / B[e]));  // what all events leave of v
      }
      w = soft(v, pull * P::all(static_cast<Real>(owed)));
      if constexpr (pay == Pay::ceiling) w = where_greater(absolute(v), theta, v, w);
    }
    (Inside ? w.with_last(stamps) : w).store(out + ((place - lines) & kept));
    if (!Inside && sets_stamps) {
      const auto own = static_cast<Stamp>(now);
      std::memcpy(static_cast<void*>(stamps_outside + row.numbers[k] * row.stamp_stride), &own,
                  sizeof own);
    }
    return w * P::all(*x);
  };
  add_up<Real, N>(row, line, dot, term);
}

template <class Real, std::size_t N, bool Inside>
void close(const RowOfCells<Real>& given, std::size_t line, std::uint64_t now, const Real* steps) {
  const RowOfCells<Real> row = given;  // by value, as it stays in registers
  Real* const lines = row.first.numbers + line;
  using P = Wide<Real, N>;
  const auto stamps = P::last_bits(now);
  const P step = P::load(steps);
  for (std::size_t k = 0; k < row.n; ++k) {
    Real* cell = lines + row.numbers[k] * row.stride;
    P v = Inside ? P::load_without_last(cell) : P::load(cell);
    v = v + step * P::all(row.x[k]);
    (Inside ? v.with_last(stamps) : v).store(cell);
  }
}

// ---- rules with two numbers per coordinate ----------------------------------------------------

template <class A, class Real, std::size_t N>
void pair_open(const RowOfCells<Real>& row, std::size_t line, const Real* constants,
               std::size_t stride, Real* ws, double* dot) {
  using P = Wide<Real, N>;
  const auto c =
      constants_from<A, P>([=](std::size_t i) { return P::load(constants + i * stride); });
  const auto term = [=](std::size_t k, const Real* first, const Real* x)
                        __attribute__((always_inline)) {
                          const P w = A::weight(P::load(first), P::load(first + N), c);
                          if (ws) w.store(ws + k * N);
                          return w * P::all(*x);
                        };
  add_up<Real, N>(row, line, dot, term);
}

template <class A, class Real, std::size_t N>
void pair_close(const RowOfCells<Real>& given, std::size_t line, const Real* constants,
                std::size_t stride, const Real* slopes, const Real* ws) {
  const RowOfCells<Real> row = given;  // by value, as it stays in registers
  Real* const lines = row.first.numbers + line;
  using P = Wide<Real, N>;
  const auto c =
      constants_from<A, P>([=](std::size_t i) { return P::load(constants + i * stride); });
  const P slope = P::load(slopes);
  for (std::size_t k = 0; k < row.n; ++k) {
    Real* cell = lines + row.numbers[k] * row.stride;
    P first = P::load(cell), second = P::load(cell + N);
    A::step(first, second, P::load(ws + k * N), slope * P::all(row.x[k]), c);
    first.store(cell), second.store(cell + N);
  }
}

template <class Real, std::size_t N, std::size_t... I>
void set_pairs(Table<Real>& table, std::size_t size, std::index_sequence<I...>) {
  ((table.pairs[I][size] = {pair_open<std::tuple_element_t<I, PairArithmetics>, Real, N>,
                            pair_close<std::tuple_element_t<I, PairArithmetics>, Real, N>}),
   ...);
}

// ---- averaged SGD ----------------------------------------------------------------------------

template <class Real, std::size_t N>
void averaged_close(const RowOfCells<Real>& given, std::size_t line, const Real* gvs,
                    const Real* gus) {
  const RowOfCells<Real> row = given;  // by value, as it stays in registers
  Real* const lines = row.first.numbers + line;
  using P = Wide<Real, N>;
  const P gv = P::load(gvs), gu = P::load(gus);
  for (std::size_t k = 0; k < row.n; ++k) {
    Real* cell = lines + row.numbers[k] * row.stride;
    P v = P::load(cell), u = P::load(cell + N);
    averaged_step(v, u, gv, gu, P::all(row.x[k]));
    v.store(cell), u.store(cell + N);
  }
}

// ---- margin perceptron -----------------------------------------------------------------------

template <class Real, std::size_t N>
void perceptron_close(const RowOfCells<Real>& given, std::size_t line, const Real* steps,
                      const Real* lambdas) {
  const RowOfCells<Real> row = given;  // by value, as it stays in registers
  Real* const lines = row.first.numbers + line;
  using P = Wide<Real, N>;
  const P step = P::load(steps), lambda = P::load(lambdas);
  for (std::size_t k = 0; k < row.n; ++k) {
    if (row.x[k] == 0) continue;
    Real* cell = lines + row.numbers[k] * row.stride;
    soft(P::load(cell) + step * P::all(row.x[k]), lambda).store(cell);
  }
}

// ---- the logistic loss -----------------------------------------------------------------------

// e^t for t <= 0; e^-700 below -700, where it is negligible.
template <class P>
THRESHER_INLINE P exp_of_negative(const P& given) {
  const P least = P::all(-700.0), magic = P::all(0x1.8p52);
  const P t = where_greater(given, least, given, least);
  const P n = (t * P::all(1.4426950408889634074) + magic) - magic;  // the nearest integer
  const P r = (t - n * P::all(0x1.62e42fefa0000p-1)) - n * P::all(0x1.cf79abc9e3b3ap-40);  // ln 2
  const P r2 = r * r, r4 = r2 * r2;  // four independent chains, each a quarter as long
  const auto chain = [&](const auto&... terms) __attribute__((always_inline)) {
    P sum = P::all(0.0);
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
  double outsides[P::size], anys[P::size];
  outside.store(outsides), any.store(anys);
  Weighed found{true, false};
  for (std::size_t i = 0; i < P::size; ++i)
    found.fits &= outsides[i] == 0.0, found.any |= !(anys[i] == 0.0);
  return found;
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

// ---- the table -------------------------------------------------------------------------------

template <class Real, std::size_t N, bool Inside>
void set_truncated(Table<Real>& table, std::size_t size) {
  auto& row = table.truncated[size][Inside];
  const auto set = [&]<Pay pay>() {
    row[static_cast<std::size_t>(pay)] = {open<Real, N, pay, Inside>, close<Real, N, Inside>};
  };
  set.template operator()<Pay::truncate>(), set.template operator()<Pay::ceiling>();
  set.template operator()<Pay::truncate_l2>(), set.template operator()<Pay::round>();
}

template <class Real, std::size_t N>
void set_others(Table<Real>& table, std::size_t size) {
  set_truncated<Real, N, false>(table, size), set_truncated<Real, N, true>(table, size);
  set_pairs<Real, N>(table, size, std::make_index_sequence<std::tuple_size_v<PairArithmetics>>{});
  table.inner[size] = inner<Real, N>;
  table.averaged_close[size] = averaged_close<Real, N>;
  table.perceptron_close[size] = perceptron_close<Real, N>;
}

template <class Real>
void fill(Table<Real>& table) {
  set_others<Real, 4>(table, 0), set_others<Real, 8>(table, 1), set_others<Real, 16>(table, 2);
  table.banks[0] = BankOf<Real, MixedLine<Real>>::kernels();
  table.banks[1] = BankOf<Real, AdaGradLine<Real>, NewtonLine<Real>>::kernels();
  table.losses = {weigh<true>, weigh<false>, add};
  table.stacks[0] = {land<4>, multiply<8>, shrink<8>};
  table.stacks[1] = {land<16>, multiply<16>, shrink<16>};
}

}  // namespace thresher::lanes::THRESHER_LEVEL
