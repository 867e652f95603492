// The one training loop, and the one virtual interface the rest of the world sees.
//
// A call is made once a batch, so it may be virtual; what happens once a row or a coordinate is
// compiled into RuleLearner<rule, store>.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "archive.hpp"
#include "batch.hpp"
#include "error.hpp"
#include "loss.hpp"
#include "pack.hpp"
#include "round.hpp"
#include "rows.hpp"
#include "rules/rule.hpp"
#include "safe_rate.hpp"
#include "tally.hpp"

namespace thresher {

struct SparseWeights {
  std::vector<std::uint64_t> keys;  // increasing
  std::vector<double> values;       // none is zero
};

class Learner {
 public:
  virtual ~Learner() = default;

  // For callers with threads: learning and restoring change a learner, everything else reads it. Who
  // waits for `mutex` holds `gate`, so that readers in a queue do not keep a writer out for ever.
  mutable std::mutex gate;
  mutable std::shared_mutex mutex;

  // One step for every row of the visit, in its order; returns how many were made: fewer than asked
  // for where the rule pauses (pause_at). An error names the row; the rows before it have been
  // learned, that row has not.
  virtual std::int64_t learn(const Batch& batch, const Visit& visit) = 0;
  virtual void next_pass() = 0;

  // Takes feature numbers up to a larger width from now on.
  virtual void widen(std::uint64_t width) = 0;

  // All that follows reads, and changes nothing. `out` has a place for each row of the visit. `average` asks for the mean of the iterates where the
  // rule keeps it; other rules answer with their last weights.
  virtual void predict(const Batch& batch, const Visit& visit, bool average, double* out) const = 0;
  virtual SparseWeights weights(bool average) const = 0;
  virtual std::int64_t nonzeros(bool average) const = 0;
  virtual double intercept(bool average) const = 0;
  virtual const Tally& tally() const = 0;
  virtual double rate() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual std::map<std::string, double> facts() const = 0;  // numbers only this rule keeps

  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;

  // Before the first step: weights to start from, or the mean of the rows for centring.
  virtual void plant(std::span<const std::uint64_t> keys, std::span<const double> values,
                     double intercept) = 0;
  virtual void center(std::span<const std::uint64_t> keys, std::span<const double> means) = 0;

  // Sets gravity so that the number of nonzero weights comes to what was asked for, now.
  virtual void steer() = 0;

  // Learning pauses when so many weights are not zero; it did so after the last step.
  virtual void pause_at(std::int64_t nonzeros) = 0;
  virtual bool paused() const = 0;

  // ---- learning in rounds, whose results are combined with those of others; see round.hpp -------

  virtual std::size_t shares() const = 0;  // numbers a feature

  // The numbers that are not of a feature: small, and nothing is owed in it. `set_clock` goes with cells as
  // they are at the beginning of a round.
  virtual std::vector<std::byte> clock() const = 0;
  virtual void set_clock(std::span<const std::byte> clock) = 0;

  // From here on updates are counted. The end gives what was updated, and puts all cells back; the clock
  // stays. The debt is of the round that has ended.
  virtual void begin_round() = 0;
  virtual SharedNumbers end_round() = 0;
  virtual std::vector<std::byte> debt() const = 0;
  virtual void fade(std::span<const std::byte> debt, std::span<double> numbers) const = 0;

  // Between two rounds: the combined model.
  virtual void adopt(std::span<const std::uint64_t> keys, std::span<const double> numbers) = 0;
  virtual std::vector<double> bias_share() const = 0;
  virtual void adopt_bias(std::span<const double> numbers) = 0;

  // How many of features with these numbers have a weight that is not zero, at a clock.
  virtual std::int64_t nonzeros_at(std::span<const std::byte> clock,
                                   std::span<const double> numbers, bool average) const = 0;

  // After the last round: the whole model, in a learner that goes on alone from its clock.
  virtual void settle_down(std::span<const std::uint64_t> keys, std::span<const double> numbers,
                           const Tally& tally) = 0;

 protected:
  [[noreturn]] static void cannot(const char* what) {
    throw std::invalid_argument(std::string("this rule cannot ") + what);
  }
};

template <Rule R, template <class> class Store>
class RuleLearner final : public Learner {
  using Real = typename R::Real;
  using Cell = typename R::Cell;
  using Places = typename Store<Cell>::Places;

 public:
  RuleLearner(std::uint64_t width, const Loss& loss, const Params& params)
      : loss_(loss), rule_(params), store_(width) {}

