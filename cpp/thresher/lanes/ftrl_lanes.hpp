// FTRL-Proximal in lanes (rules/ftrl.hpp has the rule and its symbols).
#pragma once

#include "thresher/lanes/pair_lanes.hpp"
#include "thresher/rules/ftrl.hpp"

namespace thresher::lanes {

template <class Real>
class FTRLLanes : public PairLanes<FTRL<Real>> {
 public:
  using PairLanes<FTRL<Real>>::PairLanes;
  static bool joins(const Params& params) { return params.number("target_nnz", 0.0) == 0.0; }
};

}  // namespace thresher::lanes
