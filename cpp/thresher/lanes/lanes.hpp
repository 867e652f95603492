// Trains many models in one pass over the rows: grids, folds, classes, subsamples.
//
// A lane is one model. Lanes share the rule, the store and the number type. Each lane has its own
// parameters, a clock (which rows it learns from) and a target (the label it uses for a row). A
// lane equals the same model trained alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/core/tally.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

struct LaneSpec {
  Params params;
  std::int64_t clock = 0;  // its column in Told::seen
  // The number of a class: the label is 1 for rows of that class, otherwise `low`. Or -1: the lane
  // uses the label of the row.
  std::int64_t target = -1;
};

// Information on the rows of a batch besides labels and weights.
struct Told {
  const std::uint8_t* seen = nullptr;  // rows x clocks: whether a clock sees the row; null: all do
  std::int64_t clocks = 1;
  // The classes of row r are classes[starts[r] .. starts[r + 1]). Null if no target is a class.
  const std::int64_t* starts = nullptr;
  const std::int32_t* classes = nullptr;
  double low = -1.0;
  // rows x clocks, or null: labels and units of the loss, where each clock standardises its targets.
  const double* labels = nullptr;
  const double* units = nullptr;

  bool sees(std::int64_t row, std::int64_t clock) const {
    return !seen || seen[row * clocks + clock];
  }
  double unit(std::int64_t row, std::int64_t clock) const {
    return units ? units[row * clocks + clock] : 1.0;
  }
  double label(const Batch& batch, std::int64_t row, std::int64_t clock,
               std::int64_t target) const {
    if (target < 0) return labels ? labels[row * clocks + clock] : batch.labels[row];
    for (std::int64_t i = starts[row]; i < starts[row + 1]; ++i)
      if (classes[i] == target) return 1.0;
    return low;
  }
};

class Lanes {
 public:
  virtual ~Lanes() = default;

  mutable std::mutex gate;  // as in Learner
  mutable std::shared_mutex mutex;

  virtual std::size_t count() const = 0;

  // Learns in every lane the rows of the visit that its clock sees; a row makes as many steps as its
  // weight says (core/repeats.hpp). An error names the row: rows before it have been learned, that
  // row has not. `before`, if not null, receives the predictions before the steps: `count()`
  // numbers for each row of the visit, NaN if the lane's clock does not see the row. A lane that
  // diverges stops learning; the others continue.
  virtual void learn(const Batch& batch, const Visit& visit, const Told& told, double* before) = 0;
  virtual void next_pass() = 0;
  virtual void widen(std::uint64_t width) = 0;

  // Raw predictions of some lanes: lanes.size() numbers for each row of the visit. They may be
  // infinite or NaN for lanes that diverged or overflow. Throws only for bad rows.
  virtual void predict(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
                       bool average, double* out) const = 0;
  // As in Learner.
  virtual void predict_uncut(const Batch& batch, const Visit& visit,
                             std::span<const std::int64_t> lanes, bool average, double* out) const {
    predict(batch, visit, lanes, average, out);
  }
  virtual SparseWeights weights(std::size_t lane, bool average) const = 0;
  virtual std::vector<std::int64_t> nonzeros(bool average) const = 0;  // of each lane
  virtual double intercept(std::size_t lane, bool average) const = 0;
  virtual Tally tally(std::size_t lane) const = 0;
  virtual double rate(std::size_t lane) const = 0;
  virtual std::string divergence(std::size_t lane) const = 0;  // a message; empty: no divergence
  virtual std::size_t bytes() const = 0;

  // How the lane is computed, for tests and reports.
  virtual std::string layout(std::size_t lane) const = 0;

  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

class GrowingLanes : public Lanes {
 public:
  // Adds lanes that start now.
  virtual void add(std::vector<LaneSpec> specs) = 0;
};

// rule, store, dtype, width: as in make_learner. `level`: the widest vectors to use, "avx512" |
// "avx2" | "portable", or "auto" for the widest of this machine.
std::unique_ptr<GrowingLanes> make_lanes(const std::string& rule, const std::string& store,
                                         const std::string& dtype, std::uint64_t width,
                                         std::vector<LaneSpec> specs, const std::string& level);

}  // namespace thresher
