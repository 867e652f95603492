// RuleLearner<rule, store>: a BasicRuleLearner with the abilities of its rule, and the loops over
// rows.
//
// Each ability is a class that adds one interface of core/learner.hpp to a learner; code for
// abilities that the rule does not have is not compiled. Code that runs for each row or coordinate
// is compiled for each rule and store.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "thresher/averaging/in_rounds.hpp"
#include "thresher/core/basic_rule_learner.hpp"
#include "thresher/core/cells.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/core/repeats.hpp"
#include "thresher/core/row_step.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/loss/losses.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

template <class Base>
class Starting : public Base, public StartsFromWeights {
 public:
  using Base::Base;

  void start_from(std::span<const std::uint64_t> keys, std::span<const double> values,
                  double intercept) override {
    this->cells().reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
      this->cells().put(keys[i], this->rule_.cell_with_weight(values[i]));
    this->rule_.set_intercept(intercept);
  }
};

template <class Base>
class Centring : public Base, public Centrable {
 public:
  using Base::Base;

  void center(std::span<const std::uint64_t> keys, std::span<const double> means) override {
    this->cells().reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
      this->cells().put(keys[i], this->rule_.cell_with_mean(means[i]));
  }
};

template <class Base>
class Steered : public Base, public Steerable {
 public:
  using Base::Base;

  void steer() override { this->steer_rule(); }
};

template <class Base>
class Pausing : public Base, public Pausable {
 public:
  using Base::Base;

  void pause_at(std::int64_t nonzeros) override { this->rule_.pause_at(nonzeros); }
  bool paused() const override { return this->rule_.pausing(); }
};

// Ability<Base> if the rule has the ability, else Base itself.
template <bool Has, template <class> class Ability, class Base>
using With = std::conditional_t<Has, Ability<Base>, Base>;

template <class R>
using WithAbilities = With<
    StartingRule<R>, Starting,
    With<CentringRule<R>, Centring,
         With<SteeringRule<R>, Steered,
              With<PausingRule<R>, Pausing, With<RoundRule<R>, InRounds, BasicRuleLearner<R>>>>>>;

template <Rule R, template <class> class Store>
class RuleLearner final : public WithAbilities<R> {
  using Base = WithAbilities<R>;
  using Real = typename R::Real;
  using Cell = typename R::Cell;
  using Places = typename Store<Cell>::Places;
  using Base::in_round, Base::loss_, Base::report, Base::round_, Base::rule_, Base::tally_;

 public:
  RuleLearner(std::uint64_t width, const Loss& loss, const Params& params)
      : Base(loss, params), cells_(width) {}

  std::int64_t learn(const Batch& batch, const Visit& visit) override {
    std::int64_t learned = 0;
    Store<Cell>& store = cells_.store;
    Rows<Real> rows(batch, visit, store.width());
    const Dead dead{*this};
    while (rows.next()) {
      if constexpr (PausingRule<R>) rule_.begin_row();
      const Repeats repeats = repeats_of(rows.weight());
      Outcome first{};  // before the first step
      for (std::int64_t i = 0; i == 0 || i < repeats.count; ++i) {
        const std::size_t n = rows.count();
        row_.resize((n + pack_size - 1) / pack_size * pack_size);
        if constexpr (requires { row_.count; }) row_.count = n;
        store.reserve(n, dead);
        const double scale = row_scale(loss_, rows);
        const Inner inner = open_row(rule_, store, rows, row_, places_);
        const double p = rule_.prediction(row_, scale * inner.dot);
        if (!std::isfinite(p + inner.squares)) report(batch, rows);
        rows.check_target();
        const double y = rows.label(), norm = scale * scale * inner.squares;
        const Outcome outcome = loss_(p, y);
        double g = repeats.weight * outcome.slope;
        rows.check_next_row();  // overlaps with the latency of the loss
        if (i == 0) first = outcome;
        if (repeats.count == 0) [[unlikely]]
          break;
        rule_.see(norm, outcome.steepness);
        if (repeats.weight > 1.0) [[unlikely]]
          g = loss_.long_slope(p, y, repeats.weight, rule_.reach(norm));
        if (g != 0.0) {
          // The intercept's x is 1, so the gradient is at least g.
          if (!rule_.fits(g * std::max(1.0, scale * std::sqrt(inner.squares)))) report(batch, rows);
          if constexpr (RoundRule<R>)
            if (in_round()) [[unlikely]]
              round_.note(store, rows);
          close_row(rule_, store, rows, row_, places_, scale * g);
          if constexpr (requires { rule_.count_updated_row(0); })
            rule_.count_updated_row(rows.row());
        }
        rule_.finish(g);
        if constexpr (LedgerRule<R>)
          if (rule_.sweep_due()) [[unlikely]]
            sweep(dead);
        if constexpr (SteeringRule<R>)
          if (rule_.steering_due()) this->steer_rule();
      }
      tally_.add(first, rows.weight(), rows.unit());
      ++learned;
      if constexpr (PausingRule<R>)
        if (rule_.pausing()) break;
    }
    return learned;
  }

