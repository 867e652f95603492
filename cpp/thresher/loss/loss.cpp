#include "thresher/loss/loss.hpp"

#include <stdexcept>

#include "thresher/loss/evaluate.hpp"

namespace thresher {

Outcome Loss::evaluate(double p, double y) const { return evaluate_inline(p, y); }

Loss::Kind Loss::kind_of(const std::string& name) {
  if (name == "logistic") return Kind::logistic;
  if (name == "hinge") return Kind::hinge;
  if (name == "margin") return Kind::margin;
  if (name == "squared_hinge") return Kind::squared_hinge;
  if (name == "squared") return Kind::squared;
  if (name == "square") return Kind::square;
  if (name == "clipped_square") return Kind::clipped_square;
  if (name == "absolute") return Kind::absolute;
  if (name == "huber") return Kind::huber;
  if (name == "epsilon_insensitive") return Kind::epsilon_insensitive;
  if (name == "quantile") return Kind::quantile;
  if (name == "poisson") return Kind::poisson;
  throw std::invalid_argument("unknown loss '" + name + "'");
}

double Loss::curvature() const {
  switch (kind_) {
    case Kind::logistic: return 0.25;
    case Kind::squared:
    case Kind::huber: return 1.0;
    case Kind::square:
    case Kind::squared_hinge:
    case Kind::clipped_square: return 2.0;
    case Kind::poisson: return std::exp(1.0);  // where predictions are of order 1
    default: return 0.0;
  }
}

}  // namespace thresher
