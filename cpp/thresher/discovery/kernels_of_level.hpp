// The kernels for the vector level of the including file. kernels.hpp describes them.
#include "thresher/discovery/kernels.hpp"
#include "thresher/lanes/wide.hpp"

namespace thresher::discovery::THRESHER_LEVEL {

template <class T, std::size_t N>
using Wide = lanes::THRESHER_LEVEL::Wide<T, N>;

// Constants of the lanes [First, First + N).
template <class Real, std::size_t First, std::size_t N>
struct Line {
  using P = Wide<Real, N>;
  static constexpr std::size_t first = First, size = N;
  P step, threshold, inverse_step;

  THRESHER_INLINE Line()
      : step(from(steps.data(), false)),
        threshold(from(thresholds.data(), false)),
        inverse_step(from(steps.data(), true)) {}

  THRESHER_INLINE static P from(const double* values, bool inverse) {
    Real numbers[N];
    for (std::size_t k = 0; k < N; ++k)
      numbers[k] = static_cast<Real>(inverse ? 1.0 / values[First + k] : values[First + k]);
    return P::load(numbers);
  }
  THRESHER_INLINE static P z(const Real* cell) { return P::load(cell + 2 * First); }
  THRESHER_INLINE static P root(const Real* cell) { return P::load(cell + 2 * First + N); }

  // The weights; 0 for a new feature.
  THRESHER_INLINE P weights(const Real* cell) const {
    const P n = root(cell), least = P::all(Real(1e-30));
    const P scale = step * P::all(-cell[scale_at]);
    return soft(z(cell), threshold * n) / (n + least) * scale;
  }
};

template <class Real>
using Eight = Line<Real, 0, 8>;
template <class Real>
using Four = Line<Real, 8, 4>;

template <class Real>
void open(const lanes::RowOfCells<Real>& given, const Real* shares, Real* weights, Real* pooled,
          double* dot) {
  const lanes::RowOfCells<Real> row = given;  // by value, as it stays in registers
  const Eight<Real> eight;
  const Four<Real> four;
  using P8 = typename Eight<Real>::P;
  using P4 = typename Four<Real>::P;
  const P8 shares8 = P8::load(shares);
  const P4 shares4 = P4::load(shares + 8);
  constexpr std::size_t line = 64 / sizeof(Real);  // numbers in a cache line
  for (std::size_t k = 0; k < lanes_of_model; ++k) dot[k] = 0.0;
  for (std::size_t k = 0; k < row.n;) {
    const std::size_t to = row.n - k < 4096 ? row.n : k + 4096;
    P8 sum8 = P8::all(0);
    P4 sum4 = P4::all(0);
    for (; k < to; ++k) {
      const Real* const later = row.first.numbers + row.later[k] * row.stride;
      __builtin_prefetch(later, 1);
      __builtin_prefetch(later + line, 1);
      const Real* const cell = row.first.numbers + row.numbers[k] * row.stride;
      const P8 w8 = eight.weights(cell);
      const P4 w4 = four.weights(cell);
      w8.store(weights + k * lanes_of_model), w4.store(weights + k * lanes_of_model + 8);
      Real halves[8];
      (w8 * shares8).store(halves);
      (P4::load(halves) + P4::load(halves + 4) + w4 * shares4).store(pooled + 4 * k);
      sum8 += w8 * P8::all(row.x[k]), sum4 += w4 * P4::all(row.x[k]);
    }
    Real sums[lanes_of_model];
    sum8.store(sums), sum4.store(sums + 8);
    for (std::size_t l = 0; l < lanes_of_model; ++l) dot[l] += static_cast<double>(sums[l]);
  }
}

template <class Real>
void close(const lanes::RowOfCells<Real>& given, const Real* slope, const Real* growth,
           const Real* weights) {
  const lanes::RowOfCells<Real> row = given;
  const Eight<Real> eight;
  const Four<Real> four;
  for (std::size_t k = 0; k < row.n; ++k) {
    Real* const cell = row.first.numbers + row.numbers[k] * row.stride;
    const Real x = row.x[k], square = x * x;
    if (square == 0) continue;
    const Real squares = cell[squares_at] + square, values = cell[values_at] + 1;
    const Real scale = static_cast<Real>(__builtin_sqrt(static_cast<double>(values / squares)));
    cell[squares_at] = squares, cell[values_at] = values, cell[scale_at] = scale;
    const auto move = [&]<class L>(const L& line) __attribute__((always_inline)) {
      using P = typename L::P;
      const P root = L::root(cell);
      const P grown = sqrt(root * root + P::load(growth + L::first) * P::all(square));
      const P w = P::load(weights + k * lanes_of_model + L::first);
      const P z = L::z(cell) + (P::load(slope + L::first) * P::all(x) -
                                (grown - root) * line.inverse_step * P::all(1 / scale) * w);
      z.store(cell + 2 * L::first), grown.store(cell + 2 * L::first + L::size);
    };
    move(eight), move(four);
  }
}

template <class Real, class F>
THRESHER_INLINE void each_part(std::size_t count, const F& f) {
  std::size_t r = 0;
  for (; r + 16 <= count; r += 16) f.template operator()<Wide<Real, 16>>(r);
  for (; r + 4 <= count; r += 4) f.template operator()<Wide<Real, 4>>(r);
}

template <class Real>
void draw(const Real* uniforms, Real p, std::size_t count, Real* draws) {
  each_part<Real>(count, [&]<class P>(std::size_t r) __attribute__((always_inline)) {
    const P all = P::all(p);
    where_greater(all, P::load(uniforms + r), P::all(1) - all, P::all(0) - all).store(draws + r);
  });
}

template <class Real>
void add(const lanes::RowOfCells<Real>& given, std::size_t at, std::size_t count, const Real* draws,
         const Real* first, const Real* second) {
  const lanes::RowOfCells<Real> row = given;
  for (std::size_t k = 0; k < row.n; ++k) {
    Real* const sums = row.first.numbers + row.numbers[k] * row.stride + at;
    each_part<Real>(count, [&]<class P>(std::size_t r) __attribute__((always_inline)) {
      const P drawn = P::load(draws + r);
      (P::load(sums + r) + P::all(first[k]) * drawn).store(sums + r);
      if (!second) return;
      Real* const more = sums + count + r;
      (P::load(more) + P::all(second[k]) * drawn).store(more);
    });
  }
}

template <class Real>
void fill(Kernels<Real>& table) {
  table = {open<Real>, close<Real>, draw<Real>, add<Real>};
}

}  // namespace thresher::discovery::THRESHER_LEVEL
