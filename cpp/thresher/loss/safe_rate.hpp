// The scale of a row, and the safe rate that learners recommend when weights diverge.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "thresher/core/batch.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/loss/loss.hpp"

namespace thresher {

// clipped_square uses x / sqrt(|x|_0), all other losses x.
template <class Real>
double row_scale(const Loss& loss, const Rows<Real>& rows) {
  if (!loss.normalises()) return 1.0;
  const std::size_t nonzeros = rows.nonzeros();
  return nonzeros ? 1.0 / std::sqrt(static_cast<double>(nonzeros)) : 1.0;
}

// Steps of 1 / (curvature * weight * (||x||^2 + 1)) do not overshoot on their row.
template <class Real>
double safe_rate(const Batch& batch, const Loss& loss) {
  double largest = 0.0;
  Rows<Real> rows(batch, Visit{nullptr, 0, batch.rows}, 0);  // accepts any key
  while (rows.next()) {
    double squares = 0.0;
    for (std::size_t k = 0; k < rows.count(); ++k)
      squares += static_cast<double>(rows.values()[k]) * static_cast<double>(rows.values()[k]);
    const double scale = row_scale(loss, rows);
    largest = std::max(largest, rows.weight() * (scale * scale * squares + 1.0));
  }
  return 1.0 / (std::max(loss.curvature(), 0.25) * largest);
}

}  // namespace thresher
