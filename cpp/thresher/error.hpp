// What can go wrong, by who has to act: the data (DataError), a parameter (std::invalid_argument),
// or the learning rate (Divergence). The bindings map each to one Python exception.
#pragma once

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

// A number as a message shows it.
inline std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace thresher
