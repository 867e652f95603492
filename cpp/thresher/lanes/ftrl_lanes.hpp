// FTRL-Proximal in lanes (rules/ftrl.hpp has the rule and its symbols). A line is z, then n.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "../rules/ftrl.hpp"
#include "group.hpp"
#include "kernels.hpp"

namespace thresher::lanes {

template <class Real_>
class FTRLLanes {
 public:
  using Real = Real_;

  static bool joins(const Params& params) { return params.number("target_nnz", 0.0) == 0.0; }
  static std::string common(const Params&) { return ""; }

  FTRLLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : slots_(lanes.size(), false, 2), table_(table) {
    for (const Params* lane : lanes) rules_.emplace_back(*lane);
    l1_ = slots_.spread<Real>(0, [&](std::size_t l) { return rules_[l].l1(); });
    a_ = slots_.spread<Real>(0, [&](std::size_t l) { return rules_[l].inverse_alpha(); });
    c_ = slots_.spread<Real>(-1, [&](std::size_t l) { return -rules_[l].floor(); });
    slope_.assign(slots_.padded(), 0), ones_.assign(slots_.padded(), 1.0);
    lane_of_ = slots_.spread<std::size_t>(none, [](std::size_t l) { return l; });
  }

  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }

  void open(const RowOfCells<Real>& row, double* dot) {
    w_.resize(row.n * slots_.count());
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      open(row, i, w_.data() + i * row.n * slots_.size(), dot);
  }
  void look(const RowOfCells<Real>& row, bool, double* dot) const {
    for (std::size_t i = 0; i < slots_.lines(); ++i) open(row, i, nullptr, dot);
  }
  void predict(const double* dot, double scale, bool, double* p) const {
    for (std::size_t s = 0; s < slots_.count(); ++s) p[s] = scale * dot[s];
    for (std::size_t lane = 0; lane < rules_.size(); ++lane)
      p[slots_.slot(lane)] += rules_[lane].intercept();
  }
  void see(double, double) {}
  double pace() const { return 1.0; }
  const double* rates() const { return ones_.data(); }
  static constexpr double largest = 1e15;  // n adds up squares, and a float overflows at 3e38

  void close(const RowOfCells<Real>& row, const double* g, double scale) {
    for (std::size_t s = 0; s < slots_.count(); ++s) slope_[s] = static_cast<Real>(scale * g[s]);
    for (std::size_t i = 0; i < slots_.lines(); ++i) {
      const std::size_t first = i * slots_.size();
      table_.ftrl[slots_.number()].close(row, slots_.line(i), slope_.data() + first,
                                         a_.data() + first, w_.data() + first * row.n);
    }
  }
  void finish(const double* g) {
    for (std::size_t lane = 0; lane < rules_.size(); ++lane)
      rules_[lane].finish(g[slots_.slot(lane)]);
  }
  void next_pass() {}

  void read(Real* cell, bool average, double* w) const { look(alone(cell), average, w); }
  bool dead(const Real* cell) const {  // n remembers: a zero weight is not dead
    return std::all_of(cell + slots_.line(0), cell + slots_.line(0) + slots_.numbers(),
                       [](Real value) { return value == 0; });
  }
  double intercept(std::size_t s, bool) const { return rules_[lane_of_[s]].intercept(); }
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
    for (FTRL<Real>& rule : rules_) rule.archive(io);
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  void open(const RowOfCells<Real>& row, std::size_t i, Real* w, double* dot) const {
    const std::size_t first = i * slots_.size();
    table_.ftrl[slots_.number()].open(row, slots_.line(i), l1_.data() + first, a_.data() + first,
                                      c_.data() + first, w, dot + first);
  }

  Slots slots_;
  const Table<Real>& table_;
  std::vector<FTRL<Real>> rules_;  // of each lane, for its parameters and its intercept
  std::vector<Real> l1_, a_, c_;
  std::vector<std::size_t> lane_of_;
  std::vector<double> ones_;
  std::vector<Real> slope_, w_;  // of the row
};

}  // namespace thresher::lanes
