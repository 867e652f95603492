// Reads a batch row by row: checks keys, makes them unique, and converts values to the learner's
// type.
//
// A row is used without copying if its keys strictly increase, or if the batch says that its keys
// are distinct. Any other row is merged first: values of repeated keys are added. (A learner copies
// the cells of a row before the step, so a second update of a cell would overwrite the first.)
//
// While a learner works on a row, it prefetches the cells of the keys `distance` nonzeros later,
// also in later rows: see ahead(). Measured: up to 2x where the weights do not fit in the cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/error.hpp"

namespace thresher {

template <class Real>
class Rows {
 public:
  // Keys are in [0, width), or any 64-bit number if width is 0.
  Rows(const Batch& batch, const Visit& visit, std::uint64_t width)
      : batch_(batch), visit_(visit), width_(width), position_(visit.first - 1) {
    // The types of a batch are checked here, once, and not for every row.
    if (const auto* p = std::get_if<const std::int32_t*>(&batch.starts)) starts_32_ = *p;
    if (const auto* p = std::get_if<const std::int64_t*>(&batch.starts)) starts_64_ = *p;
    if (const auto* p = std::get_if<const std::int32_t*>(&batch.keys)) all_32_ = *p;
    if (const auto* p = std::get_if<const std::int64_t*>(&batch.keys)) all_64_ = *p;
    if (const auto* p = std::get_if<const Real*>(&batch.values)) same_ = *p;
    const auto count = static_cast<std::size_t>(batch_.columns);
    if (is_dense()) {
      if (count > INT32_MAX)
        throw std::invalid_argument("a dense array has at most 2^31 - 1 columns; give CSR instead");
      if (width_ && count > width_) throw DataError(0, outside(batch.columns - 1));
      keys32_.resize(count), values_.resize(count);
    } else {
      // Readers know the largest key: rows need no check, unless a key can be outside.
      const bool bounded = count > 0 && count <= width_;
      distinct_ = batch.distinct && (width_ == 0 || bounded);
      start_ahead();
    }
  }

  // Reads the next row; false after the last one.
  bool next() {
    if (++position_ >= visit_.last) return false;
    row_ = visit_.row(position_);
    if (is_dense()) {
      stage_dense();
    } else {
      begin_ = start(row_);
      count_ = static_cast<std::size_t>(start(row_ + 1) - begin_);
      if (all_32_) stage_sparse(all_32_ + begin_);
      else stage_sparse(all_64_ + begin_);
    }
    return true;
  }

  // Checks whether the keys of the next row increase, before next() needs to know. A learner calls
  // this while it waits for the result of its loss (1.01-1.04x).
  void check_next_row() {
    if (is_dense() || distinct_ || position_ + 1 >= visit_.last) return;
    const std::int64_t row = visit_.row(position_ + 1), from = start(row);
    const auto n = static_cast<std::size_t>(start(row + 1) - from);
    increasing_ = all_32_ ? increase(all_32_ + from, n) : increase(all_64_ + from, n);
    checked_ = true;
  }

  std::int64_t row() const { return row_; }
  std::size_t count() const { return count_; }
  const Real* values() const { return x_; }
  double label() const { return batch_.labels[row_]; }
  double weight() const { return batch_.weights ? batch_.weights[row_] : 1.0; }

  // Calls f(const int32_t* or const int64_t*) with the row's keys.
  template <class F>
  void with_keys(F&& f) const {
    if (keys_32_) f(keys_32_);
    else f(keys_64_);
  }

  // Advances by n keys a cursor that is `distance` nonzeros ahead of the rows. Returns those of the
  // n keys that are contiguous in memory: the caller prefetches their cells while it works on the
  // row. The others, after a jump to another row, are not prefetched.
  template <class Key>
  [[gnu::always_inline]] std::pair<const Key*, std::size_t> ahead(std::size_t n) {
    const Key* from = nullptr;
    if constexpr (std::is_same_v<Key, std::int32_t>) from = all_32_;
    else from = all_64_;
    if (!from) return {nullptr, 0};
    const auto wanted = static_cast<std::int64_t>(n);
    const std::pair run(from + ahead_,
                        static_cast<std::size_t>(std::min(wanted, ahead_end_ - ahead_)));
    skip_ahead(wanted);
    return run;
  }

