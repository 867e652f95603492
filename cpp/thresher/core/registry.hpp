// Makes a learner from the names of its rule, store and number type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "thresher/core/learner.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

//   rule   "truncated_gradient" | "averaged_sgd" | "ftrl" | "dual_averaging" |
//          "margin_perceptron" | "mirror_descent" (always dense and float64)
//   store  "dense" | "hashed"
//   dtype  "float32" | "float64"
//   width  number of features; 0 for any 64-bit key (hashed only)
std::unique_ptr<Learner> make_learner(const std::string& rule, const std::string& store,
                                      const std::string& dtype, std::uint64_t width,
                                      const Params& params);

}  // namespace thresher
