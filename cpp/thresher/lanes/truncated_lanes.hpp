// Truncated gradient in lanes (rules/truncated_gradient.hpp has the rule and its symbols).
//
// The clock is the rule with eta0 = 1 and g = 1. The rate of lane l is eta0_l times the clock's
// rate, and its pending shrinkage is eta0_l g_l times that of the clock's ledger. So one stamp and
// one lookup in the ledger serve all lanes of a feature. With l2, all lanes of a group and the
// clock have the same eta0 and l2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "thresher/lanes/group.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/rules/truncated_gradient.hpp"
#include "thresher/shrinkage/settlement.hpp"

namespace thresher::lanes {

template <class Real_>
class TruncatedLanes {
 public:
  using Real = Real_;
  using Clock = TruncatedGradient<Real, false>;
  using Stamp = typename Clock::Stamp;

  static constexpr std::size_t lanes_per_part = 4 * (widest - 1);

  // Whether a lane can be in a group, and the parameters that all lanes of a group share.
  static bool joins(const Params& params) {
    const bool poisson = params.word("loss") == "poisson";  // its rates depend on predictions
    const bool bounded =
        std::isfinite(params.number("ceiling")) && params.word("shrink") == "truncate";
    return !params.flag("average") && params.number("target_nnz", 0.0) == 0.0 &&
           params.number("certify", 0.0) == 0.0 && !(poisson && params.flag("relative")) &&
           !(bounded && params.number("l2") > 0);
  }
  static std::string common(const Params& params) {
    std::string key = params.word("schedule") + ' ' + params.word("shrink");
    for (const char* name : {"power", "decay", "period", "relative", "fading", "l2"})
      key += ' ' + exact(params.number(name));
    key += ' ' + exact(params.number("sweep_events", 0.0));
    if (params.number("l2") > 0 || params.word("shrink") == "subgradient")
      key += ' ' + exact(params.number("eta0"));
    return key;
  }

  TruncatedLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : slots_(lanes.size(), true, 1),
        table_(table),
        clock_(unit(*lanes[0])),
        shrink_(shrink_of(lanes[0]->word("shrink"))),
        l2_(lanes[0]->number("l2")),
        fit_intercept_(lanes[0]->flag("fit_intercept")) {
    const double unit_eta = unit(*lanes[0]).number("eta0");
    const auto number = [&](const char* name) {
      return [&lanes, name](std::size_t lane) { return lanes[lane]->number(name); };
    };
    eta0_ = slots_.spread<double>(0.0, [&](std::size_t l) { return number("eta0")(l) / unit_eta; });
    g_ = slots_.spread<double>(0.0, number("gravity"));
    pull_ = slots_.spread<Real>(
        0, [&](std::size_t l) { return eta0_[slots_.slot(l)] * number("gravity")(l); });
    theta_ = slots_.spread<Real>(0, number("ceiling"));
    bias_.assign(slots_.padded(), 0.0);
    const bool bounded = std::any_of(theta_.begin(), theta_.end(),
                                     [](Real theta) { return theta != 0 && std::isfinite(theta); });
    pay_ = shrink_ == Shrink::round ? Pay::round
           : l2_ > 0                ? Pay::truncate_l2
           : bounded                ? Pay::ceiling
                                    : Pay::truncate;
  }

  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }

  // ---- one row -------------------------------------------------------------------------------

  // Applies pending events and computes the inner products of all slots with x.
  void open(const RowOfCells<Real>& row, double* dot) {
    if (shrink_ == Shrink::subgradient) {
      swing(row, dot, true);
    } else {
      const Debt<Real> debt = owed();
      for (std::size_t i = 0; i < slots_.lines(); ++i)
        kernel().open(row, slots_.line(i), slots_.stamp(), of_line(debt, i), true,
                      dot + i * slots_.size());
    }
    if (shrink_ == Shrink::subgradient) stamp(row, clock_.ledger().now());
  }
  void look(const RowOfCells<Real>& row, bool, double* dot) const {
    if (shrink_ == Shrink::subgradient) {
      const_cast<TruncatedLanes*>(this)->swing(row, dot, false);
      return;
    }
    const Debt<Real> debt = owed();
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      kernel().open(row, slots_.line(i), slots_.stamp(), of_line(debt, i), false,
                    dot + i * slots_.size());
  }

