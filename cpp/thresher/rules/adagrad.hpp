// AdaGrad with an l1 penalty: J. Duchi, E. Hazan, Y. Singer, "Adaptive Subgradient Methods for
// Online Learning and Stochastic Optimization", JMLR 2011: composite mirror descent with a diagonal
// matrix, Algorithm 1 with equation 24.
//
//   s_t     = s_{t-1} + g_t^2              for the gradient g_t of a coordinate
//   H_t     = delta + sqrt(s_t)
//   w_{t+1} = S(w_t - eta g_t / H_t, eta lambda / H_t)      S(v, a) = sgn(v) (|v| - a)_+
//
//   eta     alpha: the learning rate
//   delta   delta: slows the first steps of a coordinate
//   lambda  l1: the penalty, in units of the mean loss
//
// Why a step costs only the nonzeros of x: while a coordinate has no gradient, H does not change,
// and every step shrinks its weight by eta lambda / H. So a cell holds s and v, and the weight is
// computed from them when it is read:
//
//   w = S(v, eta P / H),   P = the sum of lambda over the steps so far
//
// The step of a coordinate is in rules/coordinate_steps.hpp, because lanes use it too. A step to
// u = w - eta g / H writes v = sgn(u) (|u| + eta P / H). The intercept is a coordinate with
// x = 1 and no penalty. In single precision P must stay small beside v: a sweep sets v = w, P = 0.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "thresher/core/cell.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/rules/coordinate_steps.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real_>
class AdaGrad {
 public:
  using Real = Real_;
  using Cell = Pair<Real, Real>;  // v, s
  using Arithmetic = AdaGradArithmetic;

  struct Row {
    std::vector<Real> w, s;
    void resize(std::size_t count) {
      if (w.size() >= count) return;
      s.resize(count);
      w.resize(count);  // resized last: the test above uses its size for both
    }
  };

  explicit AdaGrad(const Params& params)
      : lambda_(params.number("l1")),
        fading_(params.flag("fading")),
        eta_(params.number("alpha")),
        delta_(params.number("delta")),
        fit_intercept_(params.flag("fit_intercept")),
        steps_between_sweeps_(static_cast<std::int64_t>(
            params.number("sweep_events", sizeof(Real) == 4 ? 1 << 18 : 1 << 30))) {}

  // ---- one row -------------------------------------------------------------------------------

  template <class Use>
  void with_opener(Row& row, Use&& use) const {
    use([w_row = row.w.data(), s_row = row.s.data(), c = constant_packs()](
            std::size_t k, const Four<Cell>& cells, const Pack<Real>& x)
            __attribute__((always_inline)) {
              const Pack<Real> s = half<1>(cells);
              const Pack<Real> w = Arithmetic::weight(half<0>(cells), s, c);
              w.store(w_row + k), s.store(s_row + k);
              return w * x;
            });
  }

  double prediction(const Row&, double dot) const { return dot + bias_; }

  void see(double, double) {}

  // A coordinate moves by about alpha at most, whatever the gradient.
  double reach(double) const { return 0.0; }

  // s adds up squares, and a float overflows at 3e38. NaN does not fit either.
  bool fits(double gradient) const { return std::fabs(gradient) < 1e15; }

  template <class Use>
  void with_closer(const Row& row, double slope, Use&& use) const {
    use([w_row = row.w.data(), s_row = row.s.data(), c = constant_packs(),
         g = Pack<Real>::all(static_cast<Real>(slope))](
            std::size_t k, const Pack<Real>& x, Four<Cell>& cells) __attribute__((always_inline)) {
      Pack<Real> v, s = Pack<Real>::load(s_row + k);
      Arithmetic::step(v, s, Pack<Real>::load(w_row + k), g * x, c);
      zip(v, s, cells);
    });
  }

  void finish(double g) {
    ++t_, ++since_sweep_;
    eta_P_ += eta_ * (fading_ ? lambda_ / static_cast<double>(t_) : lambda_);
    if (!fit_intercept_ || g == 0.0) return;
    bias_s_ += g * g;
    bias_ -= eta_ * g / (delta_ + std::sqrt(bias_s_));
  }

  void next_pass() {}

  // ---- what others may read ------------------------------------------------------------------

  double weight(const Cell& cell) const { return soft(cell.first(), pending(cell.second())); }
  double average(const Cell& cell) const { return weight(cell); }
  double intercept() const { return bias_; }
  double average_intercept() const { return bias_; }
  double rate() const { return eta_; }
  std::string advice(double safe) const {
    return "lower alpha; for these rows " + shown(safe) + " is safe";
  }

  bool valid(const Cell& cell) const { return std::isfinite(cell.first()) && cell.second() >= 0; }
  bool dead(const Cell& cell) const { return cell == Cell{}; }  // a zero weight can have an s

  // ---- sweeps --------------------------------------------------------------------------------

  bool sweep_due() const { return since_sweep_ >= steps_between_sweeps_; }
  Cell settled(const Cell& cell) const { return {static_cast<Real>(weight(cell)), cell.second()}; }
  void reset_ledger() { eta_P_ = 0.0, since_sweep_ = 0; }

  // ---- rounds: {w, s} --------------------------------------------------------------------------

  static constexpr std::size_t numbers_per_feature = 2;
  using Numbers = std::array<double, 2>;
  using InterceptNumbers = std::array<double, 2>;

  bool changes_without_update() const { return lambda_ > 0; }
  Numbers numbers_of(const Cell& cell) const { return {weight(cell), cell.second()}; }
  Cell cell_at_start(const Numbers& numbers) const {
    return {static_cast<Real>(numbers[0]), static_cast<Real>(numbers[1])};
  }
  Cell cell_now(const Numbers& numbers) const {
    const auto w = static_cast<Real>(numbers[0]), s = static_cast<Real>(numbers[1]);
    return {w == 0 ? w : w + std::copysign(pending(s), w), s};
  }
  InterceptNumbers intercept_numbers() const { return {bias_, bias_s_}; }
  void set_intercept_numbers(const InterceptNumbers& numbers) {
    bias_ = numbers[0], bias_s_ = numbers[1];
  }

  // ---- as vectors need them ------------------------------------------------------------------

  // eta P, delta and eta. eta P / H stays finite.
  std::array<Real, constants_of<Arithmetic>> constants() const {
    const double largest = 0.25 * std::numeric_limits<Real>::max();
    return {static_cast<Real>(std::min(eta_P_, largest * std::min(delta_, 1.0))),
            static_cast<Real>(delta_), static_cast<Real>(eta_)};
  }

  template <class Archive>
  void archive(Archive& io) {
    io(t_), io(since_sweep_), io(eta_P_), io(bias_), io(bias_s_);
  }

 private:
  // eta P / H, by which v exceeds the weight.
  Real pending(Real s) const {
    const auto [eta_P, delta, eta] = constants();
    return eta_P / (delta + std::sqrt(s));
  }
  auto constant_packs() const {
    const auto own = constants();
    return constants_from<Arithmetic, Pack<Real>>(
        [&](std::size_t i) { return Pack<Real>::all(own[i]); });
  }

  double lambda_;
  bool fading_;  // the penalty of step t is lambda / t: on the sum of the losses, not on their mean
  double eta_, delta_;
  bool fit_intercept_;
  std::int64_t steps_between_sweeps_;
  std::int64_t t_ = 0, since_sweep_ = 0;
  double eta_P_ = 0.0;  // eta P: a combiner of a cluster has it without knowing eta
  double bias_ = 0.0, bias_s_ = 0.0;
};

}  // namespace thresher
