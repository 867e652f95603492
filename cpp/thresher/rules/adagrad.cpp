// Registers AdaGrad; the rule is in rules/adagrad.hpp.
#include "thresher/rules/adagrad.hpp"

#include "thresher/core/make_learner.hpp"
#include "thresher/lanes/pair_lanes.hpp"

namespace thresher {

template <class Real>
class AdaGradLanes : public lanes::PairLanes<AdaGrad<Real>> {
 public:
  using lanes::PairLanes<AdaGrad<Real>>::PairLanes;
};

const Registration adagrad({"adagrad", in_store<AdaGrad<float>>, in_store<AdaGrad<double>>,
                            &lanes::in_lines<AdaGradLanes>});

}  // namespace thresher
