// What rules/NAME.cpp needs to make the learners of a rule.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "thresher/core/registry.hpp"
#include "thresher/core/rule_learner.hpp"
#include "thresher/stores/dense.hpp"
#include "thresher/stores/hashed_or_dense.hpp"

namespace thresher {

inline Loss loss_of(const Params& params) {
  return Loss(params.word("loss"), params.number("epsilon"), params.number("quantile"));
}

// A learner of the rule R in a store. R contains the number type.
template <class R>
std::unique_ptr<Learner> in_store(const std::string& store, std::uint64_t width,
                                  const Params& params) {
  if (store == "dense")
    return std::make_unique<RuleLearner<R, DenseStore>>(width, loss_of(params), params);
  if (store == "hashed")
    return std::make_unique<RuleLearner<R, HashedOrDenseStore>>(width, loss_of(params), params);
  throw std::invalid_argument("unknown store '" + store + "'");
}

}  // namespace thresher
