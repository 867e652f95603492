// Several models that learn from the same rows in different orders: what the variants of the stabilized
// rule share. A path has weights of its own, and a walk takes it through the rows.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../batch.hpp"
#include "../error.hpp"
#include "../loss.hpp"
#include "../random.hpp"
#include "../rows.hpp"
#include "../tally.hpp"
#include "rule.hpp"

namespace thresher {

// Where the rule stands at the end of a stage; gravity, rejection and burst are those of the next.
struct Stage {
  std::int64_t number, rows;  // rows taken by each path so far
  double gravity, beta, d;
  std::int64_t stable, K;
  double loss_sum, weight_sum;  // progressive, over all paths, since learning was called
};

// Of every feature that was seen: selection probability, number of updates, stage of its purge or -1.
struct Findings {
  std::vector<std::uint64_t> keys;
  std::vector<double> probability;
  std::vector<std::int64_t> updates, purged;

  void add(std::uint64_t key, double p, std::int64_t u, std::int64_t stage) {
    keys.push_back(key), probability.push_back(p), updates.push_back(u), purged.push_back(stage);
  }
};

// The features of a row that are learned from.
template <class Real>
struct Staged {
  std::vector<std::uint64_t> keys;
  std::vector<Real> x;
  std::size_t size = 0;
};

template <class Real>
class Paths {
 public:
  Paths(std::uint64_t width, const Loss& loss, const Params& params)
      : loss_(loss),
        width_(width),
        seed_(static_cast<std::uint64_t>(params.number("seed"))),
        reshuffles_(params.word("shuffle") == "each"),
        weights_(static_cast<std::size_t>(params.number("paths")), std::vector<Real>(width)) {
    if (width == 0) throw std::invalid_argument("the stabilized rule needs a width");
  }

  std::size_t count() const { return weights_.size(); }
  std::uint64_t width() const { return width_; }
  const Loss& loss() const { return loss_; }
  Real* weights(std::size_t path) { return weights_[path].data(); }
  const Real* weights(std::size_t path) const { return weights_[path].data(); }

  // The order in which a path takes the rows: one for all passes, or a new one for each.
  std::vector<std::int64_t> order(std::size_t path, std::uint64_t pass, std::int64_t rows) const {
    return permutation(seed_, path, passes_ + (reshuffles_ ? pass : 0), rows);
  }
  void end_pass() { ++passes_; }  // rows to come are others: partial_fit

  // The mean of the paths, in double precision and in the order of the paths.
  std::vector<double> mean() const {
    std::vector<double> sum(width_);
    for (const std::vector<Real>& w : weights_)
      for (std::uint64_t j = 0; j < width_; ++j) sum[j] += static_cast<double>(w[j]);
    for (double& w : sum) w /= static_cast<double>(count());
    return sum;
  }

  // Paths run together, so a bad row must be found before any of them begins.
  void check(const Batch& batch) const {
    Rows<Real> rows(batch, Visit{nullptr, 0, batch.rows}, width_);
    while (rows.next()) {
      rows.check_values();
      if (!std::isfinite(rows.label()))
        throw DataError(rows.row(), "the label is NaN or inf; labels must be finite");
      if (!(rows.weight() >= 0 && std::isfinite(rows.weight())))
        throw DataError(rows.row(), "the sample weight must be a finite number >= 0");
    }
  }

  template <class Archive>
  void archive(Archive& io) {
    io(passes_);
    for (std::vector<Real>& w : weights_) {
      io(w);
      if (w.size() != width_) throw std::invalid_argument("the learner state is damaged");
    }
  }

 private:
  Loss loss_;
  std::uint64_t width_, seed_;
  bool reshuffles_;
  std::uint64_t passes_ = 0;
  std::vector<std::vector<Real>> weights_;
};

// One path's way through the rows, without end: after the last row comes the first of the next pass.
template <class Real>
class Walk {
 public:
  Walk(const Batch& batch, const Paths<Real>& paths, std::size_t path)
      : batch_(&batch), paths_(&paths), path_(path) {}

  void next() {
    if (rows_ && rows_->next()) return;
    order_ = paths_->order(path_, pass_++, batch_->rows);
    rows_.emplace(*batch_, Visit{order_.data(), 0, batch_->rows}, paths_->width());
    rows_->next();
  }

  // Puts those features of the row for which stays(j) into `row`, and returns the slope of the loss at
  // their prediction, with the row's weight (and scale) in it. fetch(j) is told of features that
  // come soon.
  template <class Stays, class Fetch>
  double slope(Staged<Real>& row, const Stays& stays, const Fetch& fetch, const Real* w) {
    const std::size_t n = rows_->count();
    if (row.keys.size() < n) row.keys.resize(n), row.x.resize(n);
    Real dot[2] = {0, 0};
    rows_->with_keys([&](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const auto [later, fetched] = rows_->template ahead<Key>(n);
      const Real* x = rows_->values();
      std::uint64_t* kept = row.keys.data();
      Real* kept_x = row.x.data();
      std::size_t size = 0;
      for (std::size_t k = 0; k < n; ++k) {  // free of branches: always write, count what stays
        if (k < fetched) fetch(static_cast<std::uint64_t>(later[k]));
        const auto j = static_cast<std::uint64_t>(keys[k]);
        const bool is = (x[k] != 0) & stays(j);
        dot[k % 2] += is ? w[j] * x[k] : Real(0);
        kept[size] = j, kept_x[size] = x[k];
        size += is;
      }
      row.size = size;
    });
    double scale = 1.0;
    if (paths_->loss().normalises() && rows_->nonzeros() > 0)
      scale = 1.0 / std::sqrt(static_cast<double>(rows_->nonzeros()));
    const double p = scale * static_cast<double>(dot[0] + dot[1]);
    if (!std::isfinite(p))
      throw Divergence("the weights diverged at row " + std::to_string(rows_->row()) +
                       ": lower eta0");
    const Outcome outcome = paths_->loss()(p, rows_->label());
    tally_.add(outcome, rows_->weight());
    return rows_->weight() * outcome.slope * scale;
  }

  const Tally& tally() const { return tally_; }

 private:
  const Batch* batch_;
  const Paths<Real>* paths_;
  std::size_t path_;
  std::uint64_t pass_ = 0;
  std::vector<std::int64_t> order_;
  std::optional<Rows<Real>> rows_;
  Tally tally_;
};

// f(j) for every feature that is not zero, row by row.
template <class F>
void for_each_key(const Batch& batch, std::uint64_t width, F&& f) {
  Rows<double> rows(batch, Visit{nullptr, 0, batch.rows}, width);
  while (rows.next())
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows.count(); ++k)
        if (rows.values()[k] != 0) f(static_cast<std::uint64_t>(keys[k]));
    });
}

}  // namespace thresher
