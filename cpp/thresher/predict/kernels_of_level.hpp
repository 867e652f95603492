// The kernels of predictions. Each file kernels_<level>.cpp defines THRESHER_BYTES, the size of its
// vectors, and includes this file.
//
// CSR rows are read in the order of memory, because the processor fetches that in advance. It adds
// the products of several rows at the same time by itself. If weights are double, values are
// fetched with the hint that they are used once: the weights stay in the caches (1.3x).
#pragma once

#include <cstring>
#include <type_traits>

#include "thresher/predict/kernels.hpp"

namespace thresher::predict {
namespace {

using Wide = double __attribute__((vector_size(THRESHER_BYTES)));
using Narrow = float __attribute__((vector_size(THRESHER_BYTES / 2)));
constexpr std::size_t lanes = sizeof(Wide) / sizeof(double);
constexpr std::size_t parts = block / lanes;  // vectors of a block of outputs
constexpr std::size_t room = 2048;            // products in memory at a time

// Not that of the standard library: the linker would keep one copy for all levels.
template <class T>
[[gnu::always_inline]] inline T least(T a, T b) {
  return b < a ? b : a;
}

// A vector of weights.
[[gnu::always_inline]] inline Wide load(const double* from) {
  Wide wide;
  std::memcpy(&wide, from, sizeof wide);
  return wide;
}
[[gnu::always_inline]] inline Wide load(const float* from) {
  Narrow narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, Wide);
}

// Writes the sums of `Rows` rows to `out`. Row r has the products from[r] .. from[r + 1] - 1.
template <std::size_t Rows>
[[gnu::always_inline]] inline void add_up(const double* products, const std::int64_t* from,
                                          double b, double* out) {
  const std::int64_t offset = from[0];
  std::int64_t n = from[1] - from[0];
  for (std::size_t r = 1; r < Rows; ++r) n = least(n, from[r + 1] - from[r]);
  const double* at[Rows];
  double sums[Rows];
  for (std::size_t r = 0; r < Rows; ++r) at[r] = products + (from[r] - offset), sums[r] = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::size_t r = 0; r < Rows; ++r) sums[r] += at[r][i];
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::int64_t i = n; i < from[r + 1] - from[r]; ++i) sums[r] += at[r][i];
    out[r] = sums[r] + b;
  }
}

// ---- CSR rows --------------------------------------------------------------------------------

template <class Weight, class Key, class Value>
void sparse_one(const Table<Weight>& table, const SparseRows<Key, Value>& rows, double* out) {
  using Unsigned = std::make_unsigned_t<Key>;
  constexpr std::int64_t ahead = 256, line = 64;  // nonzeros; bytes
  const Weight* const w = table.weights;
  const Key* const keys = rows.keys;
  const Value* const x = rows.values;
  [[maybe_unused]] std::int64_t fetched_keys = rows.starts[0], fetched_values = rows.starts[0];
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::int64_t begin = rows.starts[row], end = rows.starts[row + 1];
    if constexpr (sizeof(Weight) == 8) {
      const std::int64_t to = least(end + ahead, rows.total);
      for (; fetched_keys < to; fetched_keys += line / static_cast<std::int64_t>(sizeof(Key)))
        __builtin_prefetch(keys + fetched_keys, 0, 0);
      for (; fetched_values < to; fetched_values += line / static_cast<std::int64_t>(sizeof(Value)))
        __builtin_prefetch(x + fetched_values, 0, 0);
    }
    double sum = 0.0;
    for (std::int64_t i = begin; i < end; ++i)
      sum += static_cast<double>(w[static_cast<Unsigned>(keys[i])]) * static_cast<double>(x[i]);
    out[row] = sum + table.intercepts[0];
  }
}

// Writes the sums of the outputs at .. at + block - 1 of one row.
template <class Weight>
[[gnu::always_inline]] inline void write_block(const Table<Weight>& table, const Wide* sums,
                                               std::size_t at, double* out) {
  double found[block];
  std::memcpy(found, sums, sizeof found);
  const std::size_t n = least(block, table.outputs - at);
  for (std::size_t o = 0; o < n; ++o) out[at + o] = found[o] + table.intercepts[at + o];
}

// Sums of `Blocks` blocks of outputs, from output `first` on.
template <std::size_t Blocks, class Weight, class Key, class Value>
void sparse_blocks(const Table<Weight>& table, const SparseRows<Key, Value>& rows,
                   std::size_t first, double* out) {
  using Unsigned = std::make_unsigned_t<Key>;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    Wide sums[Blocks * parts] = {};
    for (std::int64_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
      const Weight* const cell =
          table.weights + static_cast<Unsigned>(rows.keys[i]) * table.stride + first;
      const auto x = static_cast<double>(rows.values[i]);
      for (std::size_t j = 0; j < Blocks * parts; ++j) sums[j] += load(cell + j * lanes) * x;
    }
    for (std::size_t j = 0; j < Blocks; ++j)
      write_block(table, sums + j * parts, first + j * block,
                  out + static_cast<std::size_t>(row) * table.outputs);
  }
}

template <class Weight, class Key, class Value>
void sparse(const Table<Weight>& table, const SparseRows<Key, Value>& rows, double* out) {
  if (table.outputs == 1) {
    sparse_one(table, rows, out);
    return;
  }
  constexpr std::size_t most = parts > 2 ? 1 : 2;  // blocks whose sums fit into registers
  std::size_t at = 0;
  for (; at + (most - 1) * block < table.outputs; at += most * block)
    sparse_blocks<most>(table, rows, at, out);
  if (at < table.outputs) sparse_blocks<1>(table, rows, at, out);
}

