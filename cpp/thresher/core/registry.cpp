// The only list of instantiations: rule x store x dtype.
#include "thresher/core/registry.hpp"

#include <stdexcept>

#include "thresher/core/rule_learner.hpp"
#include "thresher/rules/averaged.hpp"
#include "thresher/rules/dual_averaging.hpp"
#include "thresher/rules/ftrl.hpp"
#include "thresher/rules/margin_perceptron.hpp"
#include "thresher/rules/mirror_descent.hpp"
#include "thresher/rules/truncated_gradient.hpp"
#include "thresher/stores/dense.hpp"
#include "thresher/stores/hashed.hpp"

namespace thresher {
namespace {

template <class R>
std::unique_ptr<Learner> with_store(const std::string& store, std::uint64_t width,
                                    const Params& params) {
  const Loss loss(params.word("loss"), params.number("epsilon"), params.number("quantile"));
  if (store == "dense") return std::make_unique<RuleLearner<R, DenseStore>>(width, loss, params);
  if (store == "hashed") return std::make_unique<RuleLearner<R, HashedStore>>(width, loss, params);
  throw std::invalid_argument("unknown store '" + store + "'");
}

template <class Real>
std::unique_ptr<Learner> with_dtype(const std::string& rule, const std::string& store,
                                    std::uint64_t width, const Params& params) {
  if (rule == "truncated_gradient")
    return params.flag("average")
               ? with_store<TruncatedGradient<Real, true>>(store, width, params)
               : with_store<TruncatedGradient<Real, false>>(store, width, params);
  if (rule == "averaged_sgd")
    return params.flag("center") ? with_store<AveragedSGD<Real, true>>(store, width, params)
                                 : with_store<AveragedSGD<Real, false>>(store, width, params);
  if (rule == "ftrl") return with_store<FTRL<Real>>(store, width, params);
  if (rule == "dual_averaging") return with_store<DualAveraging<Real>>(store, width, params);
  if (rule == "margin_perceptron")
    return params.word("shrink") == "all"
               ? with_store<MarginPerceptron<Real, true>>(store, width, params)
               : with_store<MarginPerceptron<Real, false>>(store, width, params);
  throw std::invalid_argument("unknown rule '" + rule + "'");
}

}  // namespace

std::unique_ptr<Learner> make_learner(const std::string& rule, const std::string& store,
                                      const std::string& dtype, std::uint64_t width,
                                      const Params& params) {
  if (rule == "mirror_descent") {  // a learner of its own, dense and in double precision
    const Loss loss(params.word("loss"), params.number("epsilon"), params.number("quantile"));
    return std::make_unique<MirrorDescent>(width, loss, params);
  }
  if (dtype == "float32") return with_dtype<float>(rule, store, width, params);
  if (dtype == "float64") return with_dtype<double>(rule, store, width, params);
  throw std::invalid_argument("unknown dtype '" + dtype + "'");
}

}  // namespace thresher