  void widen(std::uint64_t width) override { cells_.store.widen(width); }

  void predict(const Batch& batch, const Visit& visit, bool average, double* out) const override {
    const Store<Cell>& store = cells_.store;
    Rows<Real> rows(batch, visit, store.width());
    std::vector<Cell> staged;
    const double b = this->intercept(average);
    while (rows.next()) {
      const std::size_t n = rows.count();
      if (staged.size() < n) staged.resize(2 * n);
      rows.with_keys([&](const auto* keys) {
        const auto [later, fetched] = rows.template ahead<std::remove_cvref_t<decltype(*keys)>>(n);
        store.copy(keys, n, later, fetched, staged.data());
      });
      const double p =
          row_scale(loss_, rows) * this->dot(staged.data(), rows.values(), n, average) + b;
      if (!std::isfinite(p)) {
        rows.check_values();
        throw DataError(rows.row(), "the prediction overflows");
      }
      *out++ = p;
    }
  }

  std::int64_t nonzeros(bool average) const override {
    const Store<Cell>& store = cells_.store;
    if constexpr (requires { rule_.nonzeros_among(store.data(), std::size_t{0}); })
      if (const Cell* const all = store.data()) return rule_.nonzeros_among(all, store.width());
    if constexpr (requires { rule_.zero_test(); })
      return store.count([zero = rule_.zero_test()](const Cell& cell) { return !zero(cell); });
    else
      return average ? store.count([this](const Cell& cell) { return rule_.average(cell) != 0.0; })
                     : store.count([this](const Cell& cell) { return rule_.weight(cell) != 0.0; });
  }
  std::size_t bytes() const override { return cells_.store.bytes(); }

 protected:
  Cells<Cell>& cells() override { return cells_; }
  const Cells<Cell>& cells() const override { return cells_; }

 private:
  // Whether a cell can be dropped.
  struct Dead {
    const RuleLearner& learner;

    // end_round() resets every cell that was not zero at the start of the round: keep these.
    bool operator()(const Cell& cell) const {
      return learner.in_round() ? cell == Cell{} : learner.rule_.dead(cell);
    }

    // The same for many cells at once; valid until the next step.
    auto now() const
      requires requires(const R& rule) { rule.dead_test(); }
    {
      return [test = learner.rule_.dead_test(), in_round = learner.in_round()](const Cell& cell) {
        return in_round ? cell == Cell{} : test(cell);
      };
    }
  };

  // Applies all pending events to all cells, so that the ledger can start again.
  [[gnu::noinline]] void sweep(const Dead& dead) {
    if constexpr (CertifyingRule<R>) rule_.charge(this->pending_pulls());
    if constexpr (RoundRule<R>)
      if (in_round()) round_.sweep(cells_, rule_);
    cells_.store.sweep([this](const Cell& cell) { return rule_.settled(cell); });
    rule_.reset_ledger();
    cells_.store.drop(dead);
  }

  CellsIn<Cell, Store> cells_;
  typename R::Row row_;  // staging arrays, kept between rows
  Places places_;
};

}  // namespace thresher
