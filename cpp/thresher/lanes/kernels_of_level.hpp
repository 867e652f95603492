// The kernels for the vector level of the including file. kernels.hpp describes them.
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/wide.hpp"
#include "thresher/rules/coordinate_steps.hpp"

// After wide.hpp, which it needs.
#include "thresher/lanes/bank_kernels.hpp"
#include "thresher/lanes/loss_kernels.hpp"

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
  double total[N] = {};
  for (std::size_t k = 0; k < n;) {
    const std::size_t to = n - k < 4096 ? n : k + 4096;
    P even = P::all(0), odd = even;
    for (; k + 2 <= to; k += 2) even += term(k), odd += term(k + 1);
    if (k < to) even += term(k), ++k;
    Real evens[N], odds[N];
    even.store(evens), odd.store(odds);
    for (std::size_t l = 0; l < N; ++l)
      total[l] += static_cast<double>(evens[l]) + static_cast<double>(odds[l]);
  }
  for (std::size_t l = 0; l < N; ++l) dot[l] = total[l];
}

// 1 where w is not 0, else 0.
template <class P>
THRESHER_INLINE P is_nonzero(const P& w) {
  return where_greater(absolute(w), P::all(0), P::all(1), P::all(0));
}

template <class Real, std::size_t N>
void inner(const RowOfCells<Real>& row, std::size_t line, double* dot) {
  using P = Wide<Real, N>;
  const auto term = [=](std::size_t, const Real* w, const Real* x)
                        __attribute__((always_inline)) { return P::load(w) * P::all(*x); };
  add_up<Real, N>(row, line, dot, term);
}

// ---- truncated gradient ----------------------------------------------------------------------

// If Counts, `dot` receives the numbers of nonzero weights instead of inner products.
template <class Real, std::size_t N, Pay pay, bool Inside, bool Counts = false>
void open(const RowOfCells<Real>& given, std::size_t line, std::size_t stamp,
          const Debt<Real>& debt, bool writes, double* dot) {
  const RowOfCells<Real> row = given;  // by value, as it stays in registers
  using P = Wide<Real, N>;
  using Stamp = std::make_unsigned_t<typename P::Bits>;
  const auto stamps = P::last_bits(debt.now);
  const P pull = P::load(debt.pull), against = P::all(0) - pull, theta = P::load(debt.theta);
  const double Q_now = debt.Q_now, B_now = debt.B_now, B_before = debt.B_before;
  [[maybe_unused]] const double a = debt.even;
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
      double owed;
      if constexpr (pay == Pay::even)  // Ledger::even_Q; stamps are below 2^31
        owed = Q_now - static_cast<double>(static_cast<typename P::Bits>(e)) * a;
      else owed = Q_now - Q[e];
      if constexpr (pay == Pay::truncate_l2) {
        owed *= B_now;
        v = v * P::all(static_cast<Real>(B_now / B[e]));  // what all events leave of v
      }
      const P most = P::all(static_cast<Real>(owed));
      w = v - clip(v, against * most, pull * most);
      if constexpr (pay == Pay::ceiling) w = where_greater(absolute(v), theta, v, w);
    }
    (Inside ? w.with_last(stamps) : w).store(out + ((place - lines) & kept));
    if (!Inside && sets_stamps) {
      const auto own = static_cast<Stamp>(now);
      std::memcpy(static_cast<void*>(stamps_outside + row.numbers[k] * row.stamp_stride), &own,
                  sizeof own);
    }
    return Counts ? is_nonzero(w) : w * P::all(*x);
  };
  add_up<Real, N>(row, line, dot, term);
}

template <class Real, std::size_t N, bool Inside>
void close(const RowOfCells<Real>& given, std::size_t line, std::uint64_t now,
           const Steps& given_steps) {
  const RowOfCells<Real> row = given;  // by value, as it stays in registers
  const Steps of = given_steps;
  Real steps[N];
  for (std::size_t l = 0; l < N; ++l)
    steps[l] = static_cast<Real>(of.pace * of.rates[l] * (of.scale * of.g[l]));
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

// Counts nonzero weights.
template <class A, class Real, std::size_t N>
void pair_count(const RowOfCells<Real>& row, std::size_t line, const Real* constants,
                std::size_t stride, double* counts) {
  using P = Wide<Real, N>;
  const auto c =
      constants_from<A, P>([=](std::size_t i) { return P::load(constants + i * stride); });
  const auto term = [=](std::size_t, const Real* first, const Real*)
                        __attribute__((always_inline)) {
                          return is_nonzero(A::weight(P::load(first), P::load(first + N), c));
                        };
  add_up<Real, N>(row, line, counts, term);
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
                            pair_close<std::tuple_element_t<I, PairArithmetics>, Real, N>,
                            pair_count<std::tuple_element_t<I, PairArithmetics>, Real, N>}),
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

// ---- the table -------------------------------------------------------------------------------

template <class Real, std::size_t N, bool Inside>
void set_truncated(Table<Real>& table, std::size_t size) {
  auto& row = table.truncated[size][Inside];
  const auto set = [&]<Pay pay>() {
    row[static_cast<std::size_t>(pay)] = {open<Real, N, pay, Inside>, close<Real, N, Inside>,
                                          open<Real, N, pay, Inside, true>};
  };
  set.template operator()<Pay::truncate>(), set.template operator()<Pay::ceiling>();
  set.template operator()<Pay::truncate_l2>(), set.template operator()<Pay::round>();
  set.template operator()<Pay::even>();
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
  table.losses = {predictions, weigh<true>, weigh<false>, add, likelihoods};
  table.stacks[0] = {land<4>, multiply<8>, shrink<8>};
  table.stacks[1] = {land<16>, multiply<16>, shrink<16>};
}

}  // namespace thresher::lanes::THRESHER_LEVEL
