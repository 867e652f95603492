// How the robust rule judges a feature, and how many features it keeps
// (stabilized/robust/robust.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace thresher {

// The rows so far: sums over rows of weight h > 0.
struct RowTotals {
  double weight = 0.0, squares = 0.0, positive = 0.0;  // of h, of h^2, and of h in positive rows

  void add(double h, double label) {
    weight += h, squares += h * h;
    if (label > 0) positive += h;
  }
  void add(const RowTotals& other) {
    weight += other.weight, squares += other.squares, positive += other.positive;
  }
};

// The relation of a feature to the label: sums over rows, so that they do not depend on batches.
struct LabelSums {
  double x = 0.0, squares = 0.0, positive = 0.0;  // of h x, of h x^2, and of h x in positive rows

  void add(double h, double value, double label) {
    x += h * value, squares += h * value * value;
    if (label > 0) positive += h * value;
  }

  void add(const LabelSums& other) {
    x += other.x, squares += other.squares, positive += other.positive;
  }

  // z of the covariance of feature and label; 0 if one of them is constant. If labels were random,
  // it would have mean 0 and variance 1, and be about normal for a feature in many rows of each
  // class. A row of weight h is one row, not h rows.
  double z(const RowTotals& rows) const {
    if (!(rows.weight > 0)) return 0.0;
    const double share = rows.positive / rows.weight;
    const double spread = squares - x * x / rows.weight;
    if (!(spread > 1e-12 * squares)) return 0.0;  // constant, up to rounding
    const double variance = share * (1.0 - share) * spread * (rows.squares / rows.weight);
    return variance > 0 ? (positive - share * x) / std::sqrt(variance) : 0.0;
  }
};

struct RobustFeature {
  static constexpr std::int64_t kept = -1;
  static constexpr double unknown = -1.0;  // probability of a feature not judged yet

  double Z = 0.0, W = 0.0;       // means over the paths, summed over the stages
  double squares = 0.0;          // sum of x_j^2 over the rows
  double probability = unknown;  // Pi_j of its last stage
  double weight = 0.0;           // of the model
  std::int64_t stages = 0;       // number of stages that updated it
  std::int64_t rows = 0;         // number of rows that have it
  std::int64_t updates = 0;      // over all paths and stages
  std::int64_t purged = kept;    // the stage that purged it, at its end

  bool often_enough(double least_rows) const {
    return rows > 0 && static_cast<double>(rows) >= least_rows;
  }

  // Adds the evidence of a stage: the sums of z and w over `paths` paths, and the number of paths
  // with w above 0 and below 0.
  void judge(double z, double w, std::uint32_t plus, std::uint32_t minus, double paths) {
    if (plus + minus == 0) return;  // no path updated it
    Z += z / paths, W += w / paths, ++stages;
    probability = static_cast<double>(std::max(plus, minus)) / paths;
  }

  bool may_stay(double keep) const { return probability >= keep || probability == unknown; }

  // |W_j Z_j| rms(x_j), with the mean weight and the sum of z over the root of the number of
  // stages: in a stream this number differs between features. Never negative or NaN, so that
  // features can be sorted.
  double score(double all_rows) const {
    const double rms = std::sqrt(squares / all_rows);
    const double times = std::max(1.0, static_cast<double>(stages));
    const double found = std::fabs(W / times * Z / std::sqrt(times)) * rms;
    return std::isnan(found) ? 0.0 : found;
  }
};

// The number of features to keep: as given, or in a stream the square root of rows * judged / 10,
// but at least 400, or a third of the features if that is fewer. (Where all rows are known, the
// labels decide: stabilized/robust/sizing.hpp.)
inline std::size_t robust_target(double asked, double rows, double judged) {
  if (asked > 0) return static_cast<std::size_t>(asked);
  const double distinguishable = std::sqrt(rows * judged / 10.0);
  return static_cast<std::size_t>(std::max({10.0, std::min(400.0, judged / 3.0), distinguishable}));
}

// How many of m features stay after a stage.
inline std::size_t robust_size_after(std::size_t m, std::size_t target, double rejection) {
  if (m <= target) return m;
  const auto share = static_cast<std::size_t>(static_cast<double>(m) * (1.0 - rejection));
  return std::max(target, std::min(m - 1, share));
}

}  // namespace thresher
