// The soft-thresholded margin perceptron in lanes (rules/margin_perceptron.hpp has the rule and its
// symbols). A lane shrinks only when it updates, and only weights of that row, so there is no clock
// and no stamp. Lanes keep no certificates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "thresher/lanes/group.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/unstamped.hpp"
#include "thresher/rules/margin_perceptron.hpp"

namespace thresher::lanes {

template <class Real_>
class PerceptronLanes : public UnstampedLanes<Real_> {
  using Base = UnstampedLanes<Real_>;
  using Base::slots_, Base::table_;

 public:
  using Real = Real_;

  static constexpr std::size_t lanes_per_part = 4 * widest;

  static bool joins(const Params& params) { return params.word("shrink") != "all"; }
  static std::string common(const Params&) { return ""; }

  PerceptronLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : Base(lanes.size(), 1, table), fit_intercept_(lanes[0]->flag("fit_intercept")) {
    const auto number = [&](const char* name) {
      return [&lanes, name](std::size_t lane) { return lanes[lane]->number(name); };
    };
    eta_ = slots_.template spread<double>(0.0, number("eta0"));
    lambda_ = slots_.template spread<Real>(0, number("l1"));
    bias_.assign(slots_.padded(), 0.0);
    step_.assign(slots_.padded(), 0), taken_ = step_;
  }

  void open(const RowOfCells<Real>& row, double* dot) { look(row, false, dot); }
  void look(const RowOfCells<Real>& row, bool, double* dot) const {
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      table_.inner[slots_.number()](row, slots_.line(i), dot + i * slots_.size());
  }
  void predict(const double* dot, double scale, bool, double* p) const {
    for (std::size_t s = 0; s < slots_.count(); ++s) p[s] = scale * dot[s] + bias_[s];
  }
  double reach(std::size_t lane, double squared_norm) const {
    return eta_[slots_.slot(lane)] * (squared_norm + (fit_intercept_ ? 1.0 : 0.0));
  }
  double pace() const { return 1.0; }
  const double* rates() const { return eta_.data(); }
  static constexpr double largest = 1e30;  // a float overflows at 3e38

  void close(const RowOfCells<Real>& row, const double* g, double scale) {
    for (std::size_t s = 0; s < slots_.count(); ++s) {
      step_[s] = static_cast<Real>(-eta_[s] * (scale * g[s]));
      taken_[s] = g[s] != 0.0 ? lambda_[s] : Real(0);  // a lane without an update does not shrink
    }
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      table_.perceptron_close[slots_.number()](
          row, slots_.line(i), step_.data() + i * slots_.size(), taken_.data() + i * slots_.size());
  }
  void finish(const double* g) {
    if (fit_intercept_)
      for (std::size_t s = 0; s < slots_.count(); ++s) bias_[s] -= eta_[s] * g[s];
  }

  void read(const Cell<Real>& cell, bool, double* w) const {
    for (std::size_t s = 0; s < slots_.count(); ++s)
      w[s] = static_cast<double>(cell.numbers[slots_.line(0) + s]);
  }
  double intercept(std::size_t s, bool) const { return bias_[s]; }
  double rate(std::size_t s) const { return eta_[s]; }
  std::string advice(double) const { return "the values of the rows are too large; scale them"; }
  template <class Archive>
  void archive(Archive& io) {
    io(bias_);
    if (bias_.size() != slots_.padded())
      throw std::invalid_argument("the state of the lanes is damaged");
  }

 private:
  bool fit_intercept_;
  std::vector<double> eta_, bias_;
  std::vector<Real> lambda_;
  std::vector<Real> step_, taken_;  // of the current row
};

}  // namespace thresher::lanes
