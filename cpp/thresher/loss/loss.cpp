#include "thresher/loss/loss.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include "thresher/loss/losses.hpp"

namespace thresher {

Loss::Loss(const std::string& name, double epsilon, double quantile)
    : epsilon_(epsilon), quantile_(quantile) {
  const auto* const found =
      std::find_if(std::begin(loss_table), std::end(loss_table),
                   [&](const LossEntry& entry) { return name == entry.name; });
  if (found == std::end(loss_table)) throw std::invalid_argument("unknown loss '" + name + "'");
  kind_ = static_cast<Kind>(found - std::begin(loss_table));
  normalises_ = kind_ == Kind::clipped_square;
}

double Loss::curvature() const { return loss_table[static_cast<std::size_t>(kind_)].curvature; }

double Loss::idle_above() const {
  if (kind_ == Kind::margin) return epsilon_;
  return loss_table[static_cast<std::size_t>(kind_)].idle_above;
}

bool Loss::has_bounded_curvature() const { return curvature() > 0 && kind_ != Kind::poisson; }

}  // namespace thresher
