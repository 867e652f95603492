// SGD, averaged SGD and centred averaged SGD: O. Dekel, "Linear Learning with Sparse Data", 2017
// (R-14.*).
//
//   F(w, b) = lambda/2 (||w||^2 + b^2) + mean loss,   learning rate 1 / (lambda t)
//
//   g_t = L'(w_t . x_t + b_t, y_t);   v += g_t x_t;   u += h_{t-1} g_t x_t
//
// Variables follow the paper:
//   v   sum of g_j x_j: w_t = -v / (lambda t)                               (Lemma 1)
//   u   sum of h_{j-1} g_j x_j: the mean of w_1 .. w_t is -(h v - u) / (lambda t)
//   a   sum of g_j: b_t = -a / (lambda t)        c   sum of a_j / j        h   sum of 1 / j
//   xbar  mean of the training rows;  theta = 1 + ||xbar||^2;  q = xbar . x
//   z   sum of g_j q_j = v . xbar;  r = a theta - z;  s   sum of r_j / j
// Centring does not change the rows: these scalars account for x - xbar.
//
// Why a step costs only the nonzeros of x: v and u change only where x is nonzero, and the division
// by lambda t happens when a weight is read.
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
#include "thresher/rules/coordinate_steps.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

template <class Real_, bool Centred>
class AveragedSGD {
 public:
  using Real = Real_;

  struct WithMean {
    Pair<Real, Real> vu;
    Real xbar = 0;
    bool operator==(const WithMean&) const = default;
  };
  using Cell = std::conditional_t<Centred, WithMean, Pair<Real, Real>>;

  struct Row {
    std::vector<Real> v, u, xbar;
    Pack<Real> q;  // terms of xbar . x
    void resize(std::size_t n) {
      if (v.size() >= n) return;
      u.resize(n);
      if (Centred) xbar.resize(n);
      v.resize(n);  // resized last: the test above uses its size for all
    }
  };

  explicit AveragedSGD(const Params& params)
      : lambda_(params.number("alpha")), fit_intercept_(params.flag("fit_intercept")) {}

  // ---- one row -------------------------------------------------------------------------------

  template <class Use>
  void with_opener(Row& row, Use&& use) const {
    row.q = Pack<Real>::all(0);
    use([&, v_row = row.v.data(), u_row = row.u.data()](
            std::size_t k, const Four<Cell>& cells,
            const Pack<Real>& x) __attribute__((always_inline)) {
      if constexpr (Centred) {
        const auto xbar = Pack<Real>::of([&](std::size_t i) { return cells[i].xbar; });
        xbar.store(row.xbar.data() + k);
        row.q += xbar * x;
        Pack<Real>::of([&](std::size_t i) { return cells[i].vu.second(); }).store(u_row + k);
        const auto v = Pack<Real>::of([&](std::size_t i) { return cells[i].vu.first(); });
        v.store(v_row + k);
        return v * x;
      } else {
        const Pack<Real> v = half<0>(cells);
        v.store(v_row + k), half<1>(cells).store(u_row + k);
        return v * x;
      }
    });
  }

  // p_1 = 0; later p = -(v.x + a) / (lambda (t - 1)), or -(v.x + r - a q) / (lambda (t - 1)).
  double prediction(const Row& row, double vx) {
    if constexpr (Centred) q_ = row.q.total();
    if (t_ == 0) return 0.0;
    return -(unit_.steps * vx + (Centred ? r_ - a_ * q_ : a_)) /
           (lambda_ * static_cast<double>(t_));
  }

  void see(double, double) {}

  // The row is centred: ||x - xbar||^2 + 1 = ||x||^2 - 2 q + theta.
  double reach(double squared_norm) const {
    const double rest = Centred ? theta_ - 2.0 * q_ : fit_intercept_ ? 1.0 : 0.0;
    return std::max(0.0, squared_norm + rest) / (lambda_ * static_cast<double>(t_ + 1));
  }

  // A float overflows at 3e38. NaN does not fit either.
  bool fits(double gradient) const { return std::fabs(gradient) * std::max(1.0, h_) < 1e30; }

  template <class Use>
  void with_closer(const Row& row, double g, Use&& use) const {
    use([&, v_row = row.v.data(), u_row = row.u.data(),
         gv = Pack<Real>::all(static_cast<Real>(g * unit_.inverse)),
         gu = Pack<Real>::all(
             static_cast<Real>((h_ - h_at_start_) * g * unit_.inverse))](  // h is still h_{t-1}
            std::size_t k, const Pack<Real>& x, Four<Cell>& cells) __attribute__((always_inline)) {
      Pack<Real> v = Pack<Real>::load(v_row + k), u = Pack<Real>::load(u_row + k);
      averaged_step(v, u, gv, gu, x);
      if constexpr (Centred) {
        for (std::size_t i = 0; i < pack_size; ++i) cells[i] = {{v[i], u[i]}, row.xbar[k + i]};
      } else {
        zip(v, u, cells);
      }
    });
  }

