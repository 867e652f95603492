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
    else
      return top / where_greater(newton, P::all(0), sum + floor, sqrt(grown + floor));
  }
};

template <class Real>
using AdaGradLine = BankLine<Real, 0, 8, Curvature::adagrad>;
template <class Real>
using NewtonLine = BankLine<Real, 8, 4, Curvature::newton>;
template <class Real>
using MixedLine = BankLine<Real, 0, 4, Curvature::mixed>;

template <class Real, class... Line>
struct BankOf {
  static constexpr std::size_t lanes = (Line::size + ...);
  static constexpr std::size_t block = 4096;  // nonzeros between additions in double precision

  // Sums of a row: of the even and of the odd nonzeros.
  struct Sums {
    std::tuple<typename Line::P...> even{Line::P::all(0)...}, odd = even;

    template <class L>
    THRESHER_INLINE void add(std::size_t k, const typename L::P& term) {
      using P = typename L::P;
      (k % 2 ? std::get<P>(odd) : std::get<P>(even)) += term;
    }
    THRESHER_INLINE void flush(double* to) {
      (flush<Line>(to), ...);
      *this = Sums{};
    }

   private:
    template <class L>
    THRESHER_INLINE void flush(double* to) {
      using P = typename L::P;
      Real evens[L::size], odds[L::size];
      std::get<P>(even).store(evens), std::get<P>(odd).store(odds);
      for (std::size_t l = 0; l < L::size; ++l)
        to[L::first + l] += static_cast<double>(evens[l]) + static_cast<double>(odds[l]);
    }
  };

  // The sum of all numbers of the lines; pairs are added in the same order at every level.
  THRESHER_INLINE static Real total(const typename Line::P&... lines) {
    Real numbers[lanes];
    (lines.store(numbers + Line::first), ...);
    Real four[4];
    for (std::size_t i = 0; i < 4; ++i) four[i] = numbers[i];
    for (std::size_t from = 4; from < lanes; from += 4)
      for (std::size_t i = 0; i < 4; ++i) four[i] += numbers[from + i];
    return (four[0] + four[1]) + (four[2] + four[3]);
  }

  static void open(const RowOfCells<Real>& given, std::size_t at, const Bank<Real>& bank,
                   const Real* mixture, Real* mixed, double* dot) {
    const RowOfCells<Real> row = given;  // by value, as it stays in registers
    Real* const cells = row.first.numbers + at;
    const std::tuple<Line...> lines{Line(bank)...};
    const std::tuple<typename Line::P...> mix{Line::P::load(mixture + Line::first)...};
    for (std::size_t l = 0; l < lanes; ++l) dot[l] = 0.0;
    for (std::size_t from = 0; from < row.n; from += block) {
      const std::size_t to = row.n - from < block ? row.n : from + block;
      Sums sums;
      for (std::size_t k = from; k < to; ++k) {
        const Real* const later = cells + row.later[k] * row.stride;
        __builtin_prefetch(later, 1);
        if constexpr (2 * lanes * sizeof(Real) > 64) __builtin_prefetch(later + 64 / sizeof(Real), 1);
        const Real* const cell = cells + row.numbers[k] * row.stride;
        const Real u = bank.u[k], ratio = bank.ratio[k];
        const auto term = [&]<class L>() __attribute__((always_inline)) {
          const auto part = L::weights(cell) * std::get<L>(lines).relative(ratio);
          sums.template add<L>(k, part * L::P::all(u));
          return part * std::get<typename L::P>(mix);
        };
        const Real sum = total(term.template operator()<Line>()...);
        if (mixed) mixed[k] = sum;
      }
      sums.flush(dot);
    }
  }

  static void reach(const RowOfCells<Real>& given, std::size_t at, const Bank<Real>& bank,
                    const Real* growth, Real* inverses, double* q) {
    const RowOfCells<Real> row = given;
    Real* const cells = row.first.numbers + at;
    const std::tuple<Line...> lines{Line(bank)...};
    const std::tuple<typename Line::P...> grows{Line::P::load(growth + Line::first)...};
    for (std::size_t l = 0; l < lanes; ++l) q[l] = 0.0;
    for (std::size_t from = 0; from < row.n; from += block) {
      const std::size_t to = row.n - from < block ? row.n : from + block;
      Sums sums;
      for (std::size_t k = from; k < to; ++k) {
        const Real* const cell = cells + row.numbers[k] * row.stride;
        const Real u = bank.u[k], ratio = bank.ratio[k];
        Real* const out = inverses + k * lanes;
        const auto term = [&]<class L>() __attribute__((always_inline)) {
          using P = typename L::P;
          const L& line = std::get<L>(lines);
          const P input = line.relative(ratio) * P::all(u), square = input * input;
          const P sum = L::sums(cell);
          const P inverse = line.inverse(sum, sum + std::get<P>(grows) * square);
          inverse.store(out + L::first);
          sums.template add<L>(k, square * inverse);
        };
        (term.template operator()<Line>(), ...);
      }
      sums.flush(q);
    }
  }

  static void close(const RowOfCells<Real>& given, std::size_t at, const Bank<Real>& bank,
                    const Real* step, const Real* growth, const Real* inverses) {
    const RowOfCells<Real> row = given;
    Real* const cells = row.first.numbers + at;
    const std::tuple<Line...> lines{Line(bank)...};
    const std::tuple<typename Line::P...> steps{Line::P::load(step + Line::first)...};
    const std::tuple<typename Line::P...> grows{Line::P::load(growth + Line::first)...};
    for (std::size_t k = 0; k < row.n; ++k) {
      Real* const cell = cells + row.numbers[k] * row.stride;
      const Real u = bank.u[k], ratio = bank.ratio[k];
      const Real* const own = inverses + k * lanes;
      const auto move = [&]<class L>() __attribute__((always_inline)) {
        using P = typename L::P;
        const P input = std::get<L>(lines).relative(ratio) * P::all(u);
        const P weights = L::weights(cell) - std::get<P>(steps) * input * P::load(own + L::first);
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
