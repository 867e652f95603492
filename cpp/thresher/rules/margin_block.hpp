// The margin perceptron (margin_perceptron.hpp) on some of the features: rows are cut into blocks of columns, and
// a block has weights of its own.
//
// For a batch of rows each block gives its share of their inner products,
//
//   q_i = sum over its features of w_j x_ij,          p_i = sum over blocks of q_i
//
// all with the weights before the batch, and is told the sums p_i. It then goes through the rows in their
// order. What the other blocks do meanwhile it cannot know: it takes it that the product changes by as much more
// than its share as ||x_i||^2 is more than that of its features, which is so for what the row itself changes,
//
//   if y (p_i + r_i (q'_i - q_i)) <= tau:   w_j <- S(w_j + eta y x_ij, lambda)   for x_ij != 0
//
// with r_i this ratio, and q'_i its share as it is by now. A batch of one row, or one block, is the rule itself. A
// block that has nothing of a row, r_i = 0, only shrinks by it, and with `Everywhere` alone.
//
// The bound of ||w||^2 that the rule keeps is one of the block's own weights, as it is made of their share q'_i: the
// sum over blocks is one of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/rules/params.hpp"

namespace thresher {

class MarginBlock {
 public:
  virtual ~MarginBlock() = default;

  std::mutex mutex;  // for callers with threads

  // The block's share of the inner products of these rows, with its intercept where it has one.
  virtual std::vector<double> products(const Batch& batch, const Visit& visit) = 0;

  // Learns from the rows of the last products, whose sums are given; for each, whether it made an update.
  // `reach` has r_i of every row of the batch.
  virtual std::vector<bool> learn(const Batch& batch, const Visit& visit, const double* sums,
                                  const float* reach) = 0;

  virtual std::pair<std::vector<std::int64_t>, std::vector<double>> weights() const = 0;
  virtual double intercept() const = 0;
  virtual std::map<std::string, double> facts() const = 0;

  // Between two batches.
  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

std::unique_ptr<MarginBlock> make_margin_block(const std::string& dtype, std::uint64_t width,
                                               const Params& params);

// ---- cutting rows into blocks -------------------------------------------------------------------

template <class Real>
struct CutRows {
  std::vector<std::uint64_t> keys;
  std::vector<Real> values;
  std::vector<std::int32_t> counts;  // of each row
  std::vector<float> reach;          // r of each row
};

// The rows of a batch in blocks of columns. Repeated keys add up. The intercept is a feature of the first block with
// x = 1. `squares` becomes the largest ||x||^2.
// Throws DataError for the first row that has a key at or above the width, or a value that is not finite.
template <class Real>
std::vector<CutRows<Real>> cut_columns(const Batch& batch, std::uint64_t width, std::size_t blocks,
                                       bool intercept, double& squares);

}  // namespace thresher
