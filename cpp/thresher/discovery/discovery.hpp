// Feature discovery for one output: models, evidence, and the two ways to read the rows.
//
//   stream    each row adds its evidence, then the model learns it: one reading
//   crossfit  the model of a fold learns all rows of the other folds; when all have learned, each
//             row adds its evidence with the model of its own fold: two readings
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"

namespace thresher {

struct DiscoveryOptions {
  std::string task = "classification";  // or "regression"
  std::string store = "dense", dtype = "float32", level = "auto";
  std::uint64_t width = 0;
  std::size_t redraws = 20;
  std::uint64_t seed = 0;
  std::size_t folds = 1;  // 1: a stream
};

// What a reading knows of each row of a visit.
struct HonestRows {
  std::vector<double> p;              // the honest prediction
  std::vector<std::int64_t> lengths;  // number of values that are not 0
  std::vector<std::uint64_t> hashes;  // of the row's features, values and label
};

// The sums of all features that occurred, in the order of their keys (discovery/evidence.hpp).
struct DiscoverySums {
  std::vector<std::uint64_t> keys;
  std::vector<double> rows, S, realised, predicted;
  std::vector<float> redrawn_S, redrawn_D;  // features x redraws; no D in a regression
};

class Discovery {
 public:
  virtual ~Discovery() = default;

  mutable std::mutex gate;  // as in Learner
  mutable std::shared_mutex mutex;

  // Labels are 0 or 1, or any numbers in a regression. Row r of the batch has the number first + r,
  // which decides its redraws.
  virtual HonestRows stream(const Batch& batch, const Visit& visit, std::uint64_t first) = 0;

  // The model of a fold learns the rows of other folds. Threads may call it for different folds at
  // the same time.
  virtual void learn(const Batch& batch, const Visit& visit, const std::int64_t* folds,
                     std::size_t fold) = 0;
  // Ends the learning of a fold: keeps its weights, and releases the memory of its model.
  virtual void finish(std::size_t fold) = 0;
  // Adds the evidence of the rows, each with the model of its fold; all folds are finished. Slope
  // and intercept of the predictions are learned row by row, after the evidence of a row. Row r has
  // the number numbers[r], or first + r if it is null: rows of one group have the same number, and
  // so the same redraws.
  virtual HonestRows score(const Batch& batch, const Visit& visit, const std::int64_t* folds,
                           const std::int64_t* numbers, std::uint64_t first) = 0;

  virtual DiscoverySums sums() const = 0;
  virtual std::map<std::string, double> facts() const = 0;  // slope, intercept, ...
  virtual std::size_t bytes() const = 0;

  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

std::unique_ptr<Discovery> make_discovery(const DiscoveryOptions& options);

}  // namespace thresher
