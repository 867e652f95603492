// Registers averaged SGD; the rule is in rules/averaged.hpp.
#include "thresher/rules/averaged.hpp"

#include "thresher/core/make_learner.hpp"
#include "thresher/lanes/averaged_lanes.hpp"

namespace thresher {
namespace {

template <class Real>
std::unique_ptr<Learner> make(const std::string& store, std::uint64_t width, const Params& params) {
  return params.flag("center") ? in_store<AveragedSGD<Real, true>>(store, width, params)
                               : in_store<AveragedSGD<Real, false>>(store, width, params);
}

}  // namespace

const Registration averaged_sgd({"averaged_sgd", make<float>, make<double>,
                                 &lanes::in_lines<lanes::AveragedLanes>});

}  // namespace thresher
