#include "thresher/core/error.hpp"

#include <cstdio>

namespace thresher {

DataError::DataError(std::int64_t row_, const std::string& what)
    : std::runtime_error("row " + std::to_string(row_) + ": " + what), row(row_) {}

void refuse_target(std::int64_t row, double label) {
  if (!std::isfinite(label)) throw DataError(row, "the label is NaN or inf; labels must be finite");
  throw DataError(row, "the sample weight must be a finite number >= 0");
}

void refuse_value(std::int64_t row, std::int64_t key, double value) {
  const std::string feature = "the value of feature " + std::to_string(key);
  if (std::isnan(value)) throw DataError(row, feature + " is NaN; values must be finite");
  throw DataError(row, feature + " is " + shown(value) +
                           "; values must be finite, with finite squares in the dtype");
}

void refuse_key(std::int64_t row, std::int64_t key, std::uint64_t width) {
  throw DataError(
      row, "feature number " + std::to_string(key) + " is outside 0.." + std::to_string(width - 1));
}

void refuse_weight(std::uint64_t key) {
  throw Divergence("the weight of feature " + std::to_string(key) + " is not finite");
}

std::string divergence_message(std::int64_t step, std::int64_t row, const std::string& advice) {
  return "the weights diverged at step " + std::to_string(step) + ", row " + std::to_string(row) +
         ": " + advice;
}

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace thresher
