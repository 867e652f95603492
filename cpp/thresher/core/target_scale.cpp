#include "thresher/core/target_scale.hpp"

#include <vector>

#include "thresher/core/error.hpp"

namespace thresher {

std::int64_t StandardisedTargets::fill(const Batch& batch, const Visit& visit,
                                       const std::uint8_t* seen) const {
  std::vector<TargetScale> scales;
  for (std::int64_t c = 0; c < clocks; ++c)
    scales.emplace_back(states + c * static_cast<std::int64_t>(TargetScale::numbers), centred);
  const bool may_repeat = counts && visit.order;
  std::vector<bool> done(may_repeat ? static_cast<std::size_t>(batch.rows) : 0);
  std::int64_t position = visit.first;
  for (; position < visit.last; ++position) {
    const std::int64_t row = visit.row(position);
    if (may_repeat) {
      if (done[static_cast<std::size_t>(row)]) break;
      done[static_cast<std::size_t>(row)] = true;
    }
    const double y = batch.labels[row], weight = batch.weights ? batch.weights[row] : 1.0;
    const bool valid = std::isfinite(y) && weight >= 0.0 && std::isfinite(weight);
    if (valid && counts && std::fabs(y) > TargetScale::largest) {
      if (position > visit.first) break;
      throw DataError(row, "the label is " + shown(y) + "; its magnitude must be at most " +
                               shown(TargetScale::largest));
    }
    for (std::int64_t c = 0; c < clocks; ++c) {
      if (seen && !seen[row * clocks + c]) continue;
      TargetScale& scale = scales[static_cast<std::size_t>(c)];
      if (valid && counts) scale.count(y, weight);
      labels[row * clocks + c] = valid ? scale.standardised(y) : y;
      sds[row * clocks + c] = scale.sd();
      units[row * clocks + c] = scale.unit(degree);
    }
    if (!valid && counts) {
      ++position;
      break;
    }
  }
  double* out = states;
  for (const TargetScale& scale : scales)
    for (const double number : scale.state()) *out++ = number;
  return position;
}

}  // namespace thresher
