// One lane for each of many classes, keeping only the (feature, class) weights that are not zero.
//
// All lanes have the parameters and the clock in common: lane c is told 1 for rows that have class c, else
// `low`. A class that appears later shares the clock too: it is a lane that made no step so far.
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
  std::vector<double> values;  // none is zero
};

class LabelLists : public Lanes {
 public:
  // The weights of all lanes, in one reading of the store.
  virtual ClassWeights class_weights() const = 0;

  // Lanes for classes up to `count`, from now on.
  virtual void grow(std::size_t count) = 0;
};

// Truncated gradient by truncation or rounding, without averages. width 0: any key.
std::unique_ptr<LabelLists> make_labels(const std::string& rule, const std::string& dtype,
                                        std::uint64_t width, const Params& params,
                                        std::size_t count);

}  // namespace thresher
