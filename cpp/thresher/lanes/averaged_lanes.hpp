// Averaged SGD in lanes (rules/averaged.hpp has the rule and its symbols). A line is v, then u.
// Lanes of a group share t and h. Each lane has its own rule with its a, c and lambda.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "thresher/lanes/group.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/unstamped.hpp"
#include "thresher/rules/averaged.hpp"

namespace thresher::lanes {

template <class Real_>
class AveragedLanes : public PairedLanes<AveragedSGD<Real_, false>> {
  using Base = PairedLanes<AveragedSGD<Real_, false>>;
  using Base::rules_, Base::slots_, Base::table_;

 public:
  using Real = Real_;

  static bool joins(const Params& params) { return !params.flag("center"); }
  static std::string common(const Params&) { return ""; }

  AveragedLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : Base(lanes, table) {
    gv_.assign(slots_.padded(), 0), gu_ = gv_;
  }

  void open(const RowOfCells<Real>& row, double* dot) { look(row, false, dot); }

  // v . x, or (h v - u) . x, which is computed in double precision, because the difference cancels.
  void look(const RowOfCells<Real>& row, bool average, double* dot) const {
    if (!average) {
      for (std::size_t i = 0; i < slots_.lines(); ++i)
        table_.inner[slots_.number()](row, slots_.line(i), dot + i * slots_.size());
      return;
    }
    std::fill_n(dot, slots_.count(), 0.0);
    const double h = rules_[0].h();
    for (std::size_t k = 0; k < row.n; ++k)
      for (std::size_t s = 0; s < slots_.count(); ++s) {
        const Real* v = row.cell(k).numbers + slots_.line(s / slots_.size()) + s % slots_.size();
        dot[s] += (h * static_cast<double>(v[0]) - static_cast<double>(v[slots_.size()])) *
                  static_cast<double>(row.x[k]);
      }
  }
  void predict(const double* dot, double scale, bool average, double* p) const {
    std::fill_n(p, slots_.count(), 0.0);
    for (std::size_t lane = 0; lane < rules_.size(); ++lane) {
      const std::size_t s = slots_.slot(lane);
      p[s] = rules_[lane].scaled(scale * dot[s]) + Base::intercept(s, average);
    }
  }
  double pace() const { return std::max(1.0, rules_[0].h()); }
  static constexpr double largest = 1e30;  // a float overflows at 3e38

  void close(const RowOfCells<Real>& row, const double* g, double scale) {
    for (std::size_t s = 0; s < slots_.count(); ++s) {
      gv_[s] = static_cast<Real>(scale * g[s]);
      gu_[s] = static_cast<Real>(rules_[0].h() * (scale * g[s]));  // h is still h_{t-1}
    }
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      table_.averaged_close[slots_.number()](row, slots_.line(i), gv_.data() + i * slots_.size(),
                                             gu_.data() + i * slots_.size());
  }
  void read(const Cell<Real>& cell, bool average, double* w) const {
    look(alone(cell), average, w);
    for (std::size_t lane = 0; lane < rules_.size(); ++lane)
      w[slots_.slot(lane)] = rules_[lane].scaled(w[slots_.slot(lane)]);
  }

 private:
  std::vector<Real> gv_, gu_;  // of the current row
};

}  // namespace thresher::lanes
