// FTRL-Proximal with per-coordinate rates: H. B. McMahan et al., "Ad Click Prediction: a View from
// the Trenches", KDD 2013, Algorithm 1 (R-8.4). Parameters are as in the paper: l1 acts on the sum
// of gradients.
//
//   w = 0 if |z| <= l1, else -(z - sgn(z) l1) / ((beta + sqrt(n)) / alpha + l2)
//   g = L'(w.x, y) x_j;   sigma = (sqrt(n + g^2) - sqrt(n)) / alpha;   z += g - sigma w;   n += g^2
//
// The step of a coordinate is in rules/coordinate_steps.hpp, because lanes use it too.
//
// Why a step costs only the nonzeros of x: a cell holds z and n, and the weight is computed from
// them when it is read. It can be exactly zero. The intercept is a coordinate with l1 = l2 = 0.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/cell.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/rules/coordinate_steps.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/schedule/steering.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real_>
class FTRL {
 public:
  using Real = Real_;

  using Cell = Pair<Real, Real>;  // z, n
  using Arithmetic = FTRLArithmetic;

  struct Row {
    std::vector<Real> z, n, w;
    void resize(std::size_t count) {
      if (z.size() >= count) return;
      n.resize(count), w.resize(count);
      z.resize(count);  // resized last: the test above uses its size for all three
    }
  };

  explicit FTRL(const Params& params)
      : l1_(static_cast<Real>(params.number("l1")), params.number("target_nnz", 0.0)),
        l2_(static_cast<Real>(params.number("l2"))),
        alpha_(params.number("alpha")),
        beta_(params.number("beta")),
        fit_intercept_(params.flag("fit_intercept")) {}

  // ---- one row -------------------------------------------------------------------------------

  template <class Use>
  void with_opener(Row& row, Use&& use) const {
    use([z_row = row.z.data(), n_row = row.n.data(), w_row = row.w.data(), c = constant_packs()](
            std::size_t k, const Four<Cell>& cells, const Pack<Real>& x)
            __attribute__((always_inline)) {
              const Pack<Real> z = half<0>(cells), n = half<1>(cells);
              const Pack<Real> w = Arithmetic::weight(z, n, c);
              z.store(z_row + k), n.store(n_row + k), w.store(w_row + k);
              return w * x;
            });
  }

  double prediction(const Row&, double dot) const { return dot + intercept(); }

  void see(double, double) {}

  // A coordinate moves by about alpha at most, whatever the gradient.
  double reach(double) const { return 0.0; }

  // n is a sum of squares, and a float overflows at 3e38. NaN does not fit either.
  bool fits(double gradient) const { return std::fabs(gradient) < 1e15; }

  template <class Use>
  void with_closer(const Row& row, double slope, Use&& use) const {
    use([z_row = row.z.data(), n_row = row.n.data(), w_row = row.w.data(), c = constant_packs(),
         s = Pack<Real>::all(static_cast<Real>(slope))](
            std::size_t k, const Pack<Real>& x, Four<Cell>& cells) __attribute__((always_inline)) {
      Pack<Real> z = Pack<Real>::load(z_row + k), n = Pack<Real>::load(n_row + k);
      Arithmetic::step(z, n, Pack<Real>::load(w_row + k), s * x, c);
      zip(z, n, cells);
    });
  }

  void finish(double g) {
    ++t_;
    if (!fit_intercept_ || g == 0.0) return;
    const double n_new = bias_n_ + g * g;
    const double sigma = (std::sqrt(n_new) - std::sqrt(bias_n_)) / alpha_;
    bias_z_ += g - sigma * intercept();
    bias_n_ = n_new;
  }

  void next_pass() {}

  bool steering_due() const { return l1_.due(t_); }
  template <class Each>
  void steer(Each&& each) {
    if (!l1_.wanted()) return;
    std::vector<Real> sizes;  // |z|
    each([&](const Cell& cell) { sizes.push_back(std::fabs(cell.first())); });
    l1_.steer(std::move(sizes));
  }

  // ---- reading -------------------------------------------------------------------------------

  double weight(const Cell& cell) const {
    return soft(cell.first(), l1()) / (-floor() - std::sqrt(cell.second()) * inverse_alpha());
  }
  double average(const Cell& cell) const { return weight(cell); }
  double intercept() const {
    return bias_z_ == 0.0 ? 0.0 : -bias_z_ / ((beta_ + std::sqrt(bias_n_)) / alpha_);
  }
  double average_intercept() const { return intercept(); }
  double rate() const { return alpha_; }
  std::string advice(double safe) const {
    return "lower alpha; for these rows " + shown(safe) + " is safe";
  }

  bool valid(const Cell&) const { return true; }
  bool dead(const Cell& cell) const { return cell == Cell{}; }  // a zero weight can have z and n

  // ---- rounds: {z, n} --------------------------------------------------------------------------

  static constexpr std::size_t numbers_per_feature = 2;
  using Numbers = std::array<double, 2>;
  using InterceptNumbers = std::array<double, 2>;

  bool changes_without_update() const { return false; }
  Numbers numbers_of(const Cell& cell) const { return {cell.first(), cell.second()}; }
  Cell cell_at_start(const Numbers& numbers) const {
    return {static_cast<Real>(numbers[0]), static_cast<Real>(numbers[1])};
  }
  Cell cell_now(const Numbers& numbers) const { return cell_at_start(numbers); }
  InterceptNumbers intercept_numbers() const { return {bias_z_, bias_n_}; }
  void set_intercept_numbers(const InterceptNumbers& numbers) {
    bias_z_ = numbers[0], bias_n_ = numbers[1];
  }

  // ---- constants of the formulas, also for lanes (lanes/ftrl_lanes.hpp) ----------------------

  std::array<Real, constants_of<Arithmetic>> constants() const {
    return {l1(), inverse_alpha(), -floor()};
  }

  template <class Archive>
  void archive(Archive& io) {
    io(bias_z_), io(bias_n_), io(t_), l1_.archive(io);
  }

 private:
  auto constant_packs() const {
    const auto own = constants();
    return constants_from<Arithmetic, Pack<Real>>(
        [&](std::size_t i) { return Pack<Real>::all(own[i]); });
  }
  Real l1() const { return l1_.now(); }
  Real inverse_alpha() const { return static_cast<Real>(1.0 / alpha_); }

  // The denominator for n = 0. Never 0: a coordinate with z = n = 0 has weight 0.
  Real floor() const {
    return std::max(static_cast<Real>(beta_ / alpha_) + l2_, std::numeric_limits<Real>::min());
  }

  SteeredThreshold<Real> l1_;
  Real l2_;
  double alpha_, beta_;
  bool fit_intercept_;
  double bias_z_ = 0.0, bias_n_ = 0.0;
  std::int64_t t_ = 0;
};

}  // namespace thresher
