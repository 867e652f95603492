// Reads a batch row by row: checks keys, makes them unique, and converts values to the learner's
// type.
//
// A row is used without copying, in the order given, if its keys are distinct: they strictly
// increase, or the batch says so, or no key comes twice (core/repeated_keys.hpp). Any other row is
// merged first: values of repeated keys are added. (A learner copies the cells of a row before the
// step, so a second update of a cell would overwrite the first.)
//
// While a learner works on a row, it prefetches the cells of the keys `distance` nonzeros later,
// also in later rows: see ahead(). Measured: up to 2x where the weights do not fit in the cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/repeated_keys.hpp"

namespace thresher {

template <class Real>
class Rows {
 public:
  // Keys are in [0, width), or any 64-bit number if width is 0.
  Rows(const Batch& batch, const Visit& visit, std::uint64_t width);

  // Reads the next row; false after the last one.
  bool next();

  // Checks in advance whether the keys of the next row increase or repeat, for next(). A learner
  // calls this while it waits for the result of its loss (1.01-1.04x).
  void check_next_row() {
    if (is_dense() || distinct_ || position_ + 1 >= visit_.last) return;
    const std::int64_t row = visit_.row(position_ + 1), from = start(row);
    const auto n = static_cast<std::size_t>(start(row + 1) - from);
    if (all_32_) check_order(all_32_ + from, n);
    else check_order(all_64_ + from, n);
    checked_ = true;
  }

  std::int64_t row() const { return row_; }
  std::size_t count() const { return count_; }
  const Real* values() const { return x_; }
  double label() const { return batch_.labels[row_]; }
  double weight() const { return batch_.weights ? batch_.weights[row_] : 1.0; }
  double unit() const { return batch_.units ? batch_.units[row_] : 1.0; }

  // Calls f(const int32_t* or const int64_t*) with the row's keys.
  template <class F>
  void with_keys(F&& f) const {
    if (keys_32_) f(keys_32_);
    else f(keys_64_);
  }

  // A cursor is `distance` nonzeros ahead of the rows. ahead() moves it by n keys and returns them,
  // or only the first of them if the rest is elsewhere in memory. The caller prefetches the cells
  // of the returned keys while it works on the row.
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
  std::size_t nonzeros() const;

  // Throws if the label or the weight of the row is not valid.
  void check_target() const { thresher::check_target(row_, label(), weight()); }

  // Throws if a value of the row is not finite, or so large that its square is not.
  void check_values() const;

 private:
  static constexpr std::int64_t distance = 128;  // nonzeros between a prefetch and its use
  static constexpr std::int64_t rows_early = 4;  // rows between prefetching a row and its cells

  bool is_dense() const { return !all_32_ && !all_64_; }

  std::int64_t start(std::int64_t row) const {
    return starts_32_ ? starts_32_[row] : starts_64_[row];
  }

  template <class Key>
  static bool increase(const Key* keys, std::size_t n) {
    Key increasing = -1;  // all bits set: true; as wide as a key, so that the loop vectorises
    for (std::size_t k = 1; k < n; ++k) increasing &= -static_cast<Key>(keys[k - 1] < keys[k]);
    return increasing;
  }

  template <class Key>
  void check_order(const Key* keys, std::size_t n) {
    // After a row that did not increase, the first keys probably tell.
    increasing_ = (increasing_ || increase(keys, std::min<std::size_t>(n, 8))) && increase(keys, n);
    if (!increasing_) find_repeats(keys, n);
  }
  template <class Key>
  [[gnu::noinline]] void find_repeats(const Key* keys, std::size_t n) {
    repeats_ = repeated_.among(keys, n);
  }

  void stage_dense();

  template <class Key>
  void stage_sparse(const Key* keys);

  void set_keys(const std::int32_t* keys) { keys_32_ = keys, keys_64_ = nullptr; }
  void set_keys(const std::int64_t* keys) { keys_32_ = nullptr, keys_64_ = keys; }

  template <class Value>
  void convert_values(const Value* values);

  void check_key(std::int64_t key) const;

  // Adds the values of repeated keys, in the order of their first occurrence. A small
  // open-addressing table maps a key to its place in the merged row.
  template <class Key>
  void merge(const Key* keys);

  // The cursor of ahead(). Without an order, the keys of all rows are contiguous.
  void start_ahead();

  void skip_ahead(std::int64_t n) {
    while (n > ahead_end_ - ahead_ && visit_.order && ahead_position_ + 1 < visit_.last) {
      n -= ahead_end_ - ahead_;
      enter_ahead(ahead_position_ + 1);
    }
    ahead_ += std::min(n, ahead_end_ - ahead_);
  }

  void enter_ahead(std::int64_t position);

  // In a shuffled order rows are far apart: prefetch a row's own memory before its cells.
  void fetch_row(std::int64_t position) const;

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
  bool repeats_ = false;     // the same: whether a key comes twice; only known if not increasing_
  bool checked_ = false;

  std::int64_t ahead_ = 0, ahead_end_ = 0, ahead_position_ = 0;

  std::vector<std::int32_t> keys32_;
  std::vector<std::int64_t> keys64_;
  std::vector<Real> values_, merged_values_;
  std::vector<std::size_t> places_;
  RepeatedKeys repeated_;
};

extern template class Rows<float>;  // rows.cpp
extern template class Rows<double>;

}  // namespace thresher
