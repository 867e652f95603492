// The one training loop, and the one virtual interface the rest of the world sees.
//
// A call is made once a batch, so it may be virtual; what happens once a row or a coordinate is
// compiled into RuleLearner<rule, store>.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "archive.hpp"
#include "batch.hpp"
#include "error.hpp"
#include "loss.hpp"
#include "rows.hpp"
#include "rules/rule.hpp"
#include "tally.hpp"

namespace thresher {

struct SparseWeights {
  std::vector<std::uint64_t> keys;  // increasing
  std::vector<double> values;       // none is zero
};

class Learner {
 public:
  virtual ~Learner() = default;

  // One step for every row of the visit, in its order. An error names the row; the rows before it have
  // been learned, that row has not.
  virtual void learn(const Batch& batch, const Visit& visit) = 0;
  virtual void next_pass() = 0;

  // All that follows reads, and changes nothing. `average` asks for the mean of the iterates where the
  // rule keeps it; other rules answer with their last weights.
  virtual void predict(const Batch& batch, bool average, double* out) const = 0;
  virtual SparseWeights weights(bool average) const = 0;
  virtual std::int64_t nonzeros(bool average) const = 0;
  virtual double intercept(bool average) const = 0;
  virtual const Tally& tally() const = 0;
  virtual double rate() const = 0;
  virtual std::size_t bytes() const = 0;

  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;

  // Before the first step: weights to start from, or the mean of the rows for centring.
  virtual void plant(std::span<const std::uint64_t> keys, std::span<const double> values,
                     double intercept) = 0;
  virtual void center(std::span<const std::uint64_t> keys, std::span<const double> means) = 0;
};

template <Rule R, template <class> class Store>
class RuleLearner final : public Learner {
  using Real = typename R::Real;
  using Cell = typename R::Cell;
  using Places = typename Store<Cell>::Places;

 public:
  RuleLearner(std::uint64_t width, const Loss& loss, const Params& params)
      : loss_(loss), rule_(params), store_(width) {}

  void learn(const Batch& batch, const Visit& visit) override {
    Rows<Real> rows(batch, visit, store_.width());
    const auto dead = [this](const Cell& cell) { return rule_.dead(cell); };
    while (rows.next()) {
      const std::size_t n = rows.count();
      const Real* x = rows.values();
      row_.resize(n);
      store_.reserve(n, dead);
      rows.with_keys([&](const auto* keys) {
        store_.gather(keys, n, rows, places_,
                      [&](std::size_t k, const Cell& cell) { rule_.open(row_, k, cell); });
      });

      const double scale = row_scale(rows);
      const double p = rule_.prediction(scale * rule_.forward(row_, x, n));
      if (!std::isfinite(p)) report(batch, visit, rows);
      const double y = rows.label(), weight = rows.weight();
      if (!std::isfinite(y)) throw DataError(rows.row(), "the label is NaN or inf; labels must be finite");
      if (!(weight >= 0 && std::isfinite(weight)))
        throw DataError(rows.row(), "the sample weight must be a finite number >= 0");
      const Outcome outcome = loss_(p, y);
      const double g = weight * outcome.slope;

      if (g != 0.0) {
        if (!std::isfinite(rule_.backward(row_, scale * g, x, n))) report(batch, visit, rows);
        rows.with_keys([&](const auto* keys) {
          store_.scatter(keys, n, places_, [&](std::size_t k) { return rule_.close(row_, k); });
        });
      }
      rule_.finish(g);
      tally_.add(outcome, weight);
      if (rule_.sweep_due()) {
        store_.sweep([this](const Cell& cell) { return rule_.settled(cell); },
                     [this](const Cell& cell) { return rule_.dead(cell); });
        rule_.begin_again();
      }
    }
  }

  void next_pass() override { rule_.next_pass(); }

