// FTRL-Proximal with per-coordinate rates: H. B. McMahan et al., "Ad Click Prediction: a View from the
// Trenches", KDD 2013, Algorithm 1 (REQUIREMENTS R-8.4). Parameters are as published: l1 acts on the
// summed gradient.
//
//   w = 0 if |z| <= l1, else -(z - sgn(z) l1) / ((beta + sqrt(n)) / alpha + l2)
//   g = L'(w.x, y) x_j;   sigma = (sqrt(n + g^2) - sqrt(n)) / alpha;   z += g - sigma w;   n += g^2
//
// The weight is computed from z and n whenever it is asked for, so it returns to exact zero. The
// intercept is a coordinate with l1 = l2 = 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../cell.hpp"
#include "../error.hpp"
#include "../shrink.hpp"
#include "../sums.hpp"
#include "rule.hpp"

namespace thresher {

template <class Real_>
class FTRL {
 public:
  using Real = Real_;

  struct Cell {
    Pair<Real, Real> zn;
    bool operator==(const Cell&) const = default;
  };

  struct Row {
    std::vector<Real> z, n, w;
    void resize(std::size_t count) {
      if (z.size() >= count) return;
      z.resize(count), n.resize(count), w.resize(count);
    }
  };

  explicit FTRL(const Params& params)
      : l1_(static_cast<Real>(params.number("l1"))),
        l2_(static_cast<Real>(params.number("l2"))),
        alpha_(params.number("alpha")),
        beta_(params.number("beta")),
        fit_intercept_(params.flag("fit_intercept")) {}

  // ---- one row -------------------------------------------------------------------------------

  void open(Row& row, std::size_t k, const Cell& cell) const {
    row.z[k] = cell.zn.first();
    row.n[k] = cell.zn.second();
  }

  double forward(Row& row, const Real* x, std::size_t count) {
    const Real *__restrict z = row.z.data(), *__restrict n = row.n.data();
    Real* __restrict w = row.w.data();
    const Real a = inverse_alpha(), c = static_cast<Real>(beta_ / alpha_) + l2_, l1 = l1_;
    for (std::size_t k = 0; k < count; ++k) w[k] = weigh(z[k], n[k], l1, c, a);
    return dot(w, x, count);
  }

  double prediction(double dot) const { return dot + intercept(); }

  double backward(Row& row, double slope, const Real* x, std::size_t count) {
    Real *__restrict z = row.z.data(), *__restrict n = row.n.data();
    const Real* __restrict w = row.w.data();
    const Real a = inverse_alpha(), s = static_cast<Real>(slope);
    for (std::size_t k = 0; k < count; ++k) {
      const Real g = s * x[k], n_new = n[k] + g * g;
      const Real sigma = (std::sqrt(n_new) - std::sqrt(n[k])) * a;
      z[k] += g - sigma * w[k];
      n[k] = n_new;
    }
    return sum(z, count) + sum(n, count);
  }

  Cell close(const Row& row, std::size_t k) const { return {{row.z[k], row.n[k]}}; }

  void finish(double g) {
    if (!fit_intercept_ || g == 0.0) return;
    const double n_new = bias_n_ + g * g;
    const double sigma = (std::sqrt(n_new) - std::sqrt(bias_n_)) / alpha_;
    bias_z_ += g - sigma * intercept();
    bias_n_ = n_new;
  }

  void next_pass() {}

  // ---- what others may read ------------------------------------------------------------------

  double weight(const Cell& cell) const {
    return weigh(cell.zn.first(), cell.zn.second(), l1_, static_cast<Real>(beta_ / alpha_) + l2_,
                 inverse_alpha());
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

  bool dead(const Cell& cell) const { return cell == Cell{}; }  // n remembers: a zero weight is not dead
  bool sweep_due() const { return false; }
  Cell settled(const Cell& cell) const { return cell; }
  void begin_again() {}

  template <class Archive>
  void archive(Archive& io) {
    io(bias_z_), io(bias_n_);
  }

 private:
  Real inverse_alpha() const { return static_cast<Real>(1.0 / alpha_); }

  // c = beta / alpha + l2 and a = 1 / alpha; with |z| <= l1 the numerator is 0, whatever is below it.
  static Real weigh(Real z, Real n, Real l1, Real c, Real a) {
    const Real numerator = soft(z, l1), denominator = c + std::sqrt(n) * a;
    return denominator > 0 ? -numerator / denominator : Real(0);
  }

  Real l1_, l2_;
  double alpha_, beta_;
  bool fit_intercept_;
  double bias_z_ = 0.0, bias_n_ = 0.0;
};

}  // namespace thresher
