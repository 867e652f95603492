// The margin perceptron (rules/margin_perceptron.hpp) on a block of columns: rows are split by
// columns, and each block learns the weights of its features.
//
// For a batch of rows each block computes its part of their inner products,
//
//   q_i = sum over its features of w_j x_ij,          p_i = sum over blocks of q_i
//
// with the weights before the batch, and receives the sums p_i. Then it learns from the rows in
// their order, without the updates that other blocks make in the batch. It assumes that the whole
// product changes by r_i = ||x_i||^2 / ||x_i, its features||^2 times as much as its own part: this
// is exact for an update by row i itself. With q'_i, its part computed from its current weights:
//
//   if y (p_i + r_i (q'_i - q_i)) <= tau:   w_j <- S(w_j + eta y x_ij, lambda)   for x_ij != 0
//
// With batches of one row, or with one block, this is the rule itself. If a block has no feature of
// a row, r_i = 0: the row makes no update, and shrinks the block's weights only with `Everywhere`.
// A row makes as many steps as its weight says (core/repeats.hpp), all of them in its batch: with
// several blocks, the steps after the first use the assumption above.
//
// The rule's bound of ||w||^2 bounds the weights of this block, because it uses q'_i: the sum over
// blocks bounds ||w||^2 of the whole model.
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

  // The block's part of the inner products of these rows, with the intercept if the block has it.
  virtual std::vector<double> products(const Batch& batch, const Visit& visit) = 0;

  // Learns from the rows of the last products(); `sums` has their p_i, `reach` has r_i of every row
  // of the batch. Returns for each row whether it made an update.
  virtual std::vector<bool> learn(const Batch& batch, const Visit& visit, const double* sums,
                                  const float* reach) = 0;

  virtual std::pair<std::vector<std::int64_t>, std::vector<double>> weights() const = 0;
  virtual double intercept() const = 0;
  virtual std::map<std::string, double> facts() const = 0;

  // Call these between two batches. If restore() throws, the block is unchanged.
  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

std::unique_ptr<MarginBlock> make_margin_block(const std::string& dtype, std::uint64_t width,
                                               const Params& params);

// ---- splitting rows by columns -----------------------------------------------------------------

template <class Real>
struct CutRows {
  std::vector<std::uint64_t> keys;
  std::vector<Real> values;
  std::vector<std::int32_t> counts;  // number of values of each row
  std::vector<float> reach;          // r_i of each row
};

// Splits the rows of a batch by columns. Values of repeated keys are added. The intercept is a
// feature of the first block with x = 1. `squares` becomes the largest ||x||^2. Throws DataError
// for the first row with a key at or above the width, or with a value that is not finite.
template <class Real>
std::vector<CutRows<Real>> cut_columns(const Batch& batch, std::uint64_t width, std::size_t blocks,
                                       bool intercept, double& squares);

}  // namespace thresher
