// How the robust rule judges a feature, and how many stay (stabilized/robust/robust.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace thresher {

struct RobustFeature {
  static constexpr std::int64_t kept = -1;
  static constexpr double unknown = -1.0;  // probability of a feature not judged yet

  double Z = 0.0, W = 0.0;       // means over the paths, added up over the stages
  double squares = 0.0;          // sum of x_j^2 over the rows
  double probability = unknown;  // Pi_j of the last stage it took part in
  double weight = 0.0;           // of the model
  std::int64_t stages = 0;       // that had updates of it
  std::int64_t rows = 0;         // that have it
  std::int64_t updates = 0;      // over all paths and stages
  std::int64_t purged = kept;    // the stage at whose end it was purged

  bool often_enough(double least_rows) const {
    return rows > 0 && static_cast<double>(rows) >= least_rows;
  }

  // Takes the sums of z and w over `paths` paths, and how many of them have w above 0 and below.
  void judge(double z, double w, std::uint32_t plus, std::uint32_t minus, double paths) {
    if (plus + minus == 0) return;  // nothing was learned of it here
    Z += z / paths, W += w / paths, ++stages;
    probability = static_cast<double>(std::max(plus, minus)) / paths;
  }

  bool may_stay(double keep) const { return probability >= keep || probability == unknown; }

  // The mean weight, and the sum of z as one z; in a stream features differ in how long they are known.
  // Never negative, and never NaN, so that features have an order.
  double score(double all_rows) const {
    const double rms = std::sqrt(squares / all_rows);
    const double times = std::max(1.0, static_cast<double>(stages));
    const double found = std::fabs(W / times * Z / std::sqrt(times)) * rms;
    return std::isnan(found) ? 0.0 : found;
  }
};

// As many as asked for, or the root of a tenth of rows times features that can be judged: more rows can
// tell more features from noise, and of more features more are of use. Not below 400, or a third of
// the features where these are fewer: so small a model needs no pruning that costs accuracy.
inline std::size_t robust_target(double asked, double rows, double judged) {
  if (asked > 0) return static_cast<std::size_t>(asked);
  const double told_apart = std::sqrt(rows * judged / 10.0);
  return static_cast<std::size_t>(std::max({10.0, std::min(400.0, judged / 3.0), told_apart}));
}

// How many of m features stay after a stage.
inline std::size_t robust_size_after(std::size_t m, std::size_t target, double rejection) {
  if (m <= target) return m;
  const auto share = static_cast<std::size_t>(static_cast<double>(m) * (1.0 - rejection));
  return std::max(target, std::min(m - 1, share));
}

}  // namespace thresher
