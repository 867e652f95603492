// One lane for each of many classes. Only nonzero (feature, class) weights are stored.
//
// All lanes share parameters and clock. The target of lane c is 1 for rows of class c, otherwise
// `low`. A class that appears later shares the clock too: it equals a lane whose steps so far were
// all zero.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thresher/lanes/lanes.hpp"

namespace thresher {

struct ClassWeights {
  std::vector<std::int32_t> classes;  // increasing; within a class keys increase
  std::vector<std::uint64_t> keys;
  std::vector<double> values;  // nonzero
};

class LabelLists : public GrowingLanes {
 public:
  // The weights of all lanes, read from the store in one pass.
  virtual ClassWeights class_weights() const = 0;

  // Adds lanes until there are `count`.
  virtual void grow(std::size_t count) = 0;

  // Sets the initial intercepts; call it before the first step.
  virtual void plant_intercepts(std::span<const double> intercepts) = 0;
};

// Supports truncated gradient with truncation or rounding, without averages. width 0: any key.
std::unique_ptr<LabelLists> make_labels(const std::string& rule, const std::string& dtype,
                                        std::uint64_t width, const Params& params,
                                        std::size_t count);

}  // namespace thresher