  // The same by rows, for shuffled orders: the keys of the row that comes `rows_on` rows later. The
  // caller prefetches their cells. The row's own memory was prefetched a few rows before.
  template <class Key>
  [[gnu::always_inline]] std::pair<const Key*, std::size_t> row_ahead(std::int64_t rows_on) const {
    const Key* from = nullptr;
    if constexpr (std::is_same_v<Key, std::int32_t>) from = all_32_;
    else from = all_64_;
    if (!from || position_ + rows_on >= visit_.last) return {nullptr, 0};
    fetch_row(position_ + rows_on + 2 * rows_early);
    const std::int64_t row = visit_.row(position_ + rows_on), begin = start(row);
    return {from + begin, static_cast<std::size_t>(start(row + 1) - begin)};
  }

  void fetch_rows(std::int64_t n) const {
    if (is_dense()) return;
    for (std::int64_t on = 1; on <= n; ++on) fetch_row(position_ + on);
  }

  // |x|_0: stored zeros do not count.
  std::size_t nonzeros() const {
    return static_cast<std::size_t>(
        std::count_if(x_, x_ + count_, [](Real v) { return v != Real(0); }));
  }

  // Throws if the label or the weight of the row is not valid.
  void check_target() const { thresher::check_target(row_, label(), weight()); }

  // Throws if a value of the row is not finite, or so large that its square is not.
  void check_values() const {
    for (std::size_t k = 0; k < count_; ++k) {
      if (std::isfinite(x_[k] * x_[k])) continue;
      const std::int64_t key = keys_32_ ? keys_32_[k] : keys_64_[k];
      const std::string feature = "the value of feature " + std::to_string(key);
      if (std::isnan(x_[k])) throw DataError(row_, feature + " is NaN; values must be finite");
      throw DataError(row_, feature + " is " + shown(static_cast<double>(x_[k])) +
                                "; values must be finite, with finite squares in the dtype");
    }
  }

 private:
  static constexpr std::int64_t distance = 128;  // nonzeros between a prefetch and its use
  static constexpr std::int64_t rows_early = 4;  // rows between prefetching a row and its cells

  bool is_dense() const { return !all_32_ && !all_64_; }

  std::int64_t start(std::int64_t row) const {
    return starts_32_ ? starts_32_[row] : starts_64_[row];
  }

  std::string outside(std::int64_t key) const {
    return "feature number " + std::to_string(key) + " is outside 0.." + std::to_string(width_ - 1);
  }

  void stage_dense() {
    std::visit(
        [this](auto values) {
          const auto columns = static_cast<std::size_t>(batch_.columns);
          const auto* x = values + static_cast<std::size_t>(row_) * columns;
          std::size_t n = 0;
          // Without branches: always writes, and advances if nonzero.
          for (std::size_t j = 0; j < columns; ++j) {
            keys32_[n] = static_cast<std::int32_t>(j);
            values_[n] = static_cast<Real>(x[j]);
            n += x[j] != 0;
          }
          count_ = n;
        },
        batch_.values);
    keys_32_ = keys32_.data(), keys_64_ = nullptr, x_ = values_.data();
  }

  template <class Key>
  static bool increase(const Key* keys, std::size_t n) {
    Key increasing = -1;  // all bits set: true; as wide as a key, so that the loop vectorises
    for (std::size_t k = 1; k < n; ++k) increasing &= -static_cast<Key>(keys[k - 1] < keys[k]);
    return increasing;
  }

  template <class Key>
  void stage_sparse(const Key* keys) {
    if (!checked_ && !distinct_) increasing_ = increase(keys, count_);
    checked_ = false;
    if (same_) x_ = same_ + begin_;
    else std::visit([this](auto values) { convert_values(values + begin_); }, batch_.values);
    set_keys(keys);
    if (distinct_) return;
    if (!increasing_) {
      merge(keys);
    } else if (width_ && count_ > 0) {
      check_key(static_cast<std::int64_t>(keys[0]));
      check_key(static_cast<std::int64_t>(keys[count_ - 1]));
    }
  }

  void set_keys(const std::int32_t* keys) { keys_32_ = keys, keys_64_ = nullptr; }
  void set_keys(const std::int64_t* keys) { keys_32_ = nullptr, keys_64_ = keys; }

  template <class Value>
  void convert_values(const Value* values) {
    if (values_.size() < count_) values_.resize(count_);
    for (std::size_t k = 0; k < count_; ++k) values_[k] = static_cast<Real>(values[k]);
    x_ = values_.data();
  }

  void check_key(std::int64_t key) const {
    if (static_cast<std::uint64_t>(key) >= width_) [[unlikely]]  // a negative key becomes huge
      throw DataError(row_, outside(key));
  }

