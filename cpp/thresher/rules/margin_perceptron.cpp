// Registers the margin perceptron; the rule is in rules/margin_perceptron.hpp.
#include "thresher/rules/margin_perceptron.hpp"

#include "thresher/core/make_learner.hpp"
#include "thresher/lanes/perceptron_lanes.hpp"

namespace thresher {
namespace {

template <class Real>
std::unique_ptr<Learner> make(const std::string& store, std::uint64_t width, const Params& params) {
  return params.word("shrink") == "all"
             ? in_store<MarginPerceptron<Real, true>>(store, width, params)
             : in_store<MarginPerceptron<Real, false>>(store, width, params);
}

}  // namespace

const Registration margin_perceptron({"margin_perceptron", make<float>, make<double>,
                                      &lanes::in_lines<lanes::PerceptronLanes>});

}  // namespace thresher