  void finish(double g) {
    ++t_;
    const double t = static_cast<double>(t_);
    if (fit_intercept_ || Centred) a_ += g;  // centring needs the sum even if b stays 0
    c_ += a_ / t;
    h_ += 1.0 / t;
    if constexpr (Centred) {
      z_ += g * q_;
      r_ = a_ * theta_ - z_;
      s_ += r_ / t;
    }
  }

  void next_pass() {}

  // ---- reading -------------------------------------------------------------------------------

  double weight(const Cell& cell) const {
    const auto [v, u, xbar] = unpack(cell);
    return scaled(unit_.steps * v - a_ * xbar);
  }
  double average(const Cell& cell) const {
    const auto [v, u, xbar] = unpack(cell);
    return scaled(unit_.steps * ((h_ - h_at_start_) * v - u) - c_ * xbar);
  }
  double intercept() const { return scaled(Centred ? r_ : a_); }
  double average_intercept() const { return scaled(Centred ? s_ : c_); }
  double rate() const {
    return 1.0 / (lambda_ * static_cast<double>(std::max<std::int64_t>(t_, 1)));
  }
  std::string advice(double safe) const {
    return "raise alpha; for these rows " + shown(1.0 / safe) + " is safe";
  }

  bool valid(const Cell&) const { return true; }
  bool dead(const Cell& cell) const { return cell == Cell{}; }

  double h() const { return h_; }
  double scaled(double sum) const {
    return t_ == 0 ? 0.0 : -sum / (lambda_ * static_cast<double>(t_));
  }

  // ---- rounds: {v / t, (h v - u) / t}: the weight and the mean of its iterates, times -lambda --

  // In a round v and u are divided by the number of steps before it (RoundUnit), and u uses h minus
  // its value then. So a cell at the start of a round does not depend on the clock.
  static constexpr std::size_t numbers_per_feature = 2;
  using Numbers = std::array<double, 2>;
  using InterceptNumbers = std::array<double, 2>;

  bool changes_without_update() const { return true; }
  Numbers numbers_of(const Cell& cell) const
    requires(!Centred)
  {
    const double part = unit_.steps / steps(), v = cell.first();
    return {v * part, ((h_ - h_at_start_) * v - cell.second()) * part};
  }
  Cell cell_at_start(const Numbers& numbers) const
    requires(!Centred)
  {
    return {static_cast<Real>(numbers[0]), static_cast<Real>(-numbers[1])};
  }
  Cell cell_now(const Numbers& numbers) const
    requires(!Centred)
  {
    const double all = steps() * unit_.inverse, v = numbers[0] * all;
    return {static_cast<Real>(v), static_cast<Real>((h_ - h_at_start_) * v - numbers[1] * all)};
  }
  InterceptNumbers intercept_numbers() const { return {a_ / steps(), c_ / steps()}; }
  void set_intercept_numbers(const InterceptNumbers& numbers) {
    a_ = numbers[0] * steps(), c_ = numbers[1] * steps();
  }
  void begin_round() { unit_.begin(steps()), h_at_start_ = h_; }
  void end_rounds() { unit_ = {}, h_at_start_ = 0.0; }
  template <class Archive>
  void archive_round(Archive& io) {
    unit_.archive(io), io(h_at_start_);
  }

  // ---- centring: the mean of the rows is set before the first step ---------------------------

  Cell cell_with_mean(double mean)
    requires Centred
  {
    Cell cell;
    cell.xbar = static_cast<Real>(mean);
    theta_ += static_cast<double>(cell.xbar) * static_cast<double>(cell.xbar);
    return cell;
  }

  template <class Archive>
  void archive(Archive& io) {
    io(t_), io(a_), io(c_), io(h_), io(z_), io(r_), io(s_), io(theta_);
  }

 private:
  struct Unpacked {
    double v, u, xbar;
  };
  static Unpacked unpack(const Cell& cell) {
    if constexpr (Centred) return {cell.vu.first(), cell.vu.second(), cell.xbar};
    else return {cell.first(), cell.second(), 0.0};
  }
  double steps() const { return static_cast<double>(std::max<std::int64_t>(t_, 1)); }

  double lambda_;
  bool fit_intercept_;
  RoundUnit unit_;           // of v and u in cells
  double h_at_start_ = 0.0;  // of the round
  std::int64_t t_ = 0;       // steps done
  double a_ = 0.0, c_ = 0.0, h_ = 0.0;
  double z_ = 0.0, r_ = 0.0, s_ = 0.0;
  double theta_ = fit_intercept_ ? 1.0 : 0.0;  // plus ||xbar||^2, which is added later
  double q_ = 0.0;                             // of the current row
};

}  // namespace thresher
