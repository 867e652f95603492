// Weights that apply shrink events late: the cells of truncated gradient.
//
// A cell holds a weight and the number of the last event that was applied to it. All functions here
// answer as if every event had been applied at once to all weights (shrinkage/settlement.hpp). With
// `Averaged`, a cell also has the sum of its weight over all iterates.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "thresher/averaging/round_unit.hpp"
#include "thresher/core/cell.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/shrinkage/count_even.hpp"
#include "thresher/shrinkage/even_debt.hpp"
#include "thresher/shrinkage/event_clock.hpp"
#include "thresher/shrinkage/ledger.hpp"
#include "thresher/shrinkage/settlement.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real, bool Averaged>
class LazyWeights {
 public:
  using Stamp = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;

  using Weight = Pair<Real, Stamp>;  // w_j, and the last event that was applied to it
  struct Summed {
    Weight weight;
    double sum = 0.0;  // of the iterates so far, minus account(w_j): see Settlement::account
    bool operator==(const Summed&) const = default;
  };
  using Cell = std::conditional_t<Averaged, Summed, Weight>;

  explicit LazyWeights(const Params& params)
      : clock_(params, Averaged, least_B),
        theta_(params.number("ceiling")),
        plain_l1_(!Averaged && clock_.shrink() == Shrink::truncate && clock_.l2() == 0 &&
                  std::isinf(theta_)) {}

  // ---- reading -------------------------------------------------------------------------------

  double weight(const Cell& cell) const {
    const auto [w, e] = unpack(cell);
    if (plain_l1_) return soft(w, static_cast<Real>(ledger().Q() - ledger().Q(e)));
    return static_cast<Real>(settle(w, e).weight);
  }

  double average(const Cell& cell) const {
    if constexpr (Averaged) {
      return clock_.t() == 0
                 ? 0.0
                 : sum_of_iterates(cell) * unit_.steps / static_cast<double>(clock_.t());
    } else {
      return weight(cell);
    }
  }

  // The number of nonzero weights in an array of cells.
  std::int64_t nonzeros_among(const Cell* cells, std::size_t n) const
    requires(!Averaged)
  {
    std::size_t k = 0;
    std::int64_t found = 0;
    if (plain_l1_ && ledger().even()) {
      if constexpr (sizeof(Real) == 4)
        found = count_even(cells, n, k, ledger().even_amount(), ledger().Q());
      found += count_packs(
          cells, n, k,
          [a = ledger().even_amount(), Q_now = ledger().Q()](const Four<Cell>& four)
              __attribute__((always_inline)) { return even_debt<Real>(half<1>(four), a, Q_now); });
    } else if (plain_l1_) {
      found = count_packs(
          cells, n, k,
          [Q = ledger().Qs(), Q_now = ledger().Q()](const Four<Cell>& four)
              __attribute__((always_inline)) {
                return Pack<Real>::of([&](std::size_t i) __attribute__((always_inline)) {
                  return static_cast<Real>(Q_now - Q[four[i].second()]);
                });
              });
    }
    for (; k < n; ++k) found += weight(cells[k]) != 0.0;
    return found;
  }

  // Tests whether the weight of a cell is 0. A copy of what it needs stays in registers; valid until
  // the next step.
  auto zero_test() const
    requires(!Averaged)
  {
    return [this, plain = plain_l1_, Q = ledger().Qs(), Q_now = ledger().Q()](const Cell& cell)
               __attribute__((always_inline)) {
                 if (!plain) return weight(cell) == 0.0;
                 return std::fabs(cell.first()) <= static_cast<Real>(Q_now - Q[cell.second()]);
               };
  }

  bool valid(const Cell& cell) const { return unpack(cell).second <= ledger().now(); }

  // ---- sweeps --------------------------------------------------------------------------------

  bool sweep_due() const { return ledger().full(); }
  void reset_ledger() { clock_.reset_ledger(); }

  // The cell with all events applied, for a ledger that starts again.
  Cell settled(const Cell& cell) const {
    const Weight now(static_cast<Real>(weight(cell)), 0);
    if constexpr (Averaged) return {now, sum_of_iterates(cell)};
    else return now;
  }

