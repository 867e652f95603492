// Lanes that share only the rows: each lane is a separate learner.
//
// It is for lanes that cannot share a line (`joins` of lanes such as TruncatedLanes is false): for
// example with averages or a certificate of truncated gradient, l2 with a ceiling, or target_nnz.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/lanes.hpp"

namespace thresher {

class SeparateLanes final : public Lanes {
 public:
  // `single`: whether the learners, and so the checks of rows, use float32.
  SeparateLanes(std::vector<std::unique_ptr<Learner>> learners, std::vector<LaneSpec> specs,
                std::uint64_t width, bool single)
      : learners_(std::move(learners)),
        specs_(std::move(specs)),
        diverged_(specs_.size()),
        width_(width),
        single_(single) {}

  std::size_t count() const override { return learners_.size(); }

  void learn(const Batch& batch, const Visit& visit, const Told& told, double* before) override {
    std::int64_t last = visit.last;
    const std::exception_ptr error = first_error(batch, visit, last);
    for (std::size_t lane = 0; lane < count(); ++lane) {
      order_.clear();
      for (std::int64_t p = visit.first; p < last; ++p)
        if (told.sees(visit.row(p), specs_[lane].clock)) order_.push_back(visit.row(p));
      Batch own = batch;
      const std::int64_t clock = specs_[lane].clock, target = specs_[lane].target;
      if (target >= 0 || told.labels) {
        labels_.resize(static_cast<std::size_t>(batch.rows)), units_.resize(labels_.size());
        for (const std::int64_t row : order_) {
          const auto at = static_cast<std::size_t>(row);
          labels_[at] = told.label(batch, row, clock, target), units_[at] = told.unit(row, clock);
        }
        own.labels = labels_.data(), own.units = units_.data();
      }
      const auto seen = static_cast<std::int64_t>(order_.size());
      if (before)
        for (std::int64_t p = visit.first; p < visit.last; ++p)
          before[static_cast<std::size_t>(p - visit.first) * count() + lane] =
              std::numeric_limits<double>::quiet_NaN();
      if (!diverged_[lane].empty()) continue;
      try {
        if (!before) {
          learners_[lane]->learn(own, Visit{order_.data(), 0, seen});
        } else {
          std::int64_t p = visit.first;
          for (std::int64_t i = 0; i < seen; ++i, ++p) {
            const auto row = order_[static_cast<std::size_t>(i)];
            while (visit.row(p) != row || !told.sees(row, specs_[lane].clock)) ++p;
            learners_[lane]->predict(
                own, Visit{order_.data(), i, i + 1}, false,
                before + static_cast<std::size_t>(p - visit.first) * count() + lane);
            learners_[lane]->learn(own, Visit{order_.data(), i, i + 1});
          }
        }
      } catch (const DataError& what) {  // rows are valid, so the lane's prediction overflows
        diverged_[lane] = what.what();
      } catch (const Divergence& what) {
        diverged_[lane] = what.what();
      }
    }
    if (error) std::rethrow_exception(error);
  }

  void next_pass() override {
    for (auto& learner : learners_) learner->next_pass();
  }
  void widen(std::uint64_t width) override {
    for (auto& learner : learners_) require<Widenable>(*learner).widen(width);
    width_ = width_ == 0 || width == 0 ? 0 : std::max(width_, width);
  }

  void predict(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
               bool average, double* out) const override {
    const auto rows = static_cast<std::size_t>(visit.last - visit.first);
    std::vector<double> column(rows);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      try {
        learners_[static_cast<std::size_t>(lanes[i])]->predict(batch, visit, average,
                                                               column.data());
      } catch (const DataError&) {  // a bad row, or a lane whose prediction overflows
        std::int64_t last = visit.last;
        if (const auto error = first_error(batch, visit, last)) std::rethrow_exception(error);
        std::fill(column.begin(), column.end(), std::numeric_limits<double>::quiet_NaN());
      }
      for (std::size_t r = 0; r < rows; ++r) out[r * lanes.size() + i] = column[r];
    }
  }
  SparseWeights weights(std::size_t lane, bool average) const override {
    return learners_[lane]->weights(average);
  }
  std::vector<std::int64_t> nonzeros(bool average) const override {
    std::vector<std::int64_t> found;
    for (const auto& learner : learners_) found.push_back(learner->nonzeros(average));
    return found;
  }
  double intercept(std::size_t lane, bool average) const override {
    return learners_[lane]->intercept(average);
  }
  Tally tally(std::size_t lane) const override { return learners_[lane]->tally(); }
  double rate(std::size_t lane) const override { return learners_[lane]->rate(); }
  std::string divergence(std::size_t lane) const override { return diverged_[lane]; }
  std::size_t bytes() const override {
    std::size_t sum = 0;
    for (const auto& learner : learners_) sum += learner->bytes();
    return sum;
  }
  std::string layout(std::size_t) const override { return "alone"; }

  std::vector<std::byte> state() const override {
    Saver save;
    for (std::size_t lane = 0; lane < count(); ++lane) {
      save(learners_[lane]->state());
      save(std::vector<char>(diverged_[lane].begin(), diverged_[lane].end()));
    }
    return save.take();
  }
  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    for (std::size_t lane = 0; lane < count(); ++lane) {
      std::vector<std::byte> own;
      std::vector<char> message;
      restore(own), restore(message);
      learners_[lane]->restore(own);
      diverged_[lane].assign(message.begin(), message.end());
    }
    if (!restore.finished())
      throw std::invalid_argument("the state of the lanes has bytes left over");
  }

 private:
  // The error of the first bad row, whichever lanes see it; sets `last` to its position.
  std::exception_ptr first_error(const Batch& batch, const Visit& visit, std::int64_t& last) const {
    return single_ ? first_error_in<float>(batch, visit, last)
                   : first_error_in<double>(batch, visit, last);
  }
  template <class Real>
  std::exception_ptr first_error_in(const Batch& batch, const Visit& visit,
                                    std::int64_t& last) const {
    Rows<Real> rows(batch, visit, width_);
    std::int64_t position = visit.first;
    try {
      for (; rows.next(); ++position) {
        rows.check_values();
        check_target(rows.row(), batch.labels ? rows.label() : 0.0, rows.weight());
      }
    } catch (const DataError&) {
      last = position;
      return std::current_exception();
    }
    return nullptr;
  }

  std::vector<std::unique_ptr<Learner>> learners_;
  std::vector<LaneSpec> specs_;
  std::vector<std::string> diverged_;
  std::uint64_t width_;
  bool single_;
  std::vector<std::int64_t> order_;  // the rows that the current lane sees
  std::vector<double> labels_, units_;
};

}  // namespace thresher
