// Registers FTRL; the rule is in rules/ftrl.hpp.
#include "thresher/rules/ftrl.hpp"

#include "thresher/core/make_learner.hpp"
#include "thresher/lanes/ftrl_lanes.hpp"

namespace thresher {

const Registration ftrl({"ftrl", in_store<FTRL<float>>, in_store<FTRL<double>>,
                         &lanes::in_lines<lanes::FTRLLanes>});

}  // namespace thresher