  // A cell whose weight is w now.
  Cell cell_with_weight(double w) const {
    const Weight now(static_cast<Real>(w), static_cast<Stamp>(ledger().now()));
    if constexpr (Averaged) return {now, -account(now.first(), ledger().B()) * unit_.inverse};
    else return now;
  }

  // ---- the clock, also for lanes (lanes/truncated_lanes.hpp) ---------------------------------

  const Ledger& ledger() const { return clock_.ledger(); }
  double eta() const { return clock_.eta(); }
  double eta_bias() const { return clock_.eta_bias(); }
  double amount() const { return clock_.amount(); }
  double factor() const { return clock_.factor(); }
  bool shrinks_before_step() const { return clock_.shrinks_before_step(); }
  bool is_even() const { return clock_.is_even(); }

  // ---- rounds: {w}, or {w, mean of its iterates} ---------------------------------------------

  static constexpr std::size_t numbers_per_feature = Averaged ? 2 : 1;
  using Numbers = std::array<double, numbers_per_feature>;

  bool changes_without_update() const { return Averaged || clock_.has_events(); }
  Numbers numbers_of(const Cell& cell) const {
    if constexpr (Averaged)
      return {weight(cell), sum_of_iterates(cell) * unit_.steps / clock_.steps()};
    else return {weight(cell)};
  }
  Cell cell_at_start(const Numbers& numbers) const {
    const Weight weight(static_cast<Real>(numbers[0]), 0);
    if constexpr (Averaged) return {weight, numbers[1]};
    else return weight;
  }
  Cell cell_now(const Numbers& numbers) const {
    Cell cell = cell_with_weight(numbers[0]);
    if constexpr (Averaged) cell.sum += numbers[1] * clock_.steps() * unit_.inverse;
    return cell;
  }
  void begin_round() { unit_.begin(clock_.steps()); }
  void end_rounds() { unit_ = {}; }
  template <class Archive>
  void archive_round(Archive& io) {
    unit_.archive(io);
  }

 protected:
  static std::pair<Real, Stamp> unpack(const Cell& cell) {
    if constexpr (Averaged) return {cell.weight.first(), cell.weight.second()};
    else return {cell.first(), cell.second()};
  }

  double sum_of_iterates(const Summed& cell) const {
    return cell.sum + settle(cell.weight.first(), cell.weight.second()).account * unit_.inverse;
  }

  Settlement<Averaged> settlement() const {
    return {ledger(), clock_.shrink(), theta_, clock_.l2(), is_even() ? amount() : -1.0};
  }
  double account(double v, double B) const { return settlement().account(v, B); }
  auto settle(double v, std::uint64_t e) const { return settlement().settle(v, e); }

  EventClock clock_;
  double theta_;    // ceiling
  bool plain_l1_;   // truncation without ceiling, l2 and averages
  RoundUnit unit_;  // of the sums in cells

 private:
  // Counts the weights that are larger than debt(cells), four at a time; k becomes the number of
  // cells done.
  template <class Debt>
  static std::int64_t count_packs(const Cell* cells, std::size_t n, std::size_t& k,
                                  const Debt& debt) {
    constexpr std::size_t block = 4096;
    std::int64_t found = 0;
    for (; k + block <= n; k += block) {
      auto count = Pack<Whole<Real>>::all(0);
      for (std::size_t i = k; i < k + block; i += pack_size) {
        const Four<Cell> four{cells[i], cells[i + 1], cells[i + 2], cells[i + 3]};
        count += nonzero(soft(half<0>(four), debt(four)));
      }
      for (std::size_t i = 0; i < pack_size; ++i) found += count[i];
    }
    return found;
  }

  // l2 makes B smaller. A sweep happens long before 1 / B overflows. With averages, it happens
  // before B is so small that adding it to the sum of B would change nothing, in the precision of a
  // cell.
  static constexpr double least_B = !Averaged ? 1e-100 : sizeof(Real) == 4 ? 1e-8 : 1e-4;
};

}  // namespace thresher
