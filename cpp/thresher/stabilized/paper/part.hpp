// The published stabilized rule where rows are in several parts, on several machines: a part's rows and
// its paths, whatever the number type. Bursts are those of stabilized/paper/stage_work.hpp; what they have counted is
// weighed elsewhere, by ranges of features (stabilized/paper/range.hpp).
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
#include "thresher/rules/rule.hpp"
#include "thresher/stabilized/paper/stage_work.hpp"

namespace thresher {

// Whole numbers of features, in the order of these.
struct FeatureCounts {
  std::vector<std::uint32_t> keys;
  std::vector<std::vector<std::uint32_t>> columns;
};
FeatureCounts sum_of(const FeatureCounts& a, const FeatureCounts& b);

// What a part tells of a stage.
struct PartStage {
  std::int64_t ratios = 0, below = 0,
               within = 0;                  // how many: all, those below the interval, and in it
  std::vector<double> values;               // those in the interval, where they are few
  double loss_sum = 0.0, weight_sum = 0.0;  // progressive, over its paths, since the first stage
};

class PaperPart {
 public:
  virtual ~PaperPart() = default;

  mutable std::mutex gate;  // as of Learner
  mutable std::shared_mutex mutex;

  // Takes more rows, with labels: a copy, clean of zeros. All of them, or none and an error. Not after a
  // stage.
  virtual void add(const Batch& batch) = 0;
  virtual std::int64_t rows() const = 0;

  // Rows that have each feature.
  virtual FeatureCounts documents() const = 0;

  // A stage of all paths; of ratios in low..high, no more than `most` values are told.
  virtual PartStage stage(const StagePlan& plan, double low, double high, std::size_t most) = 0;

  // What the stage has counted of the features it saw, over all paths: b, kb and k. Once.
  virtual FeatureCounts counts() = 0;

  // Ratios of the stage by their bits: how many in each of the bins from `first` on, and those of the bin
  // that begins there.
  virtual std::vector<std::int64_t> histogram(std::uint64_t first, int shift) = 0;
  virtual std::vector<double> values(std::uint64_t first, int shift) = 0;

  // Features that are purged, in all paths.
  virtual void freeze(std::span<const std::uint32_t> keys) = 0;

  // Weights added up over the paths, those that are not zero.
  virtual void sums(std::vector<std::uint32_t>& keys, std::vector<double>& values) const = 0;

  // Weights, what is frozen, and where the walks stand; no rows.
  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

// Of the paths `first` to `first + count - 1`.
std::unique_ptr<PaperPart> make_paper_part(const std::string& dtype, std::uint64_t width,
                                           std::size_t first, std::size_t count,
                                           std::size_t threads, const Params& params);

}  // namespace thresher
