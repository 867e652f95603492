// Paths: several models that learn from the same rows in different orders. Both variants of the
// stabilized rule use them. Paths holds the weights, and a Walk makes the steps of one path.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/cell.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/core/random.hpp"
#include "thresher/core/repeats.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/core/tally.hpp"
#include "thresher/loss/losses.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/stores/dense.hpp"

namespace thresher {

// The state of the rule at the end of a stage; gravity, rejection and burst are those of the next
// stage. Number 0 means that no stage has ended: the callback only says whether to continue.
struct Stage {
  std::int64_t number, rows;  // rows that each path has learned from so far
  double gravity, beta, d;
  std::int64_t stable, K;
  double loss_sum, weight_sum;  // progressive, over all paths, since the start of the call
};

// For every feature seen: selection probability, number of updates, stage of its purge or -1, and z
// of feature and label (empty if the variant does not record it).
struct Findings {
  std::vector<std::uint64_t> keys;
  std::vector<double> probability;
  std::vector<std::int64_t> updates, purged;
  std::vector<double> z;

  void add(std::uint64_t key, double p, std::int64_t u, std::int64_t stage) {
    keys.push_back(key), probability.push_back(p), updates.push_back(u), purged.push_back(stage);
  }
};

// A feature of a path: w_j, and a count k_j that the variant defines. A feature with a negative
// count is frozen: no step changes or counts it. (Its weight is 0, so predictions need no check.)
// It has 8 bytes in single precision: a step of a path costs as much as a step of plain SGD.
template <class Real>
using PathCell = Pair<Real, Whole<Real>>;

// The cells of a row as they were before its step; kept between rows.
template <class Real>
struct Staged {
  std::vector<Real> w;
  std::vector<Whole<Real>> k;
};

template <class Real>
class Paths {
 public:
  Paths(std::uint64_t width, const Loss& loss, const Params& params)
      : Paths(width, loss, params, 0, static_cast<std::size_t>(params.number("paths"))) {}

  // Only some of the paths: first .. first + count - 1.
  Paths(std::uint64_t width, const Loss& loss, const Params& params, std::size_t first,
        std::size_t count)
      : loss_(loss),
        width_(width),
        seed_(static_cast<std::uint64_t>(params.number("seed"))),
        first_(first),
        reshuffles_(params.word("shuffle") == "each") {
    if (width == 0) throw std::invalid_argument("the stabilized rule needs a width");
    for (std::size_t m = 0; m < count; ++m) cells_.emplace_back(padded_width());
  }

  std::size_t count() const { return cells_.size(); }
  std::uint64_t width() const { return width_; }
  const Loss& loss() const { return loss_; }

  // Cells of a path: whole packs, padded with features that are in no row.
  DenseStore<PathCell<Real>>& cells(std::size_t path) { return cells_[path]; }
  const DenseStore<PathCell<Real>>& cells(std::size_t path) const { return cells_[path]; }
  std::uint64_t padded_width() const { return (width_ + pack_size - 1) / pack_size * pack_size; }

  // A purged feature of a path stays 0.
  void freeze(std::size_t path, std::uint64_t j) {
    cells_[path].data()[j] = PathCell<Real>(0, frozen);
  }
  bool is_frozen(std::size_t path, std::uint64_t j) const {
    return cells_[path].data()[j].second() == frozen;
  }

  // The order of the rows for a path: the same for all passes, or a new one for each.
  std::vector<std::int64_t> order(std::size_t path, std::uint64_t pass, std::int64_t rows) const {
    return permutation(seed_, first_ + path, passes_ + (reshuffles_ ? pass : 0), rows);
  }
  void end_pass() { ++passes_; }  // the next rows are different ones: partial_fit

  // The sum of the paths' weights of features from .. to - 1: in double precision, in the order of
  // paths.
  std::vector<double> sum(std::uint64_t from, std::uint64_t to) const {
    std::vector<double> sum(to - from);
    for (const auto& cells : cells_)
      for (std::uint64_t j = from; j < to; ++j)
        sum[j - from] += static_cast<double>(cells.data()[j].first());
    return sum;
  }
  // The mean of the paths.
  std::vector<double> mean() const {
    std::vector<double> mean = sum(0, width_);
    for (double& w : mean) w /= static_cast<double>(count());
    return mean;
  }

