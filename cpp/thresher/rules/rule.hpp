// What a rule is. A rule owns the state of one coordinate, its Cell (all bytes zero: never seen),
// and the state that all cells share, its clock. A learner (core/basic_rule_learner.hpp) calls it
// for a row:
//
//   with_opener(row, use)     calls use(open). open(k, cells, x) gets the cells of features k to
//                             k + 3 of the row, and their values. It applies pending events, keeps
//                             in `row` what the step needs, and returns the four terms of the inner
//                             product. After the end of the row the last cell is repeated: x = 0
//   prediction(row, dot)      returns the raw prediction p
//   see(norm, steepness)      gets the squared norm of the row and the steepness of its loss
//                             (Outcome), before the step
//   reach(norm)               returns how far a gradient of 1 can move the prediction, for steps of
//                             weight > 1 (Loss::long_slope); 0 if the rule itself limits its steps
//   with_closer(row, g, use)  calls use(close). close(k, x, cells) makes the step for the loss
//                             gradient g * x: it sets the four new cells
//   finish(g)                 makes the step of the intercept and advances the clock
//
// open and close are made once per row, and contain only what the rule does in that row. They are
// inlined between the memory accesses of the store. If g = 0, only finish is called: no cell
// changes.
//
// `weight` and `average` read a cell as it is now, with all pending events applied, and write
// nothing: reading never changes a model.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "thresher/core/pack.hpp"
#include "thresher/rules/params.hpp"

namespace thresher {

template <class R>
concept Rule = requires(R rule, const R& fixed, typename R::Row& row, const typename R::Cell& cell,
                        std::size_t n, double number) {
  { row.resize(n) };
  {
    fixed.with_opener(row, [](const auto&) {})
  };
  { rule.prediction(row, number) } -> std::same_as<double>;
  { rule.see(number, number) };
  { fixed.reach(number) } -> std::same_as<double>;
  {
    rule.with_closer(row, number, [](const auto&) {})
  };
  { rule.finish(number) };
  { rule.next_pass() };
  // Whether all numbers of a cell stay finite after a gradient of this norm.
  { fixed.fits(number) } -> std::same_as<bool>;
  { fixed.weight(cell) } -> std::same_as<double>;
  { fixed.average(cell) } -> std::same_as<double>;
  { fixed.intercept() } -> std::same_as<double>;
  { fixed.average_intercept() } -> std::same_as<double>;
  // Whether the clock allows this cell: a check of restored states.
  { fixed.valid(cell) } -> std::same_as<bool>;
  // Whether the cell can be dropped: it has the same effect as one that was never seen.
  { fixed.dead(cell) } -> std::same_as<bool>;
  { fixed.rate() } -> std::same_as<double>;               // of the last step
  { fixed.advice(number) } -> std::same_as<std::string>;  // against divergence, with a safe rate
};

// ---- what only some rules have -----------------------------------------------------------------
//
// `facts()` returns numbers that only this rule keeps, by name. `count_updated_row(row)` is called
// for each row that made an update. Learning in rounds: see RoundRule in averaging/round.hpp.

// Writes shrink events in a ledger (shrinkage/ledger.hpp). When the ledger is full, a sweep sets
// every cell to settled(cell), where all events are applied, and the ledger starts again. The step
// at which this happens depends on the clock alone.
template <class R>
concept LedgerRule = Rule<R> && requires(R rule, const R& fixed, const typename R::Cell& cell) {
  { fixed.sweep_due() } -> std::same_as<bool>;
  { fixed.settled(cell) } -> std::same_as<typename R::Cell>;
  { rule.reset_ledger() };
};

// Can start from given weights.
template <class R>
concept StartingRule = Rule<R> && requires(R rule, const R& fixed, double number) {
  { fixed.cell_with_weight(number) } -> std::same_as<typename R::Cell>;
  { rule.set_intercept(number) };
};

// Centres the rows: a cell holds the mean of its feature.
template <class R>
concept CentringRule = Rule<R> && requires(R rule, double mean) {
  { rule.cell_with_mean(mean) } -> std::same_as<typename R::Cell>;
};

// Sets its penalty for a wanted number of nonzero weights; steer(each) reads all cells.
template <class R>
concept SteeringRule = Rule<R> && requires(R rule, const R& fixed) {
  { fixed.steering_due() } -> std::same_as<bool>;
  {
    rule.steer([](auto&&) {})
  };
};

// Stops learning after a row that leaves a given number of nonzero weights. A row is learned with
// all its steps (core/repeats.hpp) before the rule pauses.
template <class R>
concept PausingRule = Rule<R> && requires(R rule, const R& fixed, std::int64_t nonzeros) {
  { rule.pause_at(nonzeros) };
  { rule.begin_row() };
  { fixed.pausing() } -> std::same_as<bool>;
};

// Keeps the sums of the regret certificate (rules/regret_certificate.hpp). with_closer adds the
// pulls of the cells that it writes; before a sweep, the learner adds those of all cells by
// charge(); facts(pending) adds those that are still pending.
template <class R>
concept CertifyingRule = Rule<R> && requires(R rule, const R& fixed, const typename R::Cell& cell) {
  { fixed.certifies() } -> std::same_as<bool>;
  { fixed.pulls(cell) } -> std::same_as<double>;
  { rule.charge(0.0) };
  { fixed.facts(0.0) } -> std::same_as<std::map<std::string, double>>;
};

}  // namespace thresher
