// The one training loop: a rule and a store. What happens once a row or a coordinate is compiled into
// RuleLearner<rule, store>.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thresher/averaging/round.hpp"
#include "thresher/core/archive.hpp"
#include "thresher/core/batch.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/core/row_step.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/core/tally.hpp"
#include "thresher/loss/loss.hpp"
#include "thresher/loss/safe_rate.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

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
      const Inner inner = open_row(rule_, store_, rows, row_, places_);
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
        close_row(rule_, store_, rows, row_, places_, scale * g);
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
    if constexpr (requires { rule.go_alone(); }) rule.go_alone();
    rule_ = std::move(rule), tally_ = tally, store_ = std::move(store);  // all or nothing
    round_ = {};
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
    if constexpr (R::shares > 0)
      Round<R>::each(numbers, [&](const auto& one) {
        const Cell cell = rule.adopted(one);
        found += (average ? rule.average(cell) : rule.weight(cell)) != 0.0;
      });
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
    std::size_t i = 0;
    if constexpr (R::shares > 0)
      Round<R>::each(numbers, [&](const auto& one) { store_.put(keys[i++], make(one)); });
  }

  static std::uint64_t signature() { return signature_of<R>() ^ sizeof(Cell); }

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
