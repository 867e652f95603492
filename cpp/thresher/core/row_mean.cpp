#include "thresher/core/row_mean.hpp"

#include <cstdint>
#include <stdexcept>

#include "thresher/core/rows.hpp"

namespace thresher {

std::vector<double> mean_row(const Batch& batch) {
  if (batch.columns < 1) throw std::invalid_argument("a mean needs the number of columns");
  std::vector<double> mean(static_cast<std::size_t>(batch.columns), 0.0);
  Rows<double> rows(batch, Visit{nullptr, 0, batch.rows},
                    static_cast<std::uint64_t>(batch.columns));
  while (rows.next()) {
    rows.check_values();
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows.count(); ++k)
        mean[static_cast<std::size_t>(keys[k])] += rows.values()[k];
    });
  }
  for (double& m : mean) m /= static_cast<double>(batch.rows);
  return mean;
}

}  // namespace thresher
