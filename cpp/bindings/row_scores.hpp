// Predictions for one row, given as a Python dict: what models and learners share.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dict_row.hpp"

namespace bindings {

void bind_model_row(nb::module_& m);

// The row and the predictions of a call. A thread has its own: another thread may run Python code
// while this one waits for memory.
inline DictRow& row_of_call() {
  thread_local DictRow row;
  return row;
}
inline std::vector<double>& scores_of_call() {
  thread_local std::vector<double> scores;
  return scores;
}

inline DictRowOptions options_of(const std::string& dtype, std::optional<int> bits, bool named,
                                 const std::map<std::string, std::uint64_t>& numbered = {}) {
  DictRowOptions options;
  if (bits && (*bits < 1 || *bits > 62)) throw std::invalid_argument("bits: from 1 to 62");
  if (bits) options.columns = std::int64_t{1} << *bits;
  if (bits) options.mask = static_cast<std::uint64_t>(options.columns) - 1;
  if (dtype != "float32" && dtype != "float64")
    throw std::invalid_argument("dtype: float32 or float64");
  options.single = dtype == "float32", options.named = named;
  options.numbered.insert(numbered.begin(), numbered.end());
  return options;
}

// Predicts the raw scores of all outputs for one row.
class RowScores {
 public:
  RowScores(DictRowOptions options, std::size_t outputs, double decision_at)
      : options_(std::move(options)), outputs_(outputs), decision_at_(decision_at) {}
  virtual ~RowScores() = default;

  // The score of the first output.
  nb::object one(nb::handle row) const {
    const double* const scores = scored(row);
    return scores ? nb::object(nb::float_(scores[0])) : nb::none();
  }
  nb::object all(nb::handle row) const {
    const double* const scores = scored(row);
    if (!scores) return nb::none();
    nb::list found;
    for (std::size_t k = 0; k < outputs_; ++k) found.append(scores[k]);
    return found;
  }
  // The output of the largest score; the first of several.
  nb::object best(nb::handle row) const {
    const double* const scores = scored(row);
    if (!scores) return nb::none();
    return nb::int_(std::max_element(scores, scores + outputs_) - scores);
  }

 protected:
  // Returns false if the general way has to predict.
  virtual bool score(const DictRow& row, double* out) const = 0;

  const double* scored(nb::handle given) const {
    DictRow& row = row_of_call();
    std::vector<double>& out = scores_of_call();
    out.assign(outputs_, 0.0);
    if (!row.read(given, options_) || !score(row, out.data())) return nullptr;
    for (double& score : out) {
      if (!std::isfinite(score)) return nullptr;
      score -= decision_at_;
    }
    return out.data();
  }

  DictRowOptions options_;
  std::size_t outputs_;
  double decision_at_;
};

}  // namespace bindings
