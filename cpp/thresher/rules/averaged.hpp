// SGD, averaged SGD and centred averaged SGD: O. Dekel, "Linear Learning with Sparse Data", 2017
// (REQUIREMENTS R-14.*).
//
//   F(w, b) = lambda/2 (||w||^2 + b^2) + mean loss,   step 1 / (lambda t)
//
// Variables follow the paper:
//   v   sum of g_j x_j: w_t = -v / (lambda t)                               (Lemma 1)
//   u   sum of h_{j-1} g_j x_j, so that the mean of w_1 .. w_t is -(h v - u) / (lambda t)
//   a   sum of g_j: b_t = -a / (lambda t)        c   sum of a_j / j        h   sum of 1 / j
//   xbar  mean of the training rows;  theta = 1 + ||xbar||^2;  q = xbar . x
//   z   sum of g_j q_j = v . xbar;  r = a theta - z;  s   sum of r_j / j
// Centring never touches the rows: x - xbar enters through these scalars.
// v and u change only where x is nonzero, and the division by lambda t waits until somebody asks: a
// step costs the nonzeros of x.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../cell.hpp"
#include "../error.hpp"
#include "../sums.hpp"
#include "rule.hpp"

namespace thresher {

template <class Real_, bool Centred>
class AveragedSGD {
 public:
  using Real = Real_;

  struct Two {
    Pair<Real, Real> vu;
    bool operator==(const Two&) const = default;
  };
  struct Three {
    Pair<Real, Real> vu;
    Real xbar = 0;
    bool operator==(const Three&) const = default;
  };
  using Cell = std::conditional_t<Centred, Three, Two>;

  struct Row {
    std::vector<Real> v, u, xbar;
    void resize(std::size_t n) {
      if (v.size() >= n) return;
      v.resize(n), u.resize(n);
      if (Centred) xbar.resize(n);
    }
  };

  explicit AveragedSGD(const Params& params)
      : lambda_(params.number("alpha")), fit_intercept_(params.flag("fit_intercept")) {}

  // ---- one row -------------------------------------------------------------------------------

  void open(Row& row, std::size_t k, const Cell& cell) const {
    row.v[k] = cell.vu.first();
    row.u[k] = cell.vu.second();
    if constexpr (Centred) row.xbar[k] = cell.xbar;
  }

  double forward(Row& row, const Real* x, std::size_t n) {
    const double vx = dot(row.v.data(), x, n);
    if constexpr (!Centred) return vx;
    q_ = dot(row.xbar.data(), x, n);
    return vx + (r_ - a_ * q_);
  }

  // p_1 = 0; later p = -(v.x + a) / (lambda (t - 1)), or -(v.x + r - a q) / (lambda (t - 1)).
  double prediction(double dot) const {
    if (t_ == 0) return 0.0;
    return -(Centred ? dot : dot + a_) / (lambda_ * static_cast<double>(t_));
  }

  double backward(Row& row, double g, const Real* x, std::size_t n) {
    Real *__restrict v = row.v.data(), *__restrict u = row.u.data();
    const Real gv = static_cast<Real>(g), gu = static_cast<Real>(h_ * g);  // h is still h_{t-1}
    for (std::size_t k = 0; k < n; ++k) {
      v[k] += gv * x[k];
      u[k] += gu * x[k];
    }
    return sum(v, n) + sum(u, n);
  }

  Cell close(const Row& row, std::size_t k) const {
    if constexpr (Centred) return {{row.v[k], row.u[k]}, row.xbar[k]};
    else return {{row.v[k], row.u[k]}};
  }

  void finish(double g) {
    ++t_;
    const double t = static_cast<double>(t_);
    if (fit_intercept_ || Centred) a_ += g;
    c_ += a_ / t;
    h_ += 1.0 / t;
    if constexpr (Centred) {
      z_ += g * q_;
      r_ = a_ * theta_ - z_;
      s_ += r_ / t;
    }
  }

  void next_pass() {}

  // ---- what others may read ------------------------------------------------------------------

  double weight(const Cell& cell) const {
    return scaled(static_cast<double>(cell.vu.first()) - a_ * xbar(cell));
  }
  double average(const Cell& cell) const {
    return scaled(h_ * static_cast<double>(cell.vu.first()) - static_cast<double>(cell.vu.second()) - c_ * xbar(cell));
  }
  double intercept() const { return scaled(Centred ? r_ : a_); }
  double average_intercept() const { return scaled(Centred ? s_ : c_); }
  double rate() const { return 1.0 / (lambda_ * static_cast<double>(t_ + 1)); }
  std::string advice(double safe) const {
    return "raise alpha; for these rows " + shown(1.0 / safe) + " is safe";
  }

  bool dead(const Cell& cell) const { return cell == Cell{}; }
  bool sweep_due() const { return false; }
  Cell settled(const Cell& cell) const { return cell; }
  void begin_again() {}

  // ---- centring: the mean of the rows is given before the first step ---------------------------

  Cell centred_at(double mean) {
    Cell cell;
    if constexpr (Centred) {
      cell.xbar = static_cast<Real>(mean);
      theta_ += static_cast<double>(cell.xbar) * static_cast<double>(cell.xbar);
    }
    return cell;
  }

  template <class Archive>
  void archive(Archive& io) {
    io(t_), io(a_), io(c_), io(h_), io(z_), io(r_), io(s_), io(theta_);
  }

 private:
  static double xbar(const Cell& cell) {
    if constexpr (Centred) return static_cast<double>(cell.xbar);
    else return 0.0;
  }
  double scaled(double sum) const { return t_ == 0 ? 0.0 : -sum / (lambda_ * static_cast<double>(t_)); }

  double lambda_;
  bool fit_intercept_;
  std::int64_t t_ = 0;  // steps done
  double a_ = 0.0, c_ = 0.0, h_ = 0.0;
  double z_ = 0.0, r_ = 0.0, s_ = 0.0;
  double theta_ = fit_intercept_ ? 1.0 : 0.0;  // without an intercept only xbar is left in it
  double q_ = 0.0;  // of the current row
};

}  // namespace thresher
