// Errors by their cause: the data (DataError), a parameter (std::invalid_argument), or the learning
// rate (Divergence). The bindings map each to one Python exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace thresher {

struct DataError : std::runtime_error {
  DataError(std::int64_t row_, const std::string& what)
      : std::runtime_error("row " + std::to_string(row_) + ": " + what), row(row_) {}
  std::int64_t row;  // position in the caller's X, from 0
};

struct Divergence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every learner checks the label and the weight of a row.
inline void check_target(std::int64_t row, double label, double weight) {
  if (!std::isfinite(label)) throw DataError(row, "the label is NaN or inf; labels must be finite");
  if (!(weight >= 0 && std::isfinite(weight)))
    throw DataError(row, "the sample weight must be a finite number >= 0");
}

// A number, formatted for a message.
inline std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace thresher
