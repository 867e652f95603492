// Kernels of predictions for each vector level: tables of functions, chosen at run time.
//
// Each output of each row is a sum in the order of the row's values, one product after the other.
// So all levels, and rows as CSR, as an array in C order or in Fortran order, give the same bits.
//
// Weights are float if that changes none of them: the table then needs less of the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace thresher::predict {

constexpr std::size_t block = 8;  // the weights of a feature are padded to a multiple of this

// The weights of all outputs: those of a feature lie together. With one output, without padding.
template <class Weight>
struct Table {
  const Weight* weights;
  std::size_t outputs, stride;  // stride: between features
  const double* intercepts;     // padded like the weights
  std::uint64_t width;          // number of features
};

// CSR rows. Their keys are below the width.
template <class Key, class Value>
struct SparseRows {
  const std::int64_t* starts;
  const Key* keys;
  const Value* values;
  std::int64_t count;  // of rows
  std::int64_t total;  // of keys and values, to fetch later ones
};

// Rows of an array. One of the strides is 1.
template <class Value>
struct DenseRows {
  const Value* values;
  std::int64_t count;
  std::size_t columns, row_stride, column_stride;
};

template <class Weight, class Value>
struct KernelsOf {
  void (*sparse_32)(const Table<Weight>&, const SparseRows<std::int32_t, Value>&, double* out);
  void (*sparse_64)(const Table<Weight>&, const SparseRows<std::int64_t, Value>&, double* out);
  void (*dense)(const Table<Weight>&, const DenseRows<Value>&, double* out);
};

struct Kernels {
  KernelsOf<float, float> floats_floats;
  KernelsOf<float, double> floats_doubles;
  KernelsOf<double, float> doubles_floats;
  KernelsOf<double, double> doubles_doubles;
  // The largest of some keys as unsigned numbers, so that a negative key is larger than all others.
  std::uint64_t (*largest_32)(const std::int32_t* keys, std::size_t n);
  std::uint64_t (*largest_64)(const std::int64_t* keys, std::size_t n);
};

// Throws if this machine does not have the level; "auto" is the widest that it has.
const Kernels& kernels(const std::string& level);

template <class Weight, class Value>
const KernelsOf<Weight, Value>& kernels_for(const Kernels& all) {
  if constexpr (sizeof(Weight) == 4 && sizeof(Value) == 4) return all.floats_floats;
  else if constexpr (sizeof(Weight) == 4) return all.floats_doubles;
  else if constexpr (sizeof(Value) == 4) return all.doubles_floats;
  else return all.doubles_doubles;
}

}  // namespace thresher::predict
