// Errors by their cause: the data (DataError), a parameter (std::invalid_argument), or the learning
// rate (Divergence). The bindings map each to one Python exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace thresher {

struct DataError : std::runtime_error {
  DataError(std::int64_t row, const std::string& what);
  std::int64_t row;  // position in the caller's X, from 0
};

struct Divergence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws if the label or the weight of a row is not allowed.
[[noreturn]] void refuse_target(std::int64_t row, double label);
inline void check_target(std::int64_t row, double label, double weight) {
  if (!std::isfinite(label) || !(weight >= 0 && std::isfinite(weight))) refuse_target(row, label);
}

// Throws for the value of a feature that is NaN, infinite, or has an infinite square.
[[noreturn]] void refuse_value(std::int64_t row, std::int64_t key, double value);

// Throws for a feature number that is not below the width.
[[noreturn]] void refuse_key(std::int64_t row, std::int64_t key, std::uint64_t width);

// Throws for a weight that is not finite.
[[noreturn]] void refuse_weight(std::uint64_t key);

// The message of a divergence at a step. `advice` says what to change.
std::string divergence_message(std::int64_t step, std::int64_t row, const std::string& advice);

// A number as messages show it.
std::string shown(double value);

}  // namespace thresher
