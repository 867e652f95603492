// Kernels of the rule one-pass (one_pass/bank.hpp), for the vector level of the including file.
//
// A bank has one or two lines: four mixed lanes, or eight AdaGrad lanes and four of Newton. A kernel
// makes all lines of a cell in one sweep over the row.
#include <tuple>

#include "thresher/lanes/kernels.hpp"

namespace thresher::lanes::THRESHER_LEVEL {

enum class Curvature { adagrad, newton, mixed };

// The lanes [First, First + N) of a bank. Their weights are at 2 First in a cell, then n or c.
template <class Real, std::size_t First, std::size_t N, Curvature curvature>
struct BankLine {
  using P = Wide<Real, N>;
  static constexpr std::size_t first = First, size = N;

  P own, common, top, floor, newton;

  THRESHER_INLINE explicit BankLine(const Bank<Real>& bank)
      : own(P::load(bank.own + First)),
        common(P::load(bank.common + First)),
        top(P::load(bank.top + First)),
        floor(P::load(bank.floor + First)),
        newton(P::load(bank.newton + First)) {}

  // The inputs in units of u = x / s_j.
  THRESHER_INLINE P relative(Real ratio) const {
    if constexpr (curvature == Curvature::newton) return own;
    else return own + common * P::all(ratio);
  }
  THRESHER_INLINE static P weights(const Real* cell) { return P::load(cell + 2 * First); }
  THRESHER_INLINE static P sums(const Real* cell) { return P::load(cell + 2 * First + N); }

  // 1 / R
  THRESHER_INLINE P inverse(const P& sum, const P& grown) const {
    if constexpr (curvature == Curvature::adagrad) return top / sqrt(grown + floor);
    else if constexpr (curvature == Curvature::newton) return top / (sum + floor);
    else return top / where_greater(newton, P::all(0), sum + floor, sqrt(grown + floor));
  }
};

template <class Real>
using AdaGradLine = BankLine<Real, 0, 8, Curvature::adagrad>;
template <class Real>
using NewtonLine = BankLine<Real, 8, 4, Curvature::newton>;
template <class Real>
using MixedLine = BankLine<Real, 0, 4, Curvature::mixed>;

// Adds the numbers of a line in fours.
template <class Real>
THRESHER_INLINE Wide<Real, 4> fours(const Wide<Real, 4>& line) {
  return line;
}
template <class Real>
THRESHER_INLINE Wide<Real, 4> fours(const Wide<Real, 8>& line) {
  using P = Wide<Real, 8>;
  if constexpr (P::parts == 1) {  // one vector of eight
    using Half = typename Wide<Real, 4>::Vector;
    if constexpr (Wide<Real, 4>::parts == 1)
      return {{(Half)__builtin_shufflevector(line.part[0], line.part[0], 0, 1, 2, 3) +
               (Half)__builtin_shufflevector(line.part[0], line.part[0], 4, 5, 6, 7)}};
  } else if constexpr (P::width == 4) {  // two vectors of four
    return {{line.part[0] + line.part[1]}};
  } else {  // four vectors of two
    return {{line.part[0] + line.part[2], line.part[1] + line.part[3]}};
  }
}

template <class Real, class... Line>
struct BankOf {
  static constexpr std::size_t lanes = (Line::size + ...);
  static constexpr std::size_t block = 4096;  // nonzeros between additions in double precision
  using Sum = std::tuple<typename Line::P...>;

  THRESHER_INLINE static Sum zero() { return {Line::P::all(0)...}; }

  // Calls term(k, sum) for all nonzeros, where it adds to the sum; even and odd nonzeros have
  // separate sums. Adds the totals of the lanes to `to`.
  template <class Term>
  THRESHER_INLINE static void add_up(std::size_t n, double* to, const Term& term) {
    for (std::size_t l = 0; l < lanes; ++l) to[l] = 0.0;
    for (std::size_t k = 0; k < n;) {
      const std::size_t end = n - k < block ? n : k + block;
      Sum even = zero(), odd = zero();
      for (; k + 2 <= end; k += 2) term(k, even), term(k + 1, odd);
      if (k < end) term(k, even), ++k;
      (flush<Line>(even, odd, to), ...);
    }
  }
  template <class L>
  THRESHER_INLINE static void flush(const Sum& even, const Sum& odd, double* to) {
    using P = typename L::P;
    Real evens[L::size], odds[L::size];
    std::get<P>(even).store(evens), std::get<P>(odd).store(odds);
    for (std::size_t l = 0; l < L::size; ++l)
      to[L::first + l] += static_cast<double>(evens[l]) + static_cast<double>(odds[l]);
  }

