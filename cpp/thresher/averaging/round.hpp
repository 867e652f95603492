// A round of learning whose result is combined with that of others (src/thresher/distributed/modes/average.py).
//
// A learner begins a round from a model that others begin from too, and gives at its end, for each feature
// that it updated, numbers of which a mean makes sense, and how many updates there were. Then its cells are
// put back as they were: what comes next is the combined model, and in the same process another part of the
// rows may learn from the same beginning.
//
// A weight that had no update may have changed all the same, by gravity, or because a mean is over more
// steps. What it would be follows from where it began and from the clock, and so whoever has both can
// compute it: the `debt` of a round is its clock, with all that is owed. Where a sweep settles all
// cells in the middle of a round, the clock before it is kept as well.
//
// For this a rule has, besides what rule.hpp asks for:
//
//   shares                numbers a feature; 0 where the rule cannot be averaged
//   share(cell)           those numbers now, of the same meaning whatever the clock is
//   begun(numbers)        the cell at the beginning of a round, the same whatever the clock is
//   adopted(numbers)      a cell that shares these numbers now, in a learner that goes on alone
//   fades()               whether weights change without an update
//   bias_share(), adopt_bias(numbers)
//   begin_round(), go_alone(), archive_round(io)    where sums are kept in units of the steps before
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/stores/hashed.hpp"

namespace thresher {

template <class R>
class Round {
  using Cell = typename R::Cell;
  using Numbers = std::array<double, R::shares>;

 public:
  bool on() const { return journal_.has_value(); }

  void begin(R& rule) {
    if (on()) throw std::invalid_argument("a round has begun already");
    journal_.emplace(0), swept_.clear();
    rule.begin_again();  // all cells are as begun() makes them
    if constexpr (requires { rule.begin_round(); }) rule.begin_round();
  }

  // Before the step of a row: its cells are kept, and its updates counted.
  template <class Store, class Rows>
  void note(const Store& store, const Rows& rows) {
    const std::size_t n = rows.count();
    journal_->reserve(n, [](const Entry&) { return false; });
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < n; ++k) {
        const auto key = static_cast<std::uint64_t>(static_cast<std::int64_t>(keys[k]));
        keep(store, key).updates += rows.values()[k] != 0;
      }
    });
  }

  // Before a sweep writes all cells.
  template <class Store>
  void sweep(const Store& store, const R& rule) {
    std::vector<std::uint64_t> keys;
    store.each([&](std::uint64_t key, const Cell&) { keys.push_back(key); });
    for (const std::uint64_t key : keys) {
      journal_->reserve(1, [](const Entry&) { return false; });
      keep(store, key);
    }
    swept_.push_back(rule);
  }

  // What was updated; all cells are as they were at the beginning.
  template <class Store>
  SharedNumbers end(Store& store, const R& rule) {
    if (!on()) throw std::invalid_argument("no round has begun");
    std::vector<std::pair<std::uint64_t, Entry>> found;
    journal_->each([&](std::uint64_t key, const Entry& entry) { found.emplace_back(key, entry); });
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    SharedNumbers result;
    for (const auto& [key, entry] : found) {
      if (entry.updates > 0) {
        const Numbers numbers = rule.share(store.find(key));
        result.keys.push_back(key), result.updates.push_back(entry.updates);
        result.numbers.insert(result.numbers.end(), numbers.begin(), numbers.end());
      }
      store.put(key, entry.before);
    }
    journal_.reset();
    return result;
  }

  std::vector<std::byte> debt(const R& rule) const {
    if (!rule.fades()) return {};
    Saver save;
    save(std::uint64_t{swept_.size()});
    for (const R& before : swept_) archive(const_cast<R&>(before), save);
    archive(const_cast<R&>(rule), save);  // saving reads
    return save.take();
  }

  // What numbers at the beginning of a round have become at its end, where there was no update; without
  // a debt, as a cell keeps them.
  static void fade(R rule, std::span<const std::byte> debt, std::span<double> numbers) {
    std::vector<R> rules;
    if (!debt.empty()) {
      Restorer restore(debt);
      std::uint64_t swept = 0;
      restore(swept);
      for (std::uint64_t i = 0; i <= swept; ++i) {
        archive(rule, restore);
        rules.push_back(rule);
      }
      if (!restore.finished()) throw std::invalid_argument("the debt has bytes left over");
    } else {
      rules.push_back(std::move(rule));
    }
    std::size_t at = 0;
    each(numbers, [&](const Numbers& one) {
      Cell cell = rules.front().begun(one);
      for (std::size_t r = 0; r + 1 < rules.size(); ++r) cell = rules[r].settled(cell);
      for (const double number : rules.back().share(cell)) numbers[at++] = number;
    });
  }

  // f(numbers) of one feature after the other.
  template <class F>
  static void each(std::span<const double> numbers, F&& f) {
    if (numbers.size() % R::shares != 0)
      throw std::invalid_argument("not " + std::to_string(R::shares) + " numbers a feature");
    for (std::size_t i = 0; i < numbers.size(); i += R::shares) {
      Numbers one;
      std::copy_n(numbers.data() + i, R::shares, one.begin());
      f(one);
    }
  }

 private:
  struct Entry {
    Cell before;
    std::uint32_t kept = 0, updates = 0;
    bool operator==(const Entry&) const = default;
  };

  template <class Store>
  Entry& keep(const Store& store, std::uint64_t key) {
    Entry& entry = journal_->claim(key);
    if (!entry.kept) entry.before = store.find(key), entry.kept = 1;
    return entry;
  }

  template <class Archive>
  static void archive(R& rule, Archive& io) {
    rule.archive(io);
    if constexpr (requires { rule.archive_round(io); }) rule.archive_round(io);
  }

  std::optional<HashedStore<Entry>> journal_;  // while a round is on
  std::vector<R> swept_;                       // the clock before each sweep
};

}  // namespace thresher
