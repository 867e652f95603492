// FTRL-Proximal in lanes (rules/ftrl.hpp has the rule and its symbols). A line is z, then n.
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
#include "thresher/rules/ftrl.hpp"

namespace thresher::lanes {

template <class Real_>
class FTRLLanes : public PairedLanes<FTRL<Real_>> {
  using Base = PairedLanes<FTRL<Real_>>;
  using Base::rules_, Base::slots_, Base::table_;

 public:
  using Real = Real_;

  static bool joins(const Params& params) { return params.number("target_nnz", 0.0) == 0.0; }
  static std::string common(const Params&) { return ""; }

  FTRLLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : Base(lanes, table) {
    l1_ = slots_.template spread<Real>(0, [&](std::size_t l) { return rules_[l].l1(); });
    a_ = slots_.template spread<Real>(0, [&](std::size_t l) { return rules_[l].inverse_alpha(); });
    c_ = slots_.template spread<Real>(-1, [&](std::size_t l) { return -rules_[l].floor(); });
    slope_.assign(slots_.padded(), 0);
  }

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
  double pace() const { return 1.0; }
  static constexpr double largest = 1e15;  // n adds up squares, and a float overflows at 3e38

  void close(const RowOfCells<Real>& row, const double* g, double scale) {
    for (std::size_t s = 0; s < slots_.count(); ++s) slope_[s] = static_cast<Real>(scale * g[s]);
    for (std::size_t i = 0; i < slots_.lines(); ++i) {
      const std::size_t first = i * slots_.size();
      table_.ftrl[slots_.number()].close(row, slots_.line(i), slope_.data() + first,
                                         a_.data() + first, w_.data() + first * row.n);
    }
  }
  void read(const Cell<Real>& cell, bool average, double* w) const {
    look(alone(cell), average, w);
  }

 private:
  void open(const RowOfCells<Real>& row, std::size_t i, Real* w, double* dot) const {
    const std::size_t first = i * slots_.size();
    table_.ftrl[slots_.number()].open(row, slots_.line(i), l1_.data() + first, a_.data() + first,
                                      c_.data() + first, w, dot + first);
  }

  std::vector<Real> l1_, a_, c_;
  std::vector<Real> slope_, w_;  // of the row
};

}  // namespace thresher::lanes