  static void open(const RowOfCells<Real>& given, std::size_t at, const Bank<Real>& given_bank,
                   const Real* mixture, Real* mixed, double* dot) {
    const RowOfCells<Real> row = given;  // by value, as it stays in registers
    const Bank<Real> bank = given_bank;
    Real* const cells = row.first.numbers + at;
    const std::tuple<Line...> lines{Line(bank)...};
    const Sum mix{Line::P::load(mixture + Line::first)...};
    add_up(row.n, dot, [=](std::size_t k, Sum& sum) __attribute__((always_inline)) {
      const Real* const cell = cells + row.numbers[k] * row.stride;
      const Real u = bank.u[k], ratio = bank.ratio[k];
      const auto add = [&]<class L>() __attribute__((always_inline)) {
        using P = typename L::P;
        const P part = L::weights(cell) * std::get<L>(lines).relative(ratio);
        std::get<P>(sum) += part * P::all(u);
        return fours(part * std::get<P>(mix));
      };
      (add.template operator()<Line>() + ...).store(mixed + 4 * k);
    });
  }

  static void reach(const RowOfCells<Real>& given, std::size_t at, const Bank<Real>& given_bank,
                    const Real* growth, Real* inverses, double* q) {
    const RowOfCells<Real> row = given;
    const Bank<Real> bank = given_bank;
    Real* const cells = row.first.numbers + at;
    const std::tuple<Line...> lines{Line(bank)...};
    const Sum grows{Line::P::load(growth + Line::first)...};
    add_up(row.n, q, [=](std::size_t k, Sum& sum) __attribute__((always_inline)) {
      const Real* const cell = cells + row.numbers[k] * row.stride;
      const Real u = bank.u[k], ratio = bank.ratio[k];
      const auto add = [&]<class L>() __attribute__((always_inline)) {
        using P = typename L::P;
        const L& line = std::get<L>(lines);
        const P input = line.relative(ratio) * P::all(u), square = input * input;
        const P sums = L::sums(cell);
        const P inverse = line.inverse(sums, sums + std::get<P>(grows) * square);
        inverse.store(inverses + k * lanes + L::first);
        std::get<P>(sum) += square * inverse;
      };
      (add.template operator()<Line>(), ...);
    });
  }

  static void close(const RowOfCells<Real>& given, std::size_t at, const Bank<Real>& given_bank,
                    const Real* step, const Real* growth, const Real* inverses) {
    const RowOfCells<Real> row = given;
    const Bank<Real> bank = given_bank;
    Real* const cells = row.first.numbers + at;
    const std::tuple<Line...> lines{Line(bank)...};
    const Sum steps{Line::P::load(step + Line::first)...};
    const Sum grows{Line::P::load(growth + Line::first)...};
    for (std::size_t k = 0; k < row.n; ++k) {
      Real* const cell = cells + row.numbers[k] * row.stride;
      const Real u = bank.u[k], ratio = bank.ratio[k];
      const auto move = [&]<class L>() __attribute__((always_inline)) {
        using P = typename L::P;
        const P input = std::get<L>(lines).relative(ratio) * P::all(u);
        const P weights = L::weights(cell) -
                          std::get<P>(steps) * input * P::load(inverses + k * lanes + L::first);
        const P sums = L::sums(cell) + std::get<P>(grows) * (input * input);
        weights.store(cell + 2 * L::first);
        sums.store(cell + 2 * L::first + L::size);
      };
      (move.template operator()<Line>(), ...);
    }
  }

  static BankKernels<Real> kernels() { return {open, reach, close}; }
};

}  // namespace thresher::lanes::THRESHER_LEVEL
