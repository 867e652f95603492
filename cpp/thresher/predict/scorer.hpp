// Raw predictions of many rows by the weights of a model.
//
// A model with few features has a table of all its weights. Other models have a hash table of the
// features that have weights, behind a table of bits: most features of a row have none.
//
// Values of a row are used in their order: nothing is sorted, and repeated keys are not merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/predict/kernels.hpp"
#include "thresher/stores/pages.hpp"

namespace thresher::predict {

// Rows of an array; one of the strides is 1.
struct Array {
  Batch::Values values;
  std::int64_t rows, columns, row_stride, column_stride;
};

// Throws if the starts of CSR rows decrease, or reach beyond the `size` keys.
void check_starts(const Batch& batch, std::size_t size);

class Scorer {
 public:
  // The kernels are those of a vector level. Output k has the weights starts[k] .. starts[k + 1] - 1. Keys are below the width; 0: any key.
  Scorer(std::span<const std::int64_t> starts, std::span<const std::uint64_t> keys,
         std::span<const double> weights, std::span<const double> intercepts, std::uint64_t width,
         const std::string& level = "auto");

  std::size_t outputs() const { return intercepts_.size(); }
  bool is_table() const { return doubles_.size() + floats_.size() > 0; }
  std::size_t bytes() const;

  // Writes the outputs of row 0, then those of row 1, and so on. The number of threads does not
  // change any bit. Keys outside the width are ignored, or refused with an error.
  void score(const Batch& batch, bool ignores, std::size_t threads, double* out) const;
  void score(const Array& array, std::size_t threads, double* out) const;

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t begin = 0, end = 0;  // of its entries; equal: the slot is empty
  };
  struct Entry {
    std::size_t output;
    double weight;
  };

  void make_table(std::span<const std::int64_t> starts, std::span<const std::uint64_t> keys,
                  std::span<const double> weights);
  void make_slots(std::span<const std::int64_t> starts, std::span<const std::uint64_t> keys,
                  std::span<const double> weights);
  template <class F>
  void with_table(F&& f) const;  // calls f(table)

  template <class Key, class Value>
  void score_csr(const Batch& batch, const Key* keys, const Value* values, bool ignores,
                 std::int64_t first, std::int64_t last, double* out) const;
  template <class Key, class Value>
  void by_slots(const Key* keys, const Value* values, std::size_t n, double* out) const;
  template <class Key, class Value>
  void by_known_keys(const Key* keys, const Value* values, std::size_t n, double* out) const;
  template <class Value>
  void score_array(const Array& array, const Value* values, std::int64_t first, std::int64_t last,
                   double* out) const;

  static std::uint64_t mixed(std::uint64_t key) { return key * 0x9E3779B97F4A7C15u; }
  const Slot* find(std::uint64_t key) const;

  std::vector<double> intercepts_;  // of the outputs
  std::uint64_t width_;
  const Kernels& kernels_;

  ZeroedArray<double> doubles_{0};  // the table of weights, in one of two forms
  ZeroedArray<float> floats_{0};
  std::vector<double> padded_;  // intercepts for the kernels
  std::size_t stride_ = 1;

  std::vector<Slot> slots_;
  std::vector<Entry> entries_;       // by feature
  std::vector<std::uint64_t> bits_;  // bit h: some feature with hash h has weights
  int slot_shift_ = 0, bit_shift_ = 0;
};

}  // namespace thresher::predict
