// Lanes of a rule R with two numbers per coordinate: FTRL, AdaGrad. The arithmetic is R::Arithmetic
// (rules/coordinate_steps.hpp). A line has the first numbers of its lanes, then the second ones.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "thresher/lanes/group.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/unstamped.hpp"
#include "thresher/rules/coordinate_steps.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher::lanes {

template <class R>
class PairLanes : public PairedLanes<R> {
  using Base = PairedLanes<R>;
  using Base::rules_, Base::slots_, Base::table_;
  using A = typename R::Arithmetic;

 public:
  using Real = typename R::Real;

  static bool joins(const Params&) { return true; }
  static std::string common(const Params& params) {  // all lanes of a group sweep at once
    return std::to_string(params.number("sweep_events", 0.0));
  }

  PairLanes(const std::vector<const Params*>& lanes, const Table<Real>& table)
      : Base(lanes, table) {
    set_constants();
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
  static constexpr double largest = 1e15;  // as in R::fits: squares are summed

  void close(const RowOfCells<Real>& row, const double* g, double scale) {
    for (std::size_t s = 0; s < slots_.count(); ++s) slope_[s] = static_cast<Real>(scale * g[s]);
    for (std::size_t i = 0; i < slots_.lines(); ++i) {
      const std::size_t first = i * slots_.size();
      kernels().close(row, slots_.line(i), constants_.data() + first, slots_.padded(),
                      slope_.data() + first, w_.data() + first * row.n);
    }
  }
  void finish(const double* g) {
    Base::finish(g);
    if constexpr (LedgerRule<R>) set_constants();  // they depend on the clock
  }
  void read(const Cell<Real>& cell, bool average, double* w) const {
    look(alone(cell), average, w);
  }
  bool count(const RowOfCells<Real>& cells, bool, double* counts) const {
    for (std::size_t i = 0; i < slots_.lines(); ++i)
      kernels().count(cells, slots_.line(i), constants_.data() + i * slots_.size(), slots_.padded(),
                      counts + i * slots_.size());
    return true;
  }

  bool valid(const Cell<Real>& cell) const {
    for (std::size_t lane = 0; lane < rules_.size(); ++lane) {
      const Real* first = first_of(cell, lane);
      if (!rules_[lane].valid({*first, first[slots_.size()]})) return false;
    }
    return true;
  }

  // All lanes of a group have made the same number of steps.
  bool sweep_due() const {
    if constexpr (LedgerRule<R>) return rules_[0].sweep_due();
    else return false;
  }
  void settle(const Cell<Real>& cell) {
    if constexpr (LedgerRule<R>)
      for (std::size_t lane = 0; lane < rules_.size(); ++lane) {
        Real* first = first_of(cell, lane);
        Real* second = first + slots_.size();
        const typename R::Cell settled = rules_[lane].settled({*first, *second});
        *first = settled.first(), *second = settled.second();
      }
  }
  void begin_again() {
    if constexpr (LedgerRule<R>) {
      for (R& rule : rules_) rule.reset_ledger();
      set_constants();
    }
  }

  template <class Archive>
  void archive(Archive& io) {
    Base::archive(io);
    set_constants();
  }

 private:
  template <std::size_t... I>
  static constexpr std::size_t number_in(std::index_sequence<I...>) {
    return (0 + ... + (std::is_same_v<A, std::tuple_element_t<I, PairArithmetics>> ? I : 0));
  }
  static constexpr std::size_t number =
      number_in(std::make_index_sequence<std::tuple_size_v<PairArithmetics>>{});

  const PairKernels<Real>& kernels() const { return table_.pairs[number][slots_.number()]; }

  Real* first_of(const Cell<Real>& cell, std::size_t lane) const {
    const std::size_t s = slots_.slot(lane);
    return cell.numbers + slots_.line(s / slots_.size()) + s % slots_.size();
  }

  void open(const RowOfCells<Real>& row, std::size_t i, Real* w, double* dot) const {
    const std::size_t first = i * slots_.size();
    kernels().open(row, slots_.line(i), constants_.data() + first, slots_.padded(), w, dot + first);
  }

  // constants_[i * padded + slot] is constant i of a slot.
  void set_constants() {
    constants_.resize(constants_of<A> * slots_.padded());
    for (std::size_t i = 0; i < constants_of<A>; ++i)
      std::fill_n(constants_.begin() + static_cast<std::ptrdiff_t>(i * slots_.padded()),
                  slots_.padded(), static_cast<Real>(A::of_no_lane[i]));
    for (std::size_t lane = 0; lane < rules_.size(); ++lane) {
      const auto own = rules_[lane].constants();
      for (std::size_t i = 0; i < own.size(); ++i)
        constants_[i * slots_.padded() + slots_.slot(lane)] = own[i];
    }
  }

  std::vector<Real> constants_;
  std::vector<Real> slope_, w_;  // of the current row
};

}  // namespace thresher::lanes