  std::int64_t learn(const Batch& batch, const Visit& visit) override {
    std::int64_t made = 0;
    Rows<Real> rows(batch, visit, store_.width());
    // In a round a cell is dead that was so at its beginning: all others are put back.
    const auto dead = [this](const Cell& cell) {
      return round_.on() ? cell == Cell{} : rule_.dead(cell);
    };
    while (rows.next()) {
      const std::size_t n = rows.count();
      row_.resize((n + pack_size - 1) / pack_size * pack_size);
      if constexpr (requires { row_.count; }) row_.count = n;
      store_.reserve(n, dead);
      const double scale = row_scale(loss_, rows);
      const Inner inner = open_row(rows);
      const double p = rule_.prediction(row_, scale * inner.dot);
      if (!std::isfinite(p + inner.squares)) report(batch, rows);
      rows.check_target();
      const double y = rows.label(), weight = rows.weight();
      const Outcome outcome = loss_(p, y);
      const double g = weight * outcome.slope;
      rows.foresee();  // meanwhile
      rule_.see(scale * scale * inner.squares, weight * outcome.steepness);
      if (g != 0.0) {
        // The intercept's x is 1, so the gradient is at least g.
        if (!rule_.fits(g * std::max(1.0, scale * std::sqrt(inner.squares)))) report(batch, rows);
        if (round_.on()) [[unlikely]]
          round_.note(store_, rows);
        close_row(rows, scale * g);
        if constexpr (requires { rule_.blame(0); }) rule_.blame(rows.row());
      }
      rule_.finish(g);
      tally_.add(outcome, weight);
      if (rule_.sweep_due()) {
        if constexpr (requires { rule_.charge(0.0); }) rule_.charge(owed());
        if (round_.on()) round_.sweep(store_, rule_);
        store_.sweep([this](const Cell& cell) { return rule_.settled(cell); });
        rule_.begin_again();
        store_.drop(dead);
      }
      ++made;
      if constexpr (requires { rule_.steering_due(); })
        if (rule_.steering_due()) steer();
      if constexpr (requires { rule_.pausing(); })
        if (rule_.pausing()) break;
    }
    return made;
  }

  void next_pass() override { rule_.next_pass(); }
  void widen(std::uint64_t width) override { store_.widen(width); }

  void predict(const Batch& batch, const Visit& visit, bool average, double* out) const override {
    Rows<Real> rows(batch, visit, store_.width());
    Places places;
    const double b = intercept(average);
    while (rows.next()) {
      const Real* x = rows.values();
      const std::size_t n = rows.count();
      double dot = 0.0;
      rows.with_keys([&](const auto* keys) {
        const auto [later, fetched] = rows.template ahead<std::remove_cvref_t<decltype(*keys)>>(n);
        store_.gather(keys, 0, n, later, fetched, places,
                      [&](std::size_t k, const Four<Cell>& cells) {
                        for (std::size_t i = 0; i < pack_size && k + i < n; ++i)
                          dot += read(cells[i], average) * static_cast<double>(x[k + i]);
                      });
      });
      const double p = row_scale(loss_, rows) * dot + b;
      if (!std::isfinite(p)) {
        rows.check_values();
        throw DataError(rows.row(), "the prediction overflows");
      }
      *out++ = p;
    }
  }

  SparseWeights weights(bool average) const override {
    std::vector<std::pair<std::uint64_t, double>> found;
    store_.each([&](std::uint64_t key, const Cell& cell) {
      const double w = read(cell, average);
      if (!std::isfinite(w))
        throw Divergence("the weight of feature " + std::to_string(key) + " is not finite");
      if (w != 0.0) found.emplace_back(key, w);
    });
    std::sort(found.begin(), found.end());
    SparseWeights result;
    result.keys.reserve(found.size()), result.values.reserve(found.size());
    for (const auto& [key, w] : found) result.keys.push_back(key), result.values.push_back(w);
    return result;
  }

  std::int64_t nonzeros(bool average) const override {
    return average ? store_.count([this](const Cell& cell) { return rule_.average(cell) != 0.0; })
                   : store_.count([this](const Cell& cell) { return rule_.weight(cell) != 0.0; });
  }

