#include "thresher/loss/safe_rate.hpp"

#include <algorithm>

namespace thresher {

template <class Real>
double safe_rate(const Batch& batch, const Loss& loss) {
  double largest = 0.0;
  Rows<Real> rows(batch, Visit{nullptr, 0, batch.rows}, 0);  // accepts any key
  while (rows.next()) {
    double squares = 0.0;
    for (std::size_t k = 0; k < rows.count(); ++k)
      squares += static_cast<double>(rows.values()[k]) * static_cast<double>(rows.values()[k]);
    const double scale = row_scale(loss, rows);
    largest = std::max(largest, scale * scale * squares + 1.0);
  }
  return 1.0 / (std::max(loss.curvature(), 0.25) * largest);
}

template double safe_rate<float>(const Batch&, const Loss&);
template double safe_rate<double>(const Batch&, const Loss&);

}  // namespace thresher