  // Checks rows first .. last - 1. Paths run in parallel, so a bad row must be found before any of
  // them starts. Calls see(j) for every nonzero value, and returns whether there are stored zeros.
  template <class See>
  bool check(const Batch& batch, std::int64_t first, std::int64_t last, const See& see) const {
    std::size_t zeros = 0;
    Rows<Real> rows(batch, Visit{nullptr, first, last}, width_);
    while (rows.next()) {
      const std::size_t n = rows.count();
      const Real* x = rows.values();
      Pack<Real> squares = Pack<Real>::all(0);
      for (std::size_t k = 0; k < n; k += pack_size) {
        const auto four =
            k + pack_size <= n ? Pack<Real>::load(x + k) : Pack<Real>::load(x + k, n - k);
        squares += four * four;
      }
      if (!std::isfinite(squares.total())) rows.check_values();
      rows.check_target();
      rows.with_keys([&](const auto* keys) {
        for (std::size_t k = 0; k < n; ++k)
          if (x[k] != 0) see(static_cast<std::uint64_t>(keys[k]));
          else ++zeros;
      });
    }
    return zeros > 0;
  }

  template <class Archive>
  void archive(Archive& io) {
    io(passes_);
    std::vector<Real> w(width_);
    for (auto& cells : cells_) {
      for (std::uint64_t j = 0; j < width_; ++j) w[j] = cells.data()[j].first();
      io(w);
      if (w.size() != width_) throw std::invalid_argument("the learner state is damaged");
      for (std::uint64_t j = 0; j < width_; ++j)
        cells.data()[j] = PathCell<Real>(w[j], cells.data()[j].second());
    }
  }

 private:
  static constexpr auto frozen = std::numeric_limits<Whole<Real>>::min();

  Loss loss_;
  std::uint64_t width_, seed_;
  std::size_t first_;  // number of the first path
  bool reshuffles_;
  std::uint64_t passes_ = 0;
  std::vector<DenseStore<PathCell<Real>>> cells_;
};

// The steps of one path through the rows; after the last row it continues with the next pass.
// next() goes to a row, which makes repeats() steps; a step is slope() and move().
template <class Real>
class Walk {
  using Cell = PathCell<Real>;

 public:
  // `zeros`: rows have stored zeros, which are then removed.
  Walk(const Batch& batch, const Paths<Real>& paths, std::size_t path, bool zeros)
      : batch_(&batch), paths_(&paths), path_(path), zeros_(zeros) {}

  void next() {
    if (!rows_ || !rows_->next()) {
      order_ = paths_->order(path_, pass_++, batch_->rows);
      rows_.emplace(*batch_, Visit{order_.data(), 0, batch_->rows}, paths_->width());
      rows_->next();
    }
    if (zeros_) remove_zeros();
    repeats_ = repeats_of(rows_->weight()), steps_ = 0;
  }

  std::int64_t repeats() const { return repeats_.count; }

  // Continues where another walk was after `taken` rows.
  void resume(std::int64_t taken, const Tally& tally) {
    const std::int64_t position = taken % batch_->rows;
    pass_ = static_cast<std::uint64_t>(taken / batch_->rows);
    rows_.reset();
    if (position > 0) {
      order_ = paths_->order(path_, pass_++, batch_->rows);
      rows_.emplace(*batch_, Visit{order_.data(), position, batch_->rows}, paths_->width());
    }
    tally_ = tally;
  }

  // Prefetches the path's next rows, and then their cells, before its next burst: other paths have
  // used the cache since its last one.
  void fetch_rows() const {
    if (rows_) rows_->fetch_rows(6);
  }
  void fetch_cells(const DenseStore<Cell>& cells) const {
    if (!rows_ || zeros_) return;
    rows_->with_keys([&](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      for (const std::int64_t on : {1, 2}) {
        const auto [later, fetched] = rows_->template row_ahead<Key>(on);
        for (std::size_t k = 0; k < fetched; ++k) __builtin_prefetch(cells.data() + later[k], 1);
      }
    });
  }

