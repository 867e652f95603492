#include "thresher/predict/scorer.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <variant>

#include "thresher/core/error.hpp"
#include "thresher/predict/helpers.hpp"

namespace thresher::predict {
namespace {

constexpr std::size_t small = std::size_t{1} << 18;  // weights of a table of any model: 2 MiB
constexpr std::size_t sparse = 64;                   // a larger table has at most 63 zeros a weight
constexpr std::int64_t rows_at_once = 64;            // their keys stay in the first cache

std::int64_t start_of(const Batch& batch, std::int64_t row) {
  if (const auto* starts = std::get_if<const std::int32_t*>(&batch.starts)) return (*starts)[row];
  return std::get<const std::int64_t*>(batch.starts)[row];
}

// Runs f(first, last) for parts of `rows` rows, which threads take in turn. The error of the first
// bad row counts: all parts before it were taken before.
template <class F>
void in_parts(std::int64_t rows, std::int64_t part, std::size_t threads, const F& f) {
  if (threads <= 1 || rows <= part) return f(std::int64_t{0}, rows);
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::int64_t bad = rows;
  std::exception_ptr error;
  Helpers::run(threads, [&] {
    for (std::int64_t first = 0; (first = next.fetch_add(part)) < rows;) {
      try {
        f(first, std::min(first + part, rows));
      } catch (...) {
        next.store(rows);
        const std::lock_guard lock(mutex);
        if (first < bad) bad = first, error = std::current_exception();
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

// Rows of a part: about 2^16 values.
std::int64_t rows_of_part(std::int64_t rows, std::int64_t values) {
  constexpr std::int64_t enough = 1 << 16;
  const std::int64_t parts = values / enough + 1;
  return std::max<std::int64_t>(1, (rows + parts - 1) / parts);
}

[[noreturn]] void refuse_prediction(std::int64_t row) {
  throw DataError(row, "the prediction overflows");
}

bool all_finite(const double* numbers, std::size_t n) {
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i)
    finite &= std::fabs(numbers[i]) <= std::numeric_limits<double>::max();
  return finite;
}

}  // namespace

void check_starts(const Batch& batch, std::size_t size) {
  const auto check = [&](const auto* starts) {
    bool increase = starts[0] >= 0;
    for (std::int64_t row = 0; row < batch.rows; ++row) increase &= starts[row] <= starts[row + 1];
    if (increase && static_cast<std::size_t>(starts[batch.rows]) <= size) return;
    std::int64_t bad = 0;
    while (bad < batch.rows && starts[bad] >= 0 && starts[bad] <= starts[bad + 1]) ++bad;
    if (increase) throw DataError(batch.rows - 1, "row starts reach beyond the keys");
    throw DataError(bad, "row starts must not decrease and begin at 0 or above");
  };
  if (const auto* starts = std::get_if<const std::int32_t*>(&batch.starts)) check(*starts);
  else check(std::get<const std::int64_t*>(batch.starts));
}

Scorer::Scorer(std::span<const std::int64_t> starts, std::span<const std::uint64_t> keys,
               std::span<const double> weights, std::span<const double> intercepts,
               std::uint64_t width, const std::string& level)
    : intercepts_(intercepts.begin(), intercepts.end()), width_(width), kernels_(kernels(level)) {
  if (starts.size() != outputs() + 1 || outputs() == 0 || keys.size() != weights.size() ||
      starts[0] != 0 || starts[outputs()] != static_cast<std::int64_t>(keys.size()) ||
      !std::is_sorted(starts.begin(), starts.end()))
    throw std::invalid_argument("starts, keys and weights must be those of a model");
  if (width_)
    for (const std::uint64_t key : keys)
      if (key >= width_) throw std::invalid_argument("keys: below the width");
  stride_ = outputs() == 1 ? 1 : (outputs() + block - 1) / block * block;
  const std::size_t most = std::max(small, sparse * keys.size());
  if (width_ && width_ <= most / stride_) make_table(starts, keys, weights);
  else make_slots(starts, keys, weights);
}

void Scorer::make_table(std::span<const std::int64_t> starts, std::span<const std::uint64_t> keys,
                        std::span<const double> weights) {
  bool exact = true;
  for (const double weight : weights)
    exact &= static_cast<double>(static_cast<float>(weight)) == weight;
  padded_.assign(stride_, 0.0);
  std::copy(intercepts_.begin(), intercepts_.end(), padded_.begin());
  const auto fill = [&]<class Weight>(ZeroedArray<Weight>& table) {
    table = ZeroedArray<Weight>(width_ * stride_);
    for (std::size_t output = 0; output < outputs(); ++output)
      for (auto i = static_cast<std::size_t>(starts[output]);
           i < static_cast<std::size_t>(starts[output + 1]); ++i)
        table[keys[i] * stride_ + output] = static_cast<Weight>(weights[i]);
  };
  if (exact) fill(floats_);
  else fill(doubles_);
}

void Scorer::make_slots(std::span<const std::int64_t> starts, std::span<const std::uint64_t> keys,
                        std::span<const double> weights) {
  struct Known {
    std::uint64_t key;
    Entry entry;
  };
  std::vector<Known> known;
  known.reserve(keys.size());
  for (std::size_t output = 0; output < outputs(); ++output)
    for (auto i = static_cast<std::size_t>(starts[output]);
         i < static_cast<std::size_t>(starts[output + 1]); ++i)
      known.push_back({keys[i], {output, weights[i]}});
  if (known.size() >= std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument("weights: fewer than 2^32");
  const auto before = [](const Known& a, const Known& b) { return a.key < b.key; };
  if (!std::is_sorted(known.begin(), known.end(), before))
    std::stable_sort(known.begin(), known.end(), before);
  slots_.resize(std::bit_ceil(2 * known.size() + 2));
  bits_.resize(std::bit_ceil(16 * known.size() + 64) / 64);
  slot_shift_ = 65 - static_cast<int>(std::bit_width(slots_.size()));
  bit_shift_ = 65 - static_cast<int>(std::bit_width(64 * bits_.size()));
  entries_.reserve(known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::uint64_t key = known[i].key, bit = mixed(key) >> bit_shift_;
    bits_[bit / 64] |= std::uint64_t{1} << bit % 64;
    Slot& slot = slots_[static_cast<std::size_t>(find(key) - slots_.data())];
    if (slot.begin == slot.end)
      slot = {key, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i)};
    ++slot.end;
    entries_.push_back(known[i].entry);
  }
}

const Scorer::Slot* Scorer::find(std::uint64_t key) const {
  std::size_t at = mixed(key) >> slot_shift_;
  while (slots_[at].begin != slots_[at].end && slots_[at].key != key)
    at = (at + 1) & (slots_.size() - 1);
  return &slots_[at];
}

std::size_t Scorer::bytes() const {
  return floats_.size() * sizeof(float) +
         (doubles_.size() + padded_.size() + intercepts_.size()) * sizeof(double) +
         slots_.size() * sizeof(Slot) + entries_.size() * sizeof(Entry) + bits_.size() * 8;
}

template <class F>
void Scorer::with_table(F&& f) const {
  if (floats_.size()) f(Table<float>{floats_.data(), outputs(), stride_, padded_.data(), width_});
  else f(Table<double>{doubles_.data(), outputs(), stride_, padded_.data(), width_});
}

void Scorer::score(const Batch& batch, bool ignores, std::size_t threads, double* out) const {
  const std::int64_t values = start_of(batch, batch.rows) - start_of(batch, 0);
  in_parts(batch.rows, rows_of_part(batch.rows, values), threads,
           [&](std::int64_t first, std::int64_t last) {
             std::visit(
                 [&](auto keys, auto values) {
                   if constexpr (!std::is_same_v<decltype(keys), std::monostate>)
                     score_csr(batch, keys, values, ignores, first, last, out);
                 },
                 batch.keys, batch.values);
           });
}

template <class Key, class Value>
void Scorer::score_csr(const Batch& batch, const Key* keys, const Value* values, bool ignores,
                       std::int64_t first, std::int64_t last, double* out) const {
  const auto largest = [&](std::int64_t from, std::int64_t to) {
    const auto n = static_cast<std::size_t>(to - from);
    if constexpr (sizeof(Key) == 4) return kernels_.largest_32(keys + from, n);
    else return kernels_.largest_64(keys + from, n);
  };
  // Compared as unsigned numbers, negative keys are large.
  constexpr std::uint64_t negative = std::uint64_t{1} << (8 * sizeof(Key) - 1);
  const std::uint64_t limit = std::min<std::uint64_t>(width_, negative);
  std::int64_t starts[rows_at_once + 1];
  const std::int64_t total = start_of(batch, batch.rows);
  for (std::int64_t row = first; row < last; row += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, last - row);
    for (std::int64_t r = 0; r <= count; ++r) starts[r] = start_of(batch, row + r);
    const bool known =
        !width_ || starts[0] == starts[count] || largest(starts[0], starts[count]) < limit;
    if (!known && !ignores)
      for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t i = starts[r]; i < starts[r + 1]; ++i)
          if (static_cast<std::uint64_t>(keys[i]) >= width_) refuse_key(row + r, keys[i], width_);
    double* const scores = out + static_cast<std::size_t>(row) * outputs();
    if (is_table() && known) {
      const SparseRows<Key, Value> rows{starts, keys, values, count, total};
      with_table([&]<class Weight>(const Table<Weight>& table) {
        const auto& kernel = kernels_for<Weight, Value>(kernels_);
        if constexpr (sizeof(Key) == 4) kernel.sparse_32(table, rows, scores);
        else kernel.sparse_64(table, rows, scores);
      });
    } else {
      for (std::int64_t r = 0; r < count; ++r) {
        double* const sums = scores + static_cast<std::size_t>(r) * outputs();
        const auto n = static_cast<std::size_t>(starts[r + 1] - starts[r]);
        if (is_table()) by_known_keys(keys + starts[r], values + starts[r], n, sums);
        else by_slots(keys + starts[r], values + starts[r], n, sums);
      }
    }
    if (all_finite(scores, static_cast<std::size_t>(count) * outputs())) continue;
    for (std::int64_t r = 0; r < count; ++r) {
      if (all_finite(scores + static_cast<std::size_t>(r) * outputs(), outputs())) continue;
      for (std::int64_t i = starts[r]; i < starts[r + 1]; ++i)
        if (!std::isfinite(values[i] * values[i]))
          refuse_value(row + r, static_cast<std::int64_t>(keys[i]), static_cast<double>(values[i]));
      refuse_prediction(row + r);
    }
  }
}

// A row with keys outside the width, which have no weights.
template <class Key, class Value>
void Scorer::by_known_keys(const Key* keys, const Value* values, std::size_t n, double* out) const {
  std::fill(out, out + outputs(), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const auto key = static_cast<std::uint64_t>(keys[i]);
    const auto x = static_cast<double>(values[i]);
    with_table([&](const auto& table) {
      const auto* const w = key < width_ ? table.weights + key * stride_ : nullptr;
      for (std::size_t o = 0; o < outputs(); ++o)
        out[o] += (w ? static_cast<double>(w[o]) : 0.0) * x;
    });
  }
  for (std::size_t o = 0; o < outputs(); ++o) out[o] += intercepts_[o];
}

template <class Key, class Value>
void Scorer::by_slots(const Key* keys, const Value* values, std::size_t n, double* out) const {
  constexpr std::size_t few = 256;
  std::uint32_t found[few];  // places of the features that may have weights
  std::fill(out, out + outputs(), 0.0);
  bool finite = true;
  for (std::size_t from = 0; from < n; from += few) {
    const std::size_t count = std::min(few, n - from);
    std::size_t kept = 0;
    for (std::size_t i = from; i < from + count; ++i) {  // without branches
      const std::uint64_t bit = mixed(static_cast<std::uint64_t>(keys[i])) >> bit_shift_;
      found[kept] = static_cast<std::uint32_t>(i - from);
      kept += bits_[bit / 64] >> bit % 64 & 1;
    }
    for (std::size_t i = 0; i < kept; ++i)
      __builtin_prefetch(
          &slots_[mixed(static_cast<std::uint64_t>(keys[from + found[i]])) >> slot_shift_]);
    for (std::size_t i = 0; i < kept; ++i) {
      const Slot& slot = *find(static_cast<std::uint64_t>(keys[from + found[i]]));
      const auto x = static_cast<double>(values[from + found[i]]);
      for (std::size_t e = slot.begin; e < slot.end; ++e)
        out[entries_[e].output] += entries_[e].weight * x;
    }
    for (std::size_t i = from; i < from + count; ++i)
      finite &= std::fabs(values[i]) <= std::numeric_limits<Value>::max();
  }
  for (std::size_t o = 0; o < outputs(); ++o) out[o] += intercepts_[o];
  if (!finite) out[0] = std::numeric_limits<double>::quiet_NaN();  // the caller finds the value
}

void Scorer::score(const Array& array, std::size_t threads, double* out) const {
  if (width_ && static_cast<std::uint64_t>(array.columns) > width_)
    refuse_key(0, array.columns - 1, width_);
  in_parts(array.rows, rows_of_part(array.rows, array.rows * array.columns), threads,
           [&](std::int64_t first, std::int64_t last) {
             std::visit([&](auto values) { score_array(array, values, first, last, out); },
                        array.values);
           });
}

template <class Value>
void Scorer::score_array(const Array& array, const Value* values, std::int64_t first,
                         std::int64_t last, double* out) const {
  const auto columns = static_cast<std::size_t>(array.columns);
  const std::int64_t at_once = 2048;
  std::vector<std::int64_t> keys;
  std::vector<Value> row_values;
  if (!is_table())
    for (std::int64_t j = 0; j < array.columns; ++j) keys.push_back(j);
  for (std::int64_t row = first; row < last; row += at_once) {
    const std::int64_t count = std::min(at_once, last - row);
    double* const scores = out + static_cast<std::size_t>(row) * outputs();
    if (is_table()) {
      const DenseRows<Value> rows{values + row * array.row_stride, count, columns,
                                  static_cast<std::size_t>(array.row_stride),
                                  static_cast<std::size_t>(array.column_stride)};
      with_table([&]<class Weight>(const Table<Weight>& table) {
        kernels_for<Weight, Value>(kernels_).dense(table, rows, scores);
      });
    } else {
      row_values.resize(columns);
      for (std::int64_t r = 0; r < count; ++r) {
        for (std::int64_t j = 0; j < array.columns; ++j)
          row_values[static_cast<std::size_t>(j)] =
              values[(row + r) * array.row_stride + j * array.column_stride];
        by_slots(keys.data(), row_values.data(), columns,
                 scores + static_cast<std::size_t>(r) * outputs());
      }
    }
    if (all_finite(scores, static_cast<std::size_t>(count) * outputs())) continue;
    for (std::int64_t r = 0; r < count; ++r) {
      if (all_finite(scores + static_cast<std::size_t>(r) * outputs(), outputs())) continue;
      for (std::int64_t j = 0; j < array.columns; ++j) {
        const Value x = values[(row + r) * array.row_stride + j * array.column_stride];
        if (!std::isfinite(x * x)) refuse_value(row + r, j, static_cast<double>(x));
      }
      refuse_prediction(row + r);
    }
  }
}

}  // namespace thresher::predict
