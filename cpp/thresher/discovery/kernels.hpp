// Kernels of feature discovery on the cells of a row, for each vector level (lanes/kernels.hpp).
#pragma once

#include <cstddef>
#include <string>

#include "thresher/discovery/bank.hpp"
#include "thresher/lanes/kernels.hpp"

namespace thresher::discovery {

// A cell of the model: lines of 8 and of 4 lanes, each z, then sqrt(n); then sum x^2, the number of
// values, and 1 / rms(x).
inline constexpr std::size_t squares_at = 2 * lanes_of_model, values_at = squares_at + 1,
                             scale_at = squares_at + 2, model_numbers = squares_at + 3;

template <class Real>
struct Kernels {
  // w_j of the lanes for each nonzero: 12 numbers in `weights`; in `pooled`, four numbers whose sum
  // is the mean of w_j by the shares of the lanes. dot: the inner products of the lanes with x.
  void (*open)(const lanes::RowOfCells<Real>&, const Real* shares, Real* weights, Real* pooled,
               double* dot);
  // A step. slope: h g per lane; growth: h^2 (g^2 + 2 v) / 3 per lane.
  void (*close)(const lanes::RowOfCells<Real>&, const Real* slope, const Real* growth,
                const Real* weights);
  // draws[r] = [uniforms[r] < p] - p, for a count that is a multiple of 4.
  void (*draw)(const Real* uniforms, Real p, std::size_t count, Real* draws);
  // For each nonzero, adds first[k] draws to the `count` numbers of its cell at `at`, and second[k]
  // draws to the next ones; `second` may be null.
  void (*add)(const lanes::RowOfCells<Real>&, std::size_t at, std::size_t count, const Real* draws,
              const Real* first, const Real* second);
};

template <class Real>
const Kernels<Real>& kernels(const std::string& level);

}  // namespace thresher::discovery
