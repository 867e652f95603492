// The columns of a working set, side by side in memory, with what a Newton step needs of them.
//
//   H    the Hessian of the mean loss on the set: H_jk = sum_i h_i x_ij x_ik
//   h_i  s_i L''(z_i, y_i) / S
//
// An intercept b that is not penalised is eliminated from the quadratic model: for every d it has
// its best value. Then column j is x_j minus its mean with weights h, and
//
//   H_jj - (sum_i h_i x_ij)^2 / sum_i h_i      replaces H_jj
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace thresher {

struct WorkingSet {
  std::vector<std::uint32_t> features;  // ascending
  std::vector<std::size_t> starts;      // of the columns
  std::vector<std::uint32_t> rows;
  std::vector<double> x, hx;         // x_ij and h_i x_ij
  std::vector<double> curvature;     // H_jj, or what replaces it
  std::vector<double> sums;          // sum_i h_i x_ij
  std::vector<double> w, d;          // the weights, and the step
  std::vector<std::uint32_t> moves;  // columns, by position, with a nonzero weight after the step

  std::size_t size() const { return features.size(); }

  // Copies column after column of a CSC matrix.
  template <class Start, class Key, class Value>
  void pack(const Start* from, const Key* keys, const Value* values) {
    starts.assign(1, 0);
    rows.clear(), x.clear();
    for (const std::uint32_t j : features) {
      for (Start k = from[j]; k < from[j + 1]; ++k) {
        rows.push_back(static_cast<std::uint32_t>(keys[k]));
        x.push_back(static_cast<double>(values[k]));
      }
      starts.push_back(rows.size());
    }
    hx.resize(x.size());
    for (auto* each : {&curvature, &sums, &w, &d}) each->resize(size());
  }

  // Computes hx, the curvatures and the sums for h. `total` is sum_i h_i, or 0 without intercept;
  // `least[j]`, by feature, is a lower bound that keeps steps finite. Returns max_j |x_j . v|.
  double weigh(std::span<const double> h, std::span<const double> v, double total,
               std::span<const double> least);

  // Minimises the model over the columns in `moves` by their part of H, as a dense matrix, until a
  // scan lowers it by at most `still`. For few columns with many rows. r_i + h_i shift is the
  // derivative of the model by z_i before; it is not updated. Returns the new shift.
  double solve_dense(std::span<const double> r, double shift, double total, double l1,
                     double still);

  // The gradient sum_i r_i x_ij of the column at a position: four sums that do not wait for each
  // other.
  double dot(std::size_t at, const double* r) const {
    const std::size_t end = starts[at + 1];
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    std::size_t k = starts[at];
    for (; k + 4 <= end; k += 4)
      for (std::size_t lane = 0; lane < 4; ++lane) sum[lane] += x[k + lane] * r[rows[k + lane]];
    for (; k < end; ++k) sum[0] += x[k] * r[rows[k]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
};

}  // namespace thresher