// ---- rows of an array ------------------------------------------------------------------------

// One output, short rows: like CSR rows.
template <class Weight, class Value>
void dense_short(const Table<Weight>& table, const DenseRows<Value>& rows, std::size_t count,
                 double* out) {
  constexpr std::size_t group = 8;
  double products[room];
  std::int64_t from[group + 1];
  const std::size_t n = rows.columns;
  for (std::size_t r = 0; r <= group; ++r) from[r] = static_cast<std::int64_t>(r * n);
  for (std::size_t row = 0; row < count;) {
    const std::size_t together = count - row >= group ? group : 1;
    for (std::size_t r = 0; r < together; ++r) {
      const Value* const x = rows.values + (row + r) * rows.row_stride;
      for (std::size_t j = 0; j < n; ++j)
        products[r * n + j] = static_cast<double>(table.weights[j]) * static_cast<double>(x[j]);
    }
    if (together == group) add_up<group>(products, from, table.intercepts[0], out + row);
    else add_up<1>(products, from, table.intercepts[0], out + row);
    row += together;
  }
}

// One output: `Rows` long rows at a time.
template <std::size_t Rows, class Weight, class Value>
void dense_long(const Table<Weight>& table, const Value* x, std::size_t stride, std::size_t columns,
                double* out) {
  double sums[Rows] = {};
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t r = 0; r < Rows; ++r)
      sums[r] += static_cast<double>(table.weights[j]) * static_cast<double>(x[r * stride + j]);
  for (std::size_t r = 0; r < Rows; ++r) out[r] = sums[r] + table.intercepts[0];
}

// One output, contiguous columns.
template <class Weight, class Value>
void dense_columns(const Table<Weight>& table, const DenseRows<Value>& rows, std::size_t count,
                   double* out) {
  for (std::size_t row = 0; row < count; row += room) {
    const std::size_t n = least(room, count - row);
    double* const sums = out + row;
    for (std::size_t r = 0; r < n; ++r) sums[r] = 0.0;
    for (std::size_t j = 0; j < rows.columns; ++j) {
      const Value* const x = rows.values + row + j * rows.column_stride;
      const auto w = static_cast<double>(table.weights[j]);
      for (std::size_t r = 0; r < n; ++r) sums[r] += w * static_cast<double>(x[r]);
    }
    for (std::size_t r = 0; r < n; ++r) sums[r] += table.intercepts[0];
  }
}

// A block of outputs of `Rows` rows.
template <std::size_t Rows, class Weight, class Value>
void dense_block(const Table<Weight>& table, const DenseRows<Value>& rows, std::size_t row,
                 std::size_t at, double* out) {
  Wide sums[Rows * parts] = {};
  const Value* const x = rows.values + row * rows.row_stride;
  for (std::size_t j = 0; j < rows.columns; ++j) {
    Wide w[parts];
    for (std::size_t p = 0; p < parts; ++p)
      w[p] = load(table.weights + j * table.stride + at + p * lanes);
    for (std::size_t r = 0; r < Rows; ++r) {
      const auto value = static_cast<double>(x[r * rows.row_stride + j * rows.column_stride]);
      for (std::size_t p = 0; p < parts; ++p) sums[r * parts + p] += w[p] * value;
    }
  }
  for (std::size_t r = 0; r < Rows; ++r)
    write_block(table, sums + r * parts, at, out + (row + r) * table.outputs);
}

template <class Weight, class Value>
void dense(const Table<Weight>& table, const DenseRows<Value>& rows, double* out) {
  const auto count = static_cast<std::size_t>(rows.count);
  std::size_t row = 0;
  if (table.outputs == 1 && rows.column_stride != 1) {
    dense_columns(table, rows, count, out);
  } else if (table.outputs == 1 && rows.columns * 8 <= room) {
    dense_short(table, rows, count, out);
  } else if (table.outputs == 1) {
    const auto at = [&] { return rows.values + row * rows.row_stride; };
    for (; row + 4 <= count; row += 4)
      dense_long<4>(table, at(), rows.row_stride, rows.columns, out + row);
    for (; row < count; ++row) dense_long<1>(table, at(), rows.row_stride, rows.columns, out + row);
  } else {
    constexpr std::size_t together = parts > 2 ? 2 : 4;
    for (; row + together <= count; row += together)
      for (std::size_t at = 0; at < table.outputs; at += block)
        dense_block<together>(table, rows, row, at, out);
    for (; row < count; ++row)
      for (std::size_t at = 0; at < table.outputs; at += block)
        dense_block<1>(table, rows, row, at, out);
  }
}

template <class Key>
std::uint64_t largest(const Key* keys, std::size_t n) {
  std::make_unsigned_t<Key> most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto key = static_cast<std::make_unsigned_t<Key>>(keys[i]);
    most = most < key ? key : most;
  }
  return most;
}

template <class Weight, class Value>
KernelsOf<Weight, Value> some() {
  return {sparse<Weight, std::int32_t, Value>, sparse<Weight, std::int64_t, Value>,
          dense<Weight, Value>};
}

Kernels all_kernels() {
  return {some<float, float>(),   some<float, double>(), some<double, float>(),
          some<double, double>(), largest<std::int32_t>, largest<std::int64_t>};
}

}  // namespace
}  // namespace thresher::predict
