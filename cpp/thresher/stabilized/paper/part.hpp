// The published stabilized rule for rows in several parts, on several machines: the rows and the
// paths of one part, for any number type. stabilized/paper/stage_work.hpp makes the bursts; ranges
// of features evaluate their counts (stabilized/paper/range.hpp).
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

// Counts of features, in the order of keys.
struct FeatureCounts {
  std::vector<std::uint32_t> keys;
  std::vector<std::vector<std::uint32_t>> columns;
};
FeatureCounts sum_of(const FeatureCounts& a, const FeatureCounts& b);

// What a part reports of a stage.
struct PartStage {
  std::int64_t ratios = 0;                  // number of ratios
  std::int64_t below = 0, within = 0;       // number of ratios below the interval, and in it
  std::vector<double> values;               // the ratios in the interval, if they are few
  double loss_sum = 0.0, weight_sum = 0.0;  // progressive, over its paths, since the first stage
};

class PaperPart {
 public:
  virtual ~PaperPart() = default;

  mutable std::mutex gate;  // as in Learner
  mutable std::shared_mutex mutex;

  // Copies more rows, with labels and without zeros; call it before the first stage. After an
  // error, none of these rows is added.
  virtual void add(const Batch& batch) = 0;
  virtual std::int64_t rows() const = 0;

  // The number of rows that have each feature.
  virtual FeatureCounts documents() const = 0;

  // Runs a stage of all paths. Reports the ratios in low..high if there are at most `most`.
  virtual PartStage stage(const StagePlan& plan, double low, double high, std::size_t most) = 0;

  // Returns b, kb and k of the features that the stage saw, over all paths, and resets them.
  virtual FeatureCounts counts() = 0;

  // Bins of the stage's ratios by their bits: histogram() counts the ratios of each bin from
  // `first` on, and values() returns the ratios of the bin that starts there.
  virtual std::vector<std::int64_t> histogram(std::uint64_t first, int shift) = 0;
  virtual std::vector<double> values(std::uint64_t first, int shift) = 0;

  // Purges features from all paths.
  virtual void freeze(std::span<const std::uint32_t> keys) = 0;

  // Sums of the weights over the paths, without zeros.
  virtual void sums(std::vector<std::uint32_t>& keys, std::vector<double>& values) const = 0;

  // The state has weights, frozen features, and positions in the rows, but not the rows.
  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

// A part with the paths first .. first + count - 1.
std::unique_ptr<PaperPart> make_paper_part(const std::string& dtype, std::uint64_t width,
                                           std::size_t first, std::size_t count,
                                           std::size_t threads, const Params& params);

}  // namespace thresher
