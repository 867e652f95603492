#include "thresher/core/rows.hpp"

#include <limits>
#include <stdexcept>

namespace thresher {
namespace {

// Prefetches an array, or its first 32 cache lines.
template <class T>
void fetch(const T* from, const T* to) {
  constexpr std::ptrdiff_t line = 64 / sizeof(T);
  for (to = std::min(to, from + 32 * line); from < to; from += line) __builtin_prefetch(from);
}

// Whether all keys are from 0 to `last`. A key outside makes the sign bit of one of two numbers 1.
template <class Key>
bool inside(const Key* keys, std::size_t n, std::uint64_t last) {
  using Unsigned = std::make_unsigned_t<Key>;
  constexpr auto top = static_cast<std::uint64_t>(std::numeric_limits<Key>::max());
  const auto bound = static_cast<Unsigned>(std::min(last, top));
  Unsigned signs = 0;
  for (std::size_t k = 0; k < n; ++k)
    signs |= static_cast<Unsigned>(keys[k]) | (bound - static_cast<Unsigned>(keys[k]));
  return signs <= static_cast<Unsigned>(top);
}

}  // namespace

template <class Real>
Rows<Real>::Rows(const Batch& batch, const Visit& visit, std::uint64_t width)
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
    if (width_ && count > width_) refuse_key(0, batch.columns - 1, width_);
    keys32_.resize(count), values_.resize(count);
  } else {
    // If batch.distinct, all keys are below `count` (0: unknown). Then the keys need no check if
    // `count` is at most the width, or if any key is allowed.
    const bool bounded = count > 0 && count <= width_;
    distinct_ = batch.distinct && (width_ == 0 || bounded);
    start_ahead();
  }
}

template <class Real>
bool Rows<Real>::next() {
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

template <class Real>
std::size_t Rows<Real>::nonzeros() const {
  return static_cast<std::size_t>(
      std::count_if(x_, x_ + count_, [](Real v) { return v != Real(0); }));
}

template <class Real>
void Rows<Real>::check_values() const {
  for (std::size_t k = 0; k < count_; ++k) {
    if (std::isfinite(x_[k] * x_[k])) continue;
    refuse_value(row_, keys_32_ ? keys_32_[k] : keys_64_[k], static_cast<double>(x_[k]));
  }
}

template <class Real>
void Rows<Real>::stage_dense() {
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

template <class Real>
template <class Key>
void Rows<Real>::stage_sparse(const Key* keys) {
  if (!checked_ && !distinct_) check_order(keys, count_);
  checked_ = false;
  if (same_) x_ = same_ + begin_;
  else std::visit([this](auto values) { convert_values(values + begin_); }, batch_.values);
  set_keys(keys);
  if (distinct_ || count_ == 0) return;
  if (increasing_) {
    if (width_) {
      check_key(static_cast<std::int64_t>(keys[0]));
      check_key(static_cast<std::int64_t>(keys[count_ - 1]));
    }
    return;
  }
  if (width_ && !inside(keys, count_, width_ - 1))
    for (std::size_t k = 0; k < count_; ++k) check_key(static_cast<std::int64_t>(keys[k]));
  if (repeats_) merge(keys);
}

template <class Real>
template <class Value>
void Rows<Real>::convert_values(const Value* values) {
  if (values_.size() < count_) values_.resize(count_);
  for (std::size_t k = 0; k < count_; ++k) values_[k] = static_cast<Real>(values[k]);
  x_ = values_.data();
}

template <class Real>
void Rows<Real>::check_key(std::int64_t key) const {
  if (static_cast<std::uint64_t>(key) >= width_) [[unlikely]]  // a negative key becomes huge
    refuse_key(row_, key, width_);
}

template <class Real>
template <class Key>
void Rows<Real>::merge(const Key* keys) {
  std::size_t capacity = 16;
  while (capacity < 2 * count_) capacity *= 2;
  places_.assign(capacity, 0);
  merged_values_.clear();
  std::vector<Key>& merged = [this]() -> auto& {
    if constexpr (std::is_same_v<Key, std::int32_t>) return keys32_;
    else return keys64_;
  }();
  merged.clear();
  for (std::size_t k = 0; k < count_; ++k) {
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

template <class Real>
void Rows<Real>::start_ahead() {
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

template <class Real>
void Rows<Real>::enter_ahead(std::int64_t position) {
  ahead_position_ = position;
  ahead_ = start(visit_.row(position));
  ahead_end_ = start(visit_.row(position) + 1);
  fetch_row(position + rows_early);
}

template <class Real>
void Rows<Real>::fetch_row(std::int64_t position) const {
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

template class Rows<float>;
template class Rows<double>;

}  // namespace thresher
