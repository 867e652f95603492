// Registers mirror descent; the rule is in rules/mirror_descent.hpp.
#include "thresher/rules/mirror_descent.hpp"

#include "thresher/core/registry.hpp"

namespace thresher {
namespace {

// Not a RuleLearner: always dense and in double precision, for any store and dtype.
std::unique_ptr<Learner> make(const std::string&, std::uint64_t width, const Params& params) {
  const Loss loss(params.word("loss"), params.number("epsilon"), params.number("quantile"));
  return std::make_unique<MirrorDescent>(width, loss, params);
}

}  // namespace

const Registration mirror_descent({"mirror_descent", make, make, nullptr});

}  // namespace thresher