  // Adds the values of repeated keys, in the order of their first occurrence. A small
  // open-addressing table maps a key to its place in the merged row.
  template <class Key>
  void merge(const Key* keys) {
    std::size_t capacity = 16;
    while (capacity < 2 * count_) capacity *= 2;
    places_.assign(capacity, 0);
    merged_values_.clear();
    auto& merged = merged_keys<Key>();
    merged.clear();
    for (std::size_t k = 0; k < count_; ++k) {
      if (width_) check_key(static_cast<std::int64_t>(keys[k]));
      std::size_t slot =
          (static_cast<std::uint64_t>(keys[k]) * 0x9E3779B97F4A7C15u >> 20) & (capacity - 1);
      while (places_[slot] != 0 && merged[places_[slot] - 1] != keys[k])
        slot = (slot + 1) & (capacity - 1);
      if (places_[slot] == 0) {
        merged.push_back(keys[k]);
        merged_values_.push_back(x_[k]);
        places_[slot] = merged.size();
      } else {
        merged_values_[places_[slot] - 1] += x_[k];
      }
    }
    count_ = merged.size();
    x_ = merged_values_.data();
    set_keys(merged.data());
  }

  template <class Key>
  auto& merged_keys() {
    if constexpr (std::is_same_v<Key, std::int32_t>) return keys32_;
    else return keys64_;
  }

  // The cursor of ahead(). Without an order, the keys of all rows are contiguous.
  void start_ahead() {
    if (visit_.first >= visit_.last) return;
    if (visit_.order) {
      for (std::int64_t p = visit_.first; p < std::min(visit_.last, visit_.first + 2 * rows_early);
           ++p)
        fetch_row(p);
      enter_ahead(visit_.first);
      skip_ahead(distance);
    } else {
      ahead_end_ = start(visit_.last);
      ahead_ = std::min(start(visit_.first) + distance, ahead_end_);
    }
  }

  void skip_ahead(std::int64_t n) {
    while (n > ahead_end_ - ahead_ && visit_.order && ahead_position_ + 1 < visit_.last) {
      n -= ahead_end_ - ahead_;
      enter_ahead(ahead_position_ + 1);
    }
    ahead_ += std::min(n, ahead_end_ - ahead_);
  }

  void enter_ahead(std::int64_t position) {
    ahead_position_ = position;
    ahead_ = start(visit_.row(position));
    ahead_end_ = start(visit_.row(position) + 1);
    fetch_row(position + rows_early);
  }

  // In a shuffled order rows are far apart: prefetch a row's own memory before its cells.
  void fetch_row(std::int64_t position) const {
    if (position + rows_early < visit_.last) {
      const std::int64_t later = visit_.row(position + rows_early);
      if (starts_32_) __builtin_prefetch(starts_32_ + later);
      else __builtin_prefetch(starts_64_ + later);
      if (batch_.labels) __builtin_prefetch(batch_.labels + later);
    }
    if (position >= visit_.last) return;
    const std::int64_t from = start(visit_.row(position)), to = start(visit_.row(position) + 1);
    if (all_32_) fetch(all_32_ + from, all_32_ + to);
    else fetch(all_64_ + from, all_64_ + to);
    std::visit([=](auto values) { fetch(values + from, values + to); }, batch_.values);
  }

  template <class T>
  static void fetch(const T* from, const T* to) {
    constexpr std::ptrdiff_t line = 64 / sizeof(T);
    for (to = std::min(to, from + 32 * line); from < to; from += line) __builtin_prefetch(from);
  }

  const Batch& batch_;
  Visit visit_;
  std::uint64_t width_;
  const std::int32_t *starts_32_ = nullptr, *all_32_ = nullptr;
  const std::int64_t *starts_64_ = nullptr, *all_64_ = nullptr;
  const Real* same_ = nullptr;  // the batch's values, if they are of type Real
  std::int64_t position_, row_ = 0, begin_ = 0;
  std::size_t count_ = 0;
  const std::int32_t* keys_32_ = nullptr;  // exactly one of the two is set
  const std::int64_t* keys_64_ = nullptr;
  const Real* x_ = nullptr;

  bool distinct_ = false;    // all keys are known to be distinct and below the width
  bool increasing_ = false;  // the keys of the row, or of the next one if checked_
  bool checked_ = false;

  std::int64_t ahead_ = 0, ahead_end_ = 0, ahead_position_ = 0;

  std::vector<std::int32_t> keys32_;
  std::vector<std::int64_t> keys64_;
  std::vector<Real> values_, merged_values_;
  std::vector<std::size_t> places_;
};

}  // namespace thresher