  void predict(const double* dot, double scale, bool, double* p) const {
    table_.losses.predict(slots_.padded(), scale, dot, bias_.data(), p);
  }

  // The steepness of the loss is 1: see joins().
  void see(double squared_norm) { clock_.see(squared_norm, 1.0); }
  double reach(std::size_t lane, double squared_norm) const {
    return eta0_[slots_.slot(lane)] * clock_.reach(squared_norm);
  }
  // A step changes the intercept by at most |g| pace() rates()[slot], and the weights by at most
  // that times ||x||.
  double pace() const { return std::max(clock_.eta(), clock_.eta_bias()); }
  const double* rates() const { return eta0_.data(); }
  static constexpr double largest = 1e30;  // a float overflows at 3e38

  void close(const RowOfCells<Real>& row, const double* g, double scale) {
    std::uint64_t now = clock_.ledger().now();
    if (clock_.shrinks_before_step()) shrink(row), ++now;
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      kernel().close(
          row, slots_.line(i), now,
          {-clock_.eta(), scale, eta0_.data() + i * slots_.size(), g + i * slots_.size()});
    if (now != clock_.ledger().now()) stamp(row, now);
  }

  void finish(const double* g) {
    if (fit_intercept_)
      for (std::size_t s = 0; s < slots_.count(); ++s)
        bias_[s] -= clock_.eta_bias() * eta0_[s] * g[s];
    clock_.finish(0.0);
  }
  void next_pass() { clock_.next_pass(); }

  // ---- reading -------------------------------------------------------------------------------

  // Counts the nonzero weights of some cells, by slot; false: use read() for each cell.
  bool count(const RowOfCells<Real>& cells, bool, double* counts) const {
    if (shrink_ == Shrink::subgradient) return false;
    const Debt<Real> debt = owed();
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      kernel().count(cells, slots_.line(i), slots_.stamp(), of_line(debt, i), false,
                     counts + i * slots_.size());
    return true;
  }
  // The weights of a cell, by slot.
  void read(const Cell<Real>& cell, bool average, double* w) const {
    look(alone(cell), average, w);
  }
  bool dead(const Cell<Real>& cell) const {
    weights_.resize(slots_.padded());
    read(cell, false, weights_.data());
    return std::all_of(weights_.begin(),
                       weights_.begin() + static_cast<std::ptrdiff_t>(slots_.count()),
                       [](double w) { return w == 0.0; });
  }
  double intercept(std::size_t s, bool) const { return bias_[s]; }
  double rate(std::size_t s) const { return clock_.rate() * eta0_[s]; }
  std::string advice(double safe) const { return clock_.advice(safe); }
  bool valid(const Cell<Real>& cell) const {
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      if (stamp_at(slots_.stamp_of(cell, i)) > clock_.ledger().now()) return false;
    return true;
  }

  bool sweep_due() const { return clock_.sweep_due(); }
  void settle(const Cell<Real>& cell) {  // applies pending events; stamp 0, as the ledger restarts
    weights_.resize(slots_.padded());
    open(alone(cell), weights_.data());
    stamp(alone(cell), 0);
  }
  void begin_again() { clock_.reset_ledger(); }

  template <class Archive>
  void archive(Archive& io) {
    clock_.archive(io);
    io(bias_);
    if (bias_.size() != slots_.padded())
      throw std::invalid_argument("the state of the lanes is damaged");
  }

 private:
  static std::string exact(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%a", value);
    return text;
  }

