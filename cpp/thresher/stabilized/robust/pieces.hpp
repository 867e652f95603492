// The robust rule in pieces, for rows on several machines: parts have rows, and let their paths walk through
// them; ranges have features, and judge them by what all parts have found. With one part, and any number of
// ranges, the result is that of stabilized/robust/robust.hpp to the last bit.
//
// Of several parts, each feature's sums are over the paths of those parts whose rows have it, and are added up
// in the order of the parts: a feature that one part alone has is not diluted by the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/stabilized/paths.hpp"
#include "thresher/stabilized/robust/feature.hpp"
#include "thresher/stabilized/robust/half_paths.hpp"

namespace thresher {

// What rows say of features before anything is learned; keys increase.
struct RowsOfFeatures {
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> rows;       // of weight above 0 that have it
  std::vector<std::int64_t> documents;  // of any weight
  std::vector<double> squares;          // sum of x^2 over `rows`
};

class RobustPart {
 public:
  using Look = std::function<void()>;

  virtual ~RobustPart() = default;

  // Takes rows, block by block; end() after the last, and before all else. After a bad row the part is of no
  // use.
  virtual void add(const Batch& batch) = 0;
  virtual RowsOfFeatures end() = 0;

  virtual std::int64_t rows() const = 0;         // of weight above 0
  virtual std::int64_t refit_steps() const = 0;  // that a path through all rows makes at least
  virtual double norms() const = 0;              // sum of their weights times ||x||^2
  virtual double weights() const = 0;            // sum of their weights

  // Leaves out all features but these, or just these; given in increasing order.
  virtual void retain(std::span<const std::uint64_t> keys) = 0;
  virtual void drop(std::span<const std::uint64_t> keys) = 0;
  virtual const std::vector<std::uint64_t>& features() const = 0;

  // The part's paths through halves of its rows, or through all of them; as RobustPaths.
  virtual PathSums halves(std::int64_t stage, const RowSizes& sizes, std::size_t jobs,
                          const Look& look) const = 0;
  // Paths through all rows start from these weights, of the features in their order, or from 0.
  virtual PathSums whole(std::int64_t stage, const RowSizes& sizes, std::int64_t passes,
                         std::span<const double> start, double bias, std::size_t jobs,
                         const Look& look) const = 0;
};

// Paths first .. first + count - 1, both even. width: features are below it; 0: any 64-bit key.
std::unique_ptr<RobustPart> make_robust_part(const std::string& dtype, std::uint64_t width,
                                             const Params& params, std::size_t first,
                                             std::size_t count);

// What parts have found of features in a stage, or in the refit (which has no z and no signs).
struct Found {
  std::span<const std::uint64_t> keys;  // increasing
  std::span<const double> z, w;
  std::span<const std::uint32_t> plus, minus;
  std::span<const std::int64_t> updates;
};

class RobustRange {
 public:
  // All that decides how it goes on, between two stages.
  struct State {
    std::vector<std::uint64_t> keys;  // of all features, and of each:
    std::vector<std::int64_t> rows, documents;
    std::vector<std::uint8_t> admitted;
    std::vector<double> probability;  // of those admitted
    std::vector<std::int64_t> updates, purged;
    std::vector<double> Z, W, squares, weight;  // of those that are left
    std::vector<std::int64_t> stages;
    std::vector<std::uint32_t> paths;
  };

  // Takes the counts of a part that has so many paths.
  void count(std::span<const std::uint64_t> keys, std::span<const std::int64_t> rows,
             std::span<const std::int64_t> documents, std::span<const double> squares,
             std::uint32_t paths);
  // Admits the features that enough rows have, and returns them.
  std::vector<std::uint64_t> admit(double least_rows);
  std::size_t left() const { return left_.size(); }

  // Takes what a part has found of features that are left.
  void add(const Found& found);
  // Ends a stage: judges all by what was added; returns how many may stay. Their ranks are those of
  // their scores.
  std::size_t judge(double rows, double keep);

  // How many of the features that may stay have a rank whose leading bits are `prefix`, by the next
  // `bits` bits, above the lowest `shift`. With `tied`, of the features of that rank, the same of ~key.
  std::vector<std::int64_t> histogram(std::uint64_t tied, std::uint64_t prefix, unsigned shift,
                                      unsigned bits) const;
  // Purges all below a rank, and of that rank those with keys above `last`; returns them.
  std::vector<std::uint64_t> purge(std::int64_t stage, std::uint64_t rank, std::uint64_t last);

  // Ends the refit: the weights are the means of what was added.
  void settle();

  SparseWeights weights() const;
  Findings findings() const;
  std::vector<std::int64_t> documents() const;  // of the features of findings()

  State state() const;
  void restore(State state);

 private:
  std::vector<std::uint64_t> keys_;  // increasing
  std::vector<RobustFeature> features_;
  std::vector<std::int64_t> documents_;
  std::vector<std::uint32_t> paths_;  // of the parts whose rows have the feature
  std::vector<std::uint8_t> admitted_;
  std::vector<std::size_t> left_;     // places of those that are neither rare nor purged
  std::vector<std::uint64_t> ranks_;  // of those left, within a stage; 0: may not stay
  PathSums sums_{0};                  // of those left
};

}  // namespace thresher
