// Labels of two classes: one pass over them finds both values, another one makes the targets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thresher {

template <class Label>
struct TwoValues {
  Label low{}, high{};       // the smallest and the largest value
  std::int64_t largest = 0;  // how many values equal the largest one
  bool only = false;         // no other value occurs; also false for NaN, and without values

  TwoValues(const Label* values, std::size_t n);
};

// Sets out[i] to 1 where labels[i] is `second`, and to `low` where it is `first`. False: there are
// other labels.
template <class Label>
bool two_targets(const Label* labels, std::size_t n, Label first, Label second, double low,
                 double* out);

extern template struct TwoValues<std::int64_t>;  // two_values.cpp
extern template struct TwoValues<double>;
extern template bool two_targets(const std::int64_t*, std::size_t, std::int64_t, std::int64_t,
                                 double, double*);
extern template bool two_targets(const double*, std::size_t, double, double, double, double*);

}  // namespace thresher
