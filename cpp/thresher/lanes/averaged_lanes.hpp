// Averaged SGD in lanes (rules/averaged.hpp has the rule and its symbols). A line is v, then u. Lanes of a
// group have t and h in common; a, c and lambda are a lane's own, kept by a rule each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "../rules/averaged.hpp"
#include "group.hpp"
#include "kernels.hpp"

namespace thresher::lanes {

template <class Real_>
class AveragedLanes {
 public:
  using Real = Real_;

  static bool joins(const Params& params) { return !params.flag("center"); }
  static std::string common(const Params&) { return ""; }

  AveragedLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : slots_(lanes.size(), false, 2), table_(table) {
    for (const Params* lane : lanes) rules_.emplace_back(*lane);
    gv_.assign(slots_.padded(), 0), gu_ = gv_, ones_.assign(slots_.padded(), 1.0);
    lane_of_ = slots_.spread<std::size_t>(none, [](std::size_t l) { return l; });
  }

  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }

  void open(const RowOfCells<Real>& row, double* dot) { look(row, false, dot); }

  // v . x, or (h v - u) . x: that one in double precision, as little is left of the difference.
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
        const Real* v = row.cell(k) + slots_.line(s / slots_.size()) + s % slots_.size();
        dot[s] += (h * static_cast<double>(v[0]) - static_cast<double>(v[slots_.size()])) *
                  static_cast<double>(row.x[k]);
      }
  }
  void predict(const double* dot, double scale, bool average, double* p) const {
    std::fill_n(p, slots_.count(), 0.0);
    for (std::size_t lane = 0; lane < rules_.size(); ++lane) {
      const std::size_t s = slots_.slot(lane);
      p[s] = rules_[lane].scaled(scale * dot[s]) + intercept(s, average);
    }
  }
  void see(double, double) {}
  double pace() const { return std::max(1.0, rules_[0].h()); }
  const double* rates() const { return ones_.data(); }
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
  void finish(const double* g) {
    for (std::size_t lane = 0; lane < rules_.size(); ++lane)
      rules_[lane].finish(g[slots_.slot(lane)]);
  }
  void next_pass() {}

  void read(Real* cell, bool average, double* w) const {
    look(alone(cell), average, w);
    for (std::size_t lane = 0; lane < rules_.size(); ++lane)
      w[slots_.slot(lane)] = rules_[lane].scaled(w[slots_.slot(lane)]);
  }
  bool dead(const Real* cell) const {
    return std::all_of(cell + slots_.line(0), cell + slots_.line(0) + slots_.numbers(),
                       [](Real value) { return value == 0; });
  }
  double intercept(std::size_t s, bool average) const {
    const auto& rule = rules_[lane_of_[s]];
    return average ? rule.average_intercept() : rule.intercept();
  }
  double rate(std::size_t s) const { return rules_[lane_of_[s]].rate(); }
  std::string advice(double safe) const { return rules_[0].advice(safe); }
  void plant_intercept(std::size_t, double) {
    throw std::invalid_argument("this rule cannot start from given intercepts");
  }
  bool valid(const Real*) const { return true; }

  bool sweep_due() const { return false; }
  void settle(Real*) {}
  void begin_again() {}

  template <class Archive>
  void archive(Archive& io) {
    for (AveragedSGD<Real, false>& rule : rules_) rule.archive(io);
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  Slots slots_;
  const Table<Real>& table_;
  std::vector<AveragedSGD<Real, false>> rules_;
  std::vector<std::size_t> lane_of_;
  std::vector<double> ones_;
  std::vector<Real> gv_, gu_;  // of the row
};

}  // namespace thresher::lanes