  double intercept(bool average) const override {
    return average ? rule_.average_intercept() : rule_.intercept();
  }
  const Tally& tally() const override { return tally_; }
  double rate() const override { return rule_.rate(); }
  std::size_t bytes() const override { return store_.bytes(); }
  std::map<std::string, double> facts() const override {
    if constexpr (requires { rule_.facts(); }) return rule_.facts();
    else if constexpr (requires { rule_.facts(0.0); }) return rule_.facts(owed());
    else return {};
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature());
    const_cast<R&>(rule_).archive(save);  // saving reads
    const_cast<Tally&>(tally_).archive(save);
    std::uint64_t count = 0;
    store_.each([&](std::uint64_t, const Cell&) { ++count; });
    save(count);
    store_.each([&](std::uint64_t key, const Cell& cell) { save(key), save(cell); });
    return save.take();
  }

  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0, count = 0;
    restore(saved);
    if (saved != signature())
      throw std::invalid_argument("the state is of a learner of another rule or number type");
    R rule = rule_;
    Tally tally;
    Store<Cell> store(store_.width());
    rule.archive(restore);
    tally.archive(restore);
    restore(count);
    if (count > restore.left() / (sizeof(std::uint64_t) + sizeof(Cell)))
      throw std::invalid_argument("the learner state is cut short");
    // At once: cells come in the order of a table, and would crowd at the front of one that grows.
    store.reserve(count, [](const Cell&) { return false; });
    for (; count > 0; --count) {
      std::uint64_t key = 0;
      Cell cell;
      restore(key), restore(cell);
      if (!rule.valid(cell)) throw std::invalid_argument("the learner state is damaged");
      store.put(key, cell);
    }
    if (!restore.finished()) throw std::invalid_argument("the learner state has bytes left over");
    rule_ = std::move(rule), tally_ = tally, store_ = std::move(store);  // all or nothing
  }

  void plant(std::span<const std::uint64_t> keys, std::span<const double> values,
             double intercept) override {
    if constexpr (requires { rule_.planted(0.0); }) {
      store_.reserve(keys.size(), [](const Cell&) { return false; });
      for (std::size_t i = 0; i < keys.size(); ++i) store_.put(keys[i], rule_.planted(values[i]));
      rule_.plant_intercept(intercept);
    } else {
      cannot("start from given weights");
    }
  }

  void center(std::span<const std::uint64_t> keys, std::span<const double> means) override {
    if constexpr (requires { rule_.centred_at(0.0); }) {
      store_.reserve(keys.size(), [](const Cell&) { return false; });
      for (std::size_t i = 0; i < keys.size(); ++i) store_.put(keys[i], rule_.centred_at(means[i]));
    } else {
      cannot("centre");
    }
  }

  void steer() override {
    if constexpr (requires { rule_.steer([](auto&&) {}); })
      rule_.steer(
          [this](auto&& f) { store_.each([&](std::uint64_t, const Cell& cell) { f(cell); }); });
    else cannot("steer its gravity");
  }

  void pause_at([[maybe_unused]] std::int64_t nonzeros) override {
    if constexpr (requires { rule_.pause_at(nonzeros); }) rule_.pause_at(nonzeros);
    else cannot("pause");
  }

  bool paused() const override {
    if constexpr (requires { rule_.pausing(); }) return rule_.pausing();
    else return false;
  }

  std::size_t shares() const override { return R::shares; }

  std::vector<std::byte> clock() const override {
    Saver save;
    R settled = rule_;
    settled.begin_again();
    settled.archive(save);
    const_cast<Tally&>(tally_).archive(save);  // saving reads
    return save.take();
  }

  void set_clock(std::span<const std::byte> clock) override {
    Restorer restore(clock);
    R rule = rule_;
    Tally tally;
    rule.archive(restore);
    tally.archive(restore);
    if (!restore.finished()) throw std::invalid_argument("the clock has bytes left over");
    rule_ = std::move(rule), tally_ = tally;
  }

  std::int64_t nonzeros_at(std::span<const std::byte> clock, std::span<const double> numbers,
                           bool average) const override {
    R rule = rule_;
    Restorer restore(clock);
    rule.archive(restore);
    if constexpr (requires { rule.go_alone(); }) rule.go_alone();
    std::int64_t found = 0;
    for (std::size_t i = 0; R::shares > 0 && i + R::shares <= numbers.size(); i += R::shares) {
      const Cell cell = rule.adopted(numbers_at(numbers, i));
      found += (average ? rule.average(cell) : rule.weight(cell)) != 0.0;
    }
    return found;
  }

  void begin_round() override {
    if (R::shares == 0) cannot("be averaged");
    round_.begin(rule_);
  }
  SharedNumbers end_round() override { return round_.end(store_, rule_); }
  std::vector<std::byte> debt() const override { return round_.debt(rule_); }
  void fade(std::span<const std::byte> debt, std::span<double> numbers) const override {
    if constexpr (R::shares > 0) Round<R>::fade(rule_, debt, numbers);
  }

  void adopt(std::span<const std::uint64_t> keys, std::span<const double> numbers) override {
    put_all(keys, numbers, [this](const auto& one) { return rule_.begun(one); });
  }

  std::vector<double> bias_share() const override {
    const auto numbers = rule_.bias_share();
    return {numbers.begin(), numbers.end()};
  }
  void adopt_bias(std::span<const double> numbers) override {
    typename R::BiasNumbers one{};
    if (numbers.size() != one.size())
      throw std::invalid_argument("not the numbers of an intercept");
    std::copy(numbers.begin(), numbers.end(), one.begin());
    rule_.adopt_bias(one);
  }

  void settle_down(std::span<const std::uint64_t> keys, std::span<const double> numbers,
                   const Tally& tally) override {
    if constexpr (requires { rule_.go_alone(); }) rule_.go_alone();
    put_all(keys, numbers, [this](const auto& one) { return rule_.adopted(one); });
    if constexpr (requires { rule_.recount(0); }) rule_.recount(nonzeros(false));
    tally_ = tally;
  }

 private:
  template <class Make>
  void put_all(std::span<const std::uint64_t> keys, std::span<const double> numbers, Make&& make) {
    if (numbers.size() != keys.size() * R::shares)
      throw std::invalid_argument("not the numbers of so many features");
    store_.reserve(keys.size(), [](const Cell& cell) { return cell == Cell{}; });
    for (std::size_t i = 0; i < keys.size(); ++i)
      store_.put(keys[i], make(numbers_at(numbers, i * R::shares)));
  }

  static auto numbers_at(std::span<const double> numbers, std::size_t from) {
    std::array<double, R::shares> one;
    std::copy_n(numbers.data() + from, R::shares, one.begin());
    return one;
  }

  static std::uint64_t signature() { return signature_of<R>() ^ sizeof(Cell); }

  struct Inner {
    double dot;      // sum of the opener's terms
    double squares;  // ||x||^2
  };

  Inner open_row(Rows<Real>& rows) {
    Inner inner{0.0, 0.0};
    rule_.with_opener(row_, [&](auto open) {
      rows.with_keys([&](const auto* keys) { inner = open_with(open, keys, rows); });
    });
    return inner;
  }

  // Sums over packs, blocks of 4096 coordinates added in double precision.
  template <class Open, class Key>
  Inner open_with(Open open, const Key* keys, Rows<Real>& rows) {
    const Real* values = rows.values();
    const std::size_t n = rows.count();
    const auto [later, fetched] = rows.template ahead<Key>(n);
    Inner inner{0.0, 0.0};
    for (std::size_t from = 0; from < n; from += 4096) {
      const std::size_t to = std::min(n, from + 4096);
      Pack<Real> dot = Pack<Real>::all(0), squares = dot;
      store_.gather(keys, from, to, later, fetched, places_,
                    [&](std::size_t k, const Four<Cell>& cells) __attribute__((always_inline)) {
                      const Pack<Real> x = values_at(values, k, to);
                      dot += open(k, cells, x);
                      squares += x * x;
                    });
      inner.dot += dot.total(), inner.squares += squares.total();
    }
    return inner;
  }

  void close_row(const Rows<Real>& rows, double g) {
    const Real* values = rows.values();
    const std::size_t n = rows.count();
    rule_.with_closer(row_, g, [&](auto close) {
      rows.with_keys([&](const auto* keys) {
        // By value: what is captured by reference is loaded anew after every store.
        store_.scatter(
            keys, n, places_,
            [close, values, n](std::size_t k, Four<Cell>& cells)
                __attribute__((always_inline)) { close(k, values_at(values, k, n), cells); });
      });
    });
  }

  [[gnu::always_inline]] static Pack<Real> values_at(const Real* values, std::size_t k,
                                                     std::size_t n) {
    return k + pack_size <= n ? Pack<Real>::load(values + k) : Pack<Real>::load(values + k, n - k);
  }

  // What all cells have not been charged with, for certificates; in the order of keys, so that the sum
  // does not depend on the store.
  double owed() const {
    if (!rule_.certifies()) return 0.0;
    std::vector<std::pair<std::uint64_t, double>> found;
    store_.each([&](std::uint64_t key, const Cell& cell) {
      if (const double pulls = rule_.pulls(cell)) found.emplace_back(key, pulls);
    });
    std::sort(found.begin(), found.end());
    double sum = 0.0;
    for (const auto& [key, pulls] : found) sum += pulls;
    return sum;
  }

  double read(const Cell& cell, bool average) const {
    return average ? rule_.average(cell) : rule_.weight(cell);
  }

  // A prediction or a weight is not finite: the row's fault, or the rate's.
  [[noreturn]] void report(const Batch& batch, const Rows<Real>& culprit) const {
    culprit.check_values();
    throw Divergence("the weights diverged at step " + std::to_string(tally_.rows() + 1) +
                     ", row " + std::to_string(culprit.row()) + ": " +
                     rule_.advice(safe_rate<Real>(batch, loss_)));
  }

  Loss loss_;
  R rule_;
  Store<Cell> store_;
  Tally tally_;
  typename R::Row row_;  // staging arrays, kept between rows
  Places places_;
  Round<R> round_;
};

}  // namespace thresher