  static Params unit(const Params& lane) {
    const bool shared = lane.number("l2") > 0 || lane.word("shrink") == "subgradient";
    return lane.with({{"eta0", shared ? lane.number("eta0") : 1.0}, {"gravity", 1.0}});
  }

  const TruncatedKernels<Real>& kernel() const {
    const Pay pay = pay_ == Pay::truncate && clock_.ledger().even() ? Pay::even : pay_;
    return table_.truncated[slots_.number()][slots_.inside()][static_cast<std::size_t>(pay)];
  }

  Debt<Real> owed() const {
    const Ledger& ledger = clock_.ledger();
    const std::uint64_t now = ledger.now();
    return {ledger.Qs(),
            ledger.Bs(),
            ledger.Q(),
            ledger.B(),
            now > 0 ? ledger.B(now - 1) : 1.0,
            ledger.even_amount(),
            now,
            pull_.data(),
            theta_.data(),
            false,
            l2_ > 0};
  }
  Debt<Real> of_line(Debt<Real> debt, std::size_t i) const {
    debt.pull += i * slots_.size(), debt.theta += i * slots_.size();
    debt.last = i + 1 == slots_.lines();
    return debt;
  }

  static Stamp stamp_at(const Real* place) {
    Stamp stamp;
    std::memcpy(&stamp, place, sizeof stamp);
    return stamp;
  }
  void stamp(const RowOfCells<Real>& row, std::uint64_t now) const {
    const auto stamp = static_cast<Stamp>(now);
    for (std::size_t i = 0; i < (slots_.inside() ? slots_.lines() : 1); ++i)
      for (std::size_t k = 0; k < row.n; ++k)
        std::memcpy(static_cast<void*>(slots_.stamp_of(row.cell(k), i)), &stamp, sizeof stamp);
  }

  // f(slot, stored weight, stamp) for every lane of a cell.
  template <class F>
  void each_lane(const Cell<Real>& cell, F&& f) const {
    for (std::size_t lane = 0; lane < slots_.lanes(); ++lane) {
      const std::size_t s = slots_.slot(lane), i = s / slots_.size();
      f(s, cell.numbers[slots_.line(i) + s % slots_.size()], stamp_at(slots_.stamp_of(cell, i)));
    }
  }

  // Applies pending events for the subgradient, whose weights oscillate around zero, lane by lane
  // (shrinkage/settlement.hpp).
  void swing(const RowOfCells<Real>& row, double* dot, bool writes) {
    std::fill_n(dot, slots_.padded(), 0.0);
    for (std::size_t k = 0; k < row.n; ++k)
      each_lane(row.cell(k), [&](std::size_t s, Real& w, Stamp e) {
        const double a = clock_.is_even() ? clock_.amount() * g_[s] : -1.0;
        const Settlement<false> settlement{clock_.ledger(), shrink_, 0.0, l2_, a, g_[s]};
        const auto paid = static_cast<Real>(settlement.settle(w, e).weight);
        dot[s] += static_cast<double>(paid) * static_cast<double>(row.x[k]);
        if (writes) w = paid;
      });
  }
  // Applies the subgradient's event of this step, before the step.
  void shrink(const RowOfCells<Real>& row) {
    for (std::size_t k = 0; k < row.n; ++k)
      each_lane(row.cell(k), [&](std::size_t s, Real& w, Stamp) {
        const Real a = static_cast<Real>(clock_.amount() * g_[s]);
        if (w != 0) w = (w - std::copysign(a, w)) * static_cast<Real>(clock_.factor());
      });
  }

  Slots slots_;
  const Table<Real>& table_;
  Clock clock_;
  Shrink shrink_;
  double l2_;
  bool fit_intercept_;
  Pay pay_;
  std::vector<double> eta0_, g_;    // per slot; eta0 in units of the clock's eta0
  std::vector<Real> pull_, theta_;  // eta0 g and the ceiling
  std::vector<double> bias_;
  mutable std::vector<double> weights_;  // of the current cell
};

}  // namespace thresher::lanes
