// Regularised dual averaging (RDA): L. Xiao, "Dual Averaging Methods for Regularized Stochastic
// Learning and Online Optimization", JMLR 2010, with the l1 penalty (R-8.1).
//
//   gbar_t = mean of the gradients g_1 .. g_t
//   w_{t+1} = argmin <gbar_t, w> + lambda ||w||_1 + (gamma / sqrt(t)) (||w||^2 / 2 + rho ||w||_1)
//           = -(sqrt(t) / gamma) soft(gbar_t, lambda + gamma rho / sqrt(t))
//
//   lambda  l1: the penalty
//   gamma   strength: weight of the proximal term, which keeps weights near 0
//   rho     boost: an addition to the penalty that decreases as 1 / sqrt(t)
//
// Why a step costs only the nonzeros of x: a cell holds only the sum of gradients G = t gbar, and a
// weight is computed when it is read:
//
//   w = -soft(G, t lambda + gamma rho sqrt(t)) / (gamma sqrt(t))
//
// The intercept is a coordinate with x = 1 and no penalty.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "thresher/averaging/round_unit.hpp"
#include "thresher/core/cell.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real_>
class DualAveraging {
 public:
  using Real = Real_;
  using Cell = Single<double>;  // G grows with t: a float would lose its steps

  struct Row {
    std::vector<double> G;
    void resize(std::size_t count) {
      if (G.size() < count) G.resize(count);
    }
  };

  explicit DualAveraging(const Params& params)
      : lambda_(params.number("l1")),
        fading_(params.flag("fading")),
        strength_(params.number("strength")),
        rho_(params.number("boost")),
        relative_(params.flag("relative")),
        fit_intercept_(params.flag("fit_intercept")) {}

  // ---- one row -------------------------------------------------------------------------------

  template <class Use>
  void with_opener(Row& row, Use&& use) const {
    use([G_row = row.G.data(), threshold = Pack<double>::all(threshold_ * unit_.inverse),
         scale = Pack<double>::all(scale_ * unit_.steps)](std::size_t k, const Four<Cell>& cells,
                                                          const Pack<Real>& x)
            __attribute__((always_inline)) {
              const Pack<double> G = whole(cells), w = soft(G, threshold) * scale;
              G.store(G_row + k);
              return converted<Real>(w) * x;
            });
  }

  double prediction(const Row&, double dot) const { return dot + intercept(); }

  // With strength = "auto" gamma is relative to the rows: strength times the mean so far of squared
  // norms, times the steepness of the loss. For the intercept x is 1.
  void see(double squared_norm, double steepness) {
    row_norm_ = steepness * squared_norm, row_steepness_ = steepness;
  }

  // With the proximal terms after the step.
  double reach(double squared_norm) const {
    const double t = static_cast<double>(t_ + 1), root = std::sqrt(t);
    const double weights = squared_norm / (gamma_of(norms_ + row_norm_, t) * root);
    if (!fit_intercept_) return weights;
    return weights + 1.0 / (gamma_of(steepnesses_ + row_steepness_, t) * root);
  }

  // A float overflows at 3e38. NaN does not fit either.
  bool fits(double gradient) const { return std::fabs(gradient) < 1e30; }

  template <class Use>
  void with_closer(const Row& row, double g, Use&& use) const {
    use([G_row = row.G.data(), slope = Pack<double>::all(g * unit_.inverse)](
            std::size_t k, const Pack<Real>& x, Four<Cell>& cells) __attribute__((always_inline)) {
      spread(Pack<double>::load(G_row + k) + slope * converted<double>(x), cells);
    });
  }

  void finish(double g) {
    ++t_;
    if (fit_intercept_) G_bias_ += g;
    penalty_ += fading_ ? lambda_ / static_cast<double>(t_) : lambda_;
    norms_ += row_norm_, steepnesses_ += row_steepness_;
    set_weights();
  }

  void next_pass() {}

  // ---- reading -------------------------------------------------------------------------------

  double weight(const Cell& cell) const {
    return static_cast<double>(
        static_cast<Real>(soft(cell.value(), threshold_ * unit_.inverse) * (scale_ * unit_.steps)));
  }
  double average(const Cell& cell) const { return weight(cell); }
  double intercept() const { return G_bias_ * scale_bias_; }
  double average_intercept() const { return intercept(); }
  double rate() const { return -scale_; }
  std::string advice(double safe) const {
    return "raise strength; for these rows " + shown(1.0 / safe) + " is safe";
  }

  bool valid(const Cell&) const { return true; }
  bool dead(const Cell& cell) const {
    return cell == Cell{};
  }  // a zero weight can have a nonzero G

  // ---- rounds: {gbar} ------------------------------------------------------------------------

  static constexpr std::size_t numbers_per_feature = 1;
  using Numbers = std::array<double, 1>;
  using InterceptNumbers = std::array<double, 1>;

  bool changes_without_update() const { return true; }
  Numbers numbers_of(const Cell& cell) const { return {cell.value() * (unit_.steps / steps())}; }
  Cell cell_at_start(const Numbers& numbers) const { return Cell(numbers[0]); }
  Cell cell_now(const Numbers& numbers) const {
    return Cell(numbers[0] * (steps() * unit_.inverse));
  }
  InterceptNumbers intercept_numbers() const { return {G_bias_ / steps()}; }
  void set_intercept_numbers(const InterceptNumbers& numbers) { G_bias_ = numbers[0] * steps(); }
  void begin_round() { unit_.begin(steps()); }
  void end_rounds() { unit_ = {}; }
  template <class Archive>
  void archive_round(Archive& io) {
    unit_.archive(io);
  }

  template <class Archive>
  void archive(Archive& io) {
    io(t_), io(G_bias_), io(penalty_), io(norms_), io(steepnesses_);
    set_weights();
  }

 private:
  double steps() const { return static_cast<double>(std::max<std::int64_t>(t_, 1)); }

  // gamma after t steps, for the sum of what it is relative to.
  double gamma_of(double sum, double t) const {
    return strength_ * (relative_ && sum > 0 ? sum / t : 1.0);
  }

  // Sets how G gives w after t steps.
  void set_weights() {
    threshold_ = scale_ = scale_bias_ = 0.0;
    if (t_ == 0) return;
    const double t = static_cast<double>(t_), root = std::sqrt(t);
    const double gamma = gamma_of(norms_, t), gamma_bias = gamma_of(steepnesses_, t);
    threshold_ = penalty_ + gamma * rho_ * root;
    scale_ = -1.0 / (gamma * root);
    scale_bias_ = -1.0 / (gamma_bias * root);
  }

  double lambda_;
  bool
      fading_;  // the penalty of step t is lambda / t: it is on the sum of the losses, not the mean
  double strength_, rho_;
  bool relative_, fit_intercept_;
  std::int64_t t_ = 0;
  double G_bias_ = 0.0;
  double penalty_ = 0.0;                    // sum of lambda over the steps
  double norms_ = 0.0, steepnesses_ = 0.0;  // sums for a relative gamma
  double row_norm_ = 0.0, row_steepness_ = 0.0;
  double threshold_ = 0.0, scale_ = 0.0;  // w = soft(G, threshold) * scale
  double scale_bias_ = 0.0;
  RoundUnit unit_;  // the G of cells
};

}  // namespace thresher
