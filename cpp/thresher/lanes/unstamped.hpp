// Base classes for groups of lanes whose rules have no pending events, and so no stamps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "thresher/lanes/group.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher::lanes {

template <class Real>
class UnstampedLanes {
 public:
  UnstampedLanes(std::size_t lanes, std::size_t numbers_a_lane, const Table<Real>& table)
      : slots_(lanes, false, numbers_a_lane), table_(table) {}

  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }

  void see(double) {}
  void next_pass() {}

  // Whether all numbers are zero. A zero weight with nonzero state is not dead.
  bool dead(const Cell<Real>& cell) const {
    const Real* first = cell.numbers + slots_.line(0);
    return std::all_of(first, first + slots_.numbers(), [](Real value) { return value == 0; });
  }
  bool valid(const Cell<Real>&) const { return true; }

  bool sweep_due() const { return false; }
  void settle(const Cell<Real>&) {}
  void begin_again() {}

 protected:
  Slots slots_;
  const Table<Real>& table_;
};

// Lanes with two numbers each. Each lane has its own rule, which holds its parameters and
// intercept.
template <class R>
class PairedLanes : public UnstampedLanes<typename R::Real> {
 public:
  using Real = typename R::Real;

  static constexpr std::size_t lanes_per_part = 4 * widest / 2;

  PairedLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : UnstampedLanes<Real>(lanes.size(), 2, table), ones_(this->slots_.padded(), 1.0) {
    for (const Params* lane : lanes) rules_.emplace_back(*lane);
    lane_of_ = this->slots_.template spread<std::size_t>(std::numeric_limits<std::size_t>::max(),
                                                         [](std::size_t lane) { return lane; });
  }

  double reach(std::size_t lane, double squared_norm) const {
    return rules_[lane].reach(squared_norm);
  }
  const double* rates() const { return ones_.data(); }
  void finish(const double* g) {
    for (std::size_t lane = 0; lane < rules_.size(); ++lane)
      rules_[lane].finish(g[this->slots_.slot(lane)]);
  }
  double intercept(std::size_t s, bool average) const {
    const R& rule = rules_[lane_of_[s]];
    return average ? rule.average_intercept() : rule.intercept();
  }
  double rate(std::size_t s) const { return rules_[lane_of_[s]].rate(); }
  std::string advice(double safe) const { return rules_[0].advice(safe); }

  template <class Archive>
  void archive(Archive& io) {
    for (R& rule : rules_) rule.archive(io);
  }

 protected:
  std::vector<R> rules_;

 private:
  std::vector<std::size_t> lane_of_;  // the lane of each slot
  std::vector<double> ones_;
};

}  // namespace thresher::lanes