  // The slope of the loss at the path's prediction, times the weight of the step (and scale:
  // ), for a step of rate eta. Calls see(keys, cells) for every four cells of the row; after
  // its end the last is repeated.
  template <class See>
  double slope(const DenseStore<Cell>& cells, Staged<Real>& row, See& see, double eta) {
    double dot = 0.0;
    See sees = see;  // a copy: its counters stay in registers
    with_row([&](const auto* keys, const Real* x, std::size_t n) __attribute__((always_inline)) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      if (row.w.size() < n + pack_size) row.w.resize(2 * n + pack_size), row.k.resize(row.w.size());
      const auto [later, fetched] = rows_->template row_ahead<Key>(2);
      Real* row_w = row.w.data();
      Whole<Real>* row_k = row.k.data();
      typename DenseStore<Cell>::Places places;
      for (std::size_t from = 0; from < n; from += 4096) {
        const std::size_t to = std::min(n, from + 4096);
        Pack<Real> sum = Pack<Real>::all(0);
        cells.gather(keys, from, to, later, fetched, places,
                     [&](std::size_t k, const Four<Cell>& four, const Four<Key>& names)
                         __attribute__((always_inline)) {
                           const Pack<Real> w = half<0>(four);
                           w.store(row_w + k), half<1>(four).store(row_k + k);
                           sum += w * values_at(x, k, to);
                           sees(names, four);
                         });
        dot += sum.total();
      }
      for (std::size_t k = n; k < fetched; ++k) __builtin_prefetch(cells.data() + later[k], 1);
    });
    see = sees;
    const double scale = paths_->loss().normalises() && rows_->nonzeros() > 0
                             ? 1.0 / std::sqrt(static_cast<double>(rows_->nonzeros()))
                             : 1.0;
    const double p = scale * dot;
    if (!std::isfinite(p))
      throw Divergence("the weights diverged at row " + std::to_string(rows_->row()) +
                       ": lower eta0");
    const Outcome outcome = paths_->loss()(p, rows_->label());
    rows_->check_next_row();  // overlaps with the latency of the loss
    if (steps_++ == 0) tally_.add(outcome, rows_->weight());
    if (repeats_.weight > 1.0) [[unlikely]]
      return long_slope(p, scale, eta) * scale;
    return repeats_.weight * outcome.slope * scale;
  }

  // w_j <- w_j + step x_j and k_j <- k_j + 1 for the features of the row, which slope() has staged.
  void move(DenseStore<Cell>& cells, const Staged<Real>& row, Real step) {
    with_row([&](const auto* keys, const Real* x, std::size_t n) __attribute__((always_inline)) {
      const Real* row_w = row.w.data();
      const Whole<Real>* row_k = row.k.data();
      const auto steps = Pack<Real>::all(step);
      const auto ones = Pack<Whole<Real>>::all(1);
      cells.scatter(keys, n, {},
                    [=](std::size_t i, Four<Cell>& four) __attribute__((always_inline)) {
                      const auto k = Pack<Whole<Real>>::load(row_k + i);
                      const auto w = Pack<Real>::load(row_w + i) + steps * values_at(x, i, n);
                      zip(Pack<Real>::unless_negative(k, w),
                          k + Pack<Whole<Real>>::unless_negative(k, ones), four);
                    });
    });
  }

  std::size_t count() const { return zeros_ ? keys_.size() : rows_->count(); }
  const Tally& tally() const { return tally_; }

 private:
  // Calls f(keys, values, count).
  template <class F>
  [[gnu::always_inline]] void with_row(const F& f) const {
    if (zeros_) f(keys_.data(), values_.data(), keys_.size());
    else
      rows_->with_keys([&](const auto* keys) __attribute__((always_inline)) {
        f(keys, rows_->values(), rows_->count());
      });
  }

  double long_slope(double p, double scale, double eta) const {
    double squares = 0.0;
    for (std::size_t k = 0; k < rows_->count(); ++k)
      squares += static_cast<double>(rows_->values()[k]) * static_cast<double>(rows_->values()[k]);
    const double reach = eta * scale * scale * squares;
    return paths_->loss().long_slope(p, rows_->label(), repeats_.weight, reach);
  }

  void remove_zeros() {
    keys_.clear(), values_.clear();
    rows_->with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows_->count(); ++k)
        if (rows_->values()[k] != 0)
          keys_.push_back(keys[k]), values_.push_back(rows_->values()[k]);
    });
  }

  [[gnu::always_inline]] static Pack<Real> values_at(const Real* x, std::size_t k, std::size_t n) {
    return k + pack_size <= n ? Pack<Real>::load(x + k) : Pack<Real>::load(x + k, n - k);
  }

  const Batch* batch_;
  const Paths<Real>* paths_;
  std::size_t path_;
  bool zeros_;
  std::uint64_t pass_ = 0;
  std::vector<std::int64_t> order_;
  std::optional<Rows<Real>> rows_;
  std::vector<std::int64_t> keys_;  // of the row without zeros, and their values
  std::vector<Real> values_;
  Repeats repeats_{0, 0.0};
  std::int64_t steps_ = 0;  // of the row so far
  Tally tally_;
};

}  // namespace thresher
