// A round of learning whose result is averaged with the results of other learners
// (src/thresher/distributed/modes/average.py).
//
// All learners start a round from the same model. At the end a learner returns, for each feature
// that it updated, numbers whose mean is meaningful, and the count of updates. Then it resets its
// cells to the start of the round: the averaged model replaces them, or the same process learns
// another part of the rows from the same start.
//
// A weight without an update can change too: by gravity, or because a mean is over more steps. Its
// new value can be computed from its value at the start and from `pending`, the clock at the end
// with its pending events. If a sweep applied the events of all cells in the middle of a round,
// `pending` also holds the clock before the sweep.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "thresher/averaging/journal.hpp"
#include "thresher/core/archive.hpp"
#include "thresher/core/cells.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

// What a rule needs to learn in rounds. Rules that keep sums over steps also have begin_round(),
// end_rounds() and archive_round(io): see averaging/round_unit.hpp.
template <class R>
concept RoundRule =
    Rule<R> && requires(R rule, const R& fixed, const typename R::Cell& cell,
                        const typename R::Numbers& numbers, const typename R::InterceptNumbers& b) {
      // How many numbers of a feature are averaged.
      { R::numbers_per_feature } -> std::convertible_to<std::size_t>;
      // The current values of these numbers. Their meaning does not depend on the clock.
      { fixed.numbers_of(cell) } -> std::same_as<typename R::Numbers>;
      // The cell at the start of a round. It does not depend on the clock.
      { fixed.cell_at_start(numbers) } -> std::same_as<typename R::Cell>;
      // A cell that has these numbers now, in a learner that continues without rounds.
      { fixed.cell_now(numbers) } -> std::same_as<typename R::Cell>;
      { fixed.changes_without_update() } -> std::same_as<bool>;
      { fixed.intercept_numbers() } -> std::same_as<typename R::InterceptNumbers>;
      { rule.set_intercept_numbers(b) };
    };

template <class R>  // a RoundRule
class Round {
  using Cell = typename R::Cell;
  using Numbers = typename R::Numbers;

 public:
  bool on() const { return journal_.has_value(); }  // between begin() and end()

  [[gnu::cold]] void begin(R& rule) {
    if (on()) throw std::invalid_argument("a round is already in progress");
    journal_.emplace(sizeof(Cell)), swept_.clear();
    // Cells are as cell_at_start() makes them: no event is pending.
    if constexpr (LedgerRule<R>) rule.reset_ledger();
    if constexpr (requires { rule.begin_round(); }) rule.begin_round();
  }

  // Saves the cells of a row, and counts its updates. Called before the step of the row.
  template <class Store, class Rows>
  [[gnu::noinline]] void note(const Store& store, const Rows& rows) {
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows.count(); ++k) {
        const auto key = static_cast<std::uint64_t>(static_cast<std::int64_t>(keys[k]));
        save_cell(store, key, rows.values()[k] != 0);
      }
    });
  }

  // Saves all cells and the clock. Called before a sweep, which writes all cells.
  [[gnu::cold]] void sweep(const Cells<Cell>& cells, const R& rule) {
    std::vector<std::uint64_t> keys;
    cells.each([&](std::uint64_t key, const Cell&) { keys.push_back(key); });
    for (const std::uint64_t key : keys) save_cell(cells, key, false);
    swept_.push_back(rule);
  }

  // Returns what was updated, and resets all cells to the start of the round.
  [[gnu::cold]] RoundResult end(Cells<Cell>& cells, const R& rule) {
    if (!on()) throw std::invalid_argument("no round is in progress");
    RoundResult result;
    for (const Journal::Saved& saved : journal_->sorted()) {
      if (saved.updates > 0) {
        const Numbers numbers = rule.numbers_of(cells.find(saved.key));
        result.keys.push_back(saved.key), result.updates.push_back(saved.updates);
        for (const double number : numbers) result.numbers.push_back(number);
      }
      Cell before;
      std::memcpy(static_cast<void*>(&before), saved.cell, sizeof before);
      cells.put(saved.key, before);
    }
    journal_.reset();
    return result;
  }

  [[gnu::cold]] std::vector<std::byte> pending(const R& rule) const {
    if (!rule.changes_without_update()) return {};
    Saver save;
    save(std::uint64_t{swept_.size()});
    for (const R& before : swept_) archive(const_cast<R&>(before), save);
    archive(const_cast<R&>(rule), save);  // a Saver only reads
    return save.take();
  }

  // Changes numbers at the start of a round to those at its end, for features without an update.
  // Without pending bytes it only rounds the numbers as a cell rounds them.
  [[gnu::cold]] static void apply_pending(R rule, std::span<const std::byte> pending,
                                          std::span<double> numbers) {
    std::vector<R> rules;
    if (!pending.empty()) {
      Restorer restore(pending);
      std::uint64_t swept = 0;
      restore(swept);
      for (std::uint64_t i = 0; i <= swept; ++i) {
        archive(rule, restore);
        rules.push_back(rule);
      }
      if (!restore.finished())
        throw std::invalid_argument("the pending events have bytes left over");
    } else {
      rules.push_back(std::move(rule));
    }
    std::size_t at = 0;
    each(numbers, [&](const Numbers& one) {
      Cell cell = rules.front().cell_at_start(one);
      if constexpr (LedgerRule<R>)
        for (std::size_t r = 0; r + 1 < rules.size(); ++r) cell = rules[r].settled(cell);
      for (const double number : rules.back().numbers_of(cell)) numbers[at++] = number;
    });
  }

  // Calls f(numbers) for one feature after the other.
  template <class F>
  static void each(std::span<const double> numbers, F&& f) {
    if (numbers.size() % R::numbers_per_feature != 0)
      throw std::invalid_argument("the count of numbers must be a multiple of " +
                                  std::to_string(R::numbers_per_feature));
    for (std::size_t i = 0; i < numbers.size(); i += R::numbers_per_feature) {
      Numbers one;
      std::copy_n(numbers.data() + i, R::numbers_per_feature, one.begin());
      f(one);
    }
  }

 private:
  template <class Store>
  void save_cell(const Store& store, std::uint64_t key, bool updated) {
    if (std::byte* const to = journal_->add(key, updated)) {
      const Cell cell = store.find(key);
      std::memcpy(to, &cell, sizeof cell);
    }
  }

  template <class Archive>
  static void archive(R& rule, Archive& io) {
    rule.archive(io);
    if constexpr (requires { rule.archive_round(io); }) rule.archive_round(io);
  }

  std::optional<Journal> journal_;  // cells at the start of the round
  std::vector<R> swept_;            // the clock before each sweep
};

}  // namespace thresher
