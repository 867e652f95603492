// A rule and a store, trained row by row. Code that runs for each row or coordinate is compiled
// into BasicRuleLearner<rule, store>; core/rule_learner.hpp adds the abilities that the rule has.
//
// All rules of rules/ learn with this loop, except mirror descent (rules/mirror_descent.hpp),
// blocks of columns (rules/margin_block.hpp), the stabilized rules (stabilized/) and lanes
// (lanes/).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
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

template <Rule R_, template <class> class Store>
class BasicRuleLearner : public Learner, public Widenable {
 public:
  using R = R_;
  using Real = typename R::Real;
  using Cell = typename R::Cell;

  BasicRuleLearner(std::uint64_t width, const Loss& loss, const Params& params)
      : loss_(loss), rule_(params), store_(width) {}

  std::int64_t learn(const Batch& batch, const Visit& visit) override {
    std::int64_t steps = 0;
    Rows<Real> rows(batch, visit, store_.width());
    // end_round() resets every cell that was not zero at the start of the round: keep these.
    const auto dead = [this](const Cell& cell) {
      return in_round() ? cell == Cell{} : rule_.dead(cell);
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
      rows.check_next_row();  // overlaps with the latency of the loss
      rule_.see(scale * scale * inner.squares, weight * outcome.steepness);
      if (g != 0.0) {
        // The intercept's x is 1, so the gradient is at least g.
        if (!rule_.fits(g * std::max(1.0, scale * std::sqrt(inner.squares)))) report(batch, rows);
        if constexpr (RoundRule<R>)
          if (in_round()) [[unlikely]]
            round_.note(store_, rows);
        close_row(rule_, store_, rows, row_, places_, scale * g);
        if constexpr (requires { rule_.count_updated_row(0); }) rule_.count_updated_row(rows.row());
      }
      rule_.finish(g);
      tally_.add(outcome, weight);
      if constexpr (LedgerRule<R>)
        if (rule_.sweep_due()) sweep(dead);
      ++steps;
      if constexpr (SteeringRule<R>)
        if (rule_.steering_due()) steer_rule();
      if constexpr (PausingRule<R>)
        if (rule_.pausing()) break;
    }
    return steps;
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
    if constexpr (CertifyingRule<R>) return rule_.facts(pending_pulls());
    else if constexpr (requires { rule_.facts(); }) return rule_.facts();
    else return {};
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature());
    const_cast<R&>(rule_).archive(save);  // a Saver only reads
    const_cast<Tally&>(tally_).archive(save);
    std::uint64_t count = 0;
    store_.each([&](std::uint64_t, const Cell&) { ++count; });
    save(count);
    store_.each([&](std::uint64_t key, const Cell& cell) { save(key), save(cell); });
    return save.take();
  }

  // An error leaves the learner unchanged.
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
    // Reserved at once: cells come in the order of a hash table, and would collide at the front of
    // a table that grows.
    store.reserve(count, [](const Cell&) { return false; });
    for (; count > 0; --count) {
      std::uint64_t key = 0;
      Cell cell;
      restore(key), restore(cell);
      if (!rule.valid(cell)) throw std::invalid_argument("the learner state is damaged");
      store.put(key, cell);
    }
    if (!restore.finished()) throw std::invalid_argument("the learner state has bytes left over");
    if constexpr (requires { rule.end_rounds(); }) rule.end_rounds();
    rule_ = std::move(rule), tally_ = tally, store_ = std::move(store);
    round_ = {};
  }

 protected:
  void steer_rule() {
    rule_.steer(
        [this](auto&& f) { store_.each([&](std::uint64_t, const Cell& cell) { f(cell); }); });
  }

  Loss loss_;
  R rule_;
  Store<Cell> store_;
  Tally tally_;
  [[no_unique_address]] std::conditional_t<RoundRule<R>, Round<R>, std::monostate> round_;

 private:
  using Places = typename Store<Cell>::Places;

  // The type's name is part of every saved state: renaming a rule's class makes old states
  // unreadable.
  static std::uint64_t signature() { return signature_of<R>() ^ sizeof(Cell); }

  bool in_round() const {
    if constexpr (RoundRule<R>) return round_.on();
    else return false;
  }

  // Applies all pending events to all cells, so that the ledger can start again.
  template <class Dead>
  void sweep(const Dead& dead) {
    if constexpr (CertifyingRule<R>) rule_.charge(pending_pulls());
    if constexpr (RoundRule<R>)
      if (in_round()) round_.sweep(store_, rule_);
    store_.sweep([this](const Cell& cell) { return rule_.settled(cell); });
    rule_.reset_ledger();
    store_.drop(dead);
  }

  // The pulls of all cells that the certificate does not contain yet; in the order of keys, so that
  // the sum does not depend on the store.
  double pending_pulls() const {
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

  // A prediction or a weight is not finite: because of the row's values, or of the learning rate.
  [[noreturn]] void report(const Batch& batch, const Rows<Real>& rows) const {
    rows.check_values();
    throw Divergence("the weights diverged at step " + std::to_string(tally_.rows() + 1) +
                     ", row " + std::to_string(rows.row()) + ": " +
                     rule_.advice(safe_rate<Real>(batch, loss_)));
  }

  typename R::Row row_;  // staging arrays, kept between rows
  Places places_;
};

}  // namespace thresher