  void predict(const Batch& batch, bool average, double* out) const override {
    Rows<Real> rows(batch, Visit{nullptr, 0, batch.rows}, store_.width());
    Places places;
    const double b = intercept(average);
    while (rows.next()) {
      const Real* x = rows.values();
      double dot = 0.0;
      rows.with_keys([&](const auto* keys) {
        store_.gather(keys, rows.count(), rows, places, [&](std::size_t k, const Cell& cell) {
          dot += (average ? rule_.average(cell) : rule_.weight(cell)) * static_cast<double>(x[k]);
        });
      });
      const double p = row_scale(rows) * dot + b;
      if (!std::isfinite(p)) {
        rows.check_values();
        throw DataError(rows.row(), "the prediction overflows");
      }
      out[rows.row()] = p;
    }
  }

  SparseWeights weights(bool average) const override {
    std::vector<std::pair<std::uint64_t, double>> found;
    store_.each([&](std::uint64_t key, const Cell& cell) {
      const double w = average ? rule_.average(cell) : rule_.weight(cell);
      if (w != 0.0) found.emplace_back(key, w);
    });
    std::sort(found.begin(), found.end());
    SparseWeights result;
    result.keys.reserve(found.size()), result.values.reserve(found.size());
    for (const auto& [key, w] : found) result.keys.push_back(key), result.values.push_back(w);
    return result;
  }

  std::int64_t nonzeros(bool average) const override {
    std::int64_t count = 0;
    store_.each([&](std::uint64_t, const Cell& cell) {
      count += (average ? rule_.average(cell) : rule_.weight(cell)) != 0.0;
    });
    return count;
  }

  double intercept(bool average) const override {
    return average ? rule_.average_intercept() : rule_.intercept();
  }
  const Tally& tally() const override { return tally_; }
  double rate() const override { return rule_.rate(); }
  std::size_t bytes() const override { return store_.bytes(); }

  std::vector<std::byte> state() const override {
    Saver save;
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
    rule_.archive(restore);
    tally_.archive(restore);
    std::uint64_t count = 0;
    restore(count);
    store_.clear();
    for (; count > 0; --count) {
      std::uint64_t key = 0;
      Cell cell;
      restore(key), restore(cell);
      store_.put(key, cell);
    }
    if (!restore.finished()) throw std::invalid_argument("the learner state has bytes left over");
  }

  void plant(std::span<const std::uint64_t> keys, std::span<const double> values,
             double intercept) override {
    if constexpr (requires { rule_.planted(0.0); }) {
      for (std::size_t i = 0; i < keys.size(); ++i) store_.put(keys[i], rule_.planted(values[i]));
      rule_.plant_intercept(intercept);
    } else {
      throw std::invalid_argument("this rule cannot start from given weights");
    }
  }

  void center(std::span<const std::uint64_t> keys, std::span<const double> means) override {
    if constexpr (requires { rule_.centred_at(0.0); }) {
      for (std::size_t i = 0; i < keys.size(); ++i) store_.put(keys[i], rule_.centred_at(means[i]));
    } else {
      throw std::invalid_argument("this rule does not centre");
    }
  }

 private:
  // clipped_square looks at x / sqrt(|x|_0).
  double row_scale(const Rows<Real>& rows) const {
    if (!loss_.normalises()) return 1.0;
    const std::size_t nonzeros = rows.nonzeros();
    return nonzeros ? 1.0 / std::sqrt(static_cast<double>(nonzeros)) : 1.0;
  }

  // A prediction or a weight is not finite: the row's fault, or the rate's.
  [[noreturn]] void report(const Batch& batch, const Visit& visit, const Rows<Real>& culprit) const {
    culprit.check_values();
    double largest = 0.0;
    Rows<Real> rows(batch, visit, store_.width());
    while (rows.next()) {
      largest = std::max(largest, row_scale(rows) * row_scale(rows) * rows.squared_norm());
      if (rows.row() == culprit.row()) break;
    }
    const double safe = 1.0 / (std::max(loss_.curvature(), 1e-3) * std::max(largest, 1e-300));
    throw Divergence("the weights diverged at step " + std::to_string(tally_.rows() + 1) + ", row " +
                     std::to_string(culprit.row()) + ": " + rule_.advice(safe));
  }

  Loss loss_;
  R rule_;
  Store<Cell> store_;
  Tally tally_;
  typename R::Row row_;  // staging arrays, kept between rows
  Places places_;
};

}  // namespace thresher
