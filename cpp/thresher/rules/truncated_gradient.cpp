// Registers truncated gradient; the rule is in rules/truncated_gradient.hpp.
#include "thresher/rules/truncated_gradient.hpp"

#include "thresher/core/make_learner.hpp"
#include "thresher/lanes/truncated_lanes.hpp"

namespace thresher {
namespace {

template <class Real>
std::unique_ptr<Learner> make(const std::string& store, std::uint64_t width, const Params& params) {
  return params.flag("average") ? in_store<TruncatedGradient<Real, true>>(store, width, params)
                                : in_store<TruncatedGradient<Real, false>>(store, width, params);
}

}  // namespace

const Registration truncated_gradient({"truncated_gradient", make<float>, make<double>,
                                       &lanes::in_lines<lanes::TruncatedLanes>});

}  // namespace thresher
