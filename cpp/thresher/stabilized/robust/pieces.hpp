// The robust rule for rows on several machines. A part has rows, and paths that learn from them. A
// range has features, and judges them by the results of all parts. With one part, and any number of
// ranges, the result is bit-identical to that of stabilized/robust/robust.hpp.
//
// With several parts, the sums of a feature are over the paths of those parts whose rows have it,
// in the order of the parts: a feature that only one part has gets no zeros from the others.
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
#include "thresher/stabilized/robust/sizing.hpp"

namespace thresher {

// Counts of features before learning; keys increase.
struct RowsOfFeatures {
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> rows;       // number of rows of weight above 0 that have it
  std::vector<std::int64_t> documents;  // the same for rows of any weight
  std::vector<double> squares;          // sum of x^2 over `rows`
  std::vector<LabelSums> sums;
};

// The l2 of the refit.
struct RefitPenalty {
  double strength = 0.0;  // 0: none
  double weight = 0.0;    // of the rows of all parts
};

class RobustPart {
 public:
  using CheckInterrupt = std::function<void()>;

  virtual ~RobustPart() = default;

  // Copies a block of rows. Call end() after the last block, before any other function. After an
  // error the part cannot be used any more.
  virtual void add(const Batch& batch) = 0;
  virtual RowsOfFeatures end() = 0;

  virtual std::int64_t rows() const = 0;         // of weight above 0
  virtual std::int64_t refit_steps() const = 0;  // least number of steps of a path of whole()
  virtual double norms() const = 0;              // sum of their weights times ||x||^2
  virtual const RowTotals& totals() const = 0;   // norms() divided by its weight, over all parts,
                                                 // is `mean_norm` below

  // retain() removes all other features, drop() removes these; keys increase.
  virtual void retain(std::span<const std::uint64_t> keys) = 0;
  virtual void drop(std::span<const std::uint64_t> keys) = 0;
  virtual const std::vector<std::uint64_t>& features() const = 0;

  // Losses by number of features, on the part's rows: see RobustSizing.
  virtual SizeTable sizes(double mean_norm, std::size_t features, std::size_t jobs,
                          const CheckInterrupt& check_interrupt) const = 0;
  // The part's paths on halves of its rows, or on all of them: see RobustPaths.
  virtual PathSums halves(std::int64_t stage, double mean_norm, double bias, std::size_t jobs,
                          const CheckInterrupt& check_interrupt) const = 0;
  // `start`: one weight for each of features(), or empty to start from 0.
  virtual PathSums whole(std::int64_t stage, double mean_norm, std::int64_t passes,
                         std::span<const double> start, double bias, const RefitPenalty& penalty,
                         std::size_t jobs, const CheckInterrupt& check_interrupt) const = 0;
};

// A part with the paths first .. first + count - 1, both even. Features are below `width`; 0: any
// 64-bit key.
std::unique_ptr<RobustPart> make_robust_part(const std::string& dtype, std::uint64_t width,
                                             const Params& params, std::size_t first,
                                             std::size_t count);

// The results of a part in a stage, or in the refit (without z and signs).
struct Found {
  std::span<const std::uint64_t> keys;  // increasing
  std::span<const double> z, w;
  std::span<const std::uint32_t> plus, minus;
  std::span<const std::int64_t> updates;
};

class RobustRange {
 public:
  // The state between two stages.
  struct State {
    std::vector<std::uint64_t> keys;  // of all features, and for each:
    std::vector<std::int64_t> rows, documents;
    std::vector<std::uint8_t> admitted;
    std::vector<double> probability;  // of admitted features
    std::vector<std::int64_t> updates, purged;
    std::vector<double> Z, W, squares, weight;  // of features that are left
    std::vector<std::int64_t> stages;
    std::vector<std::uint32_t> paths;
    // Of all features; empty in states of version 0.1.0.
    std::vector<double> label_x, label_squares, label_positive;
  };

  // Adds the counts of a part with `paths` paths.
  void count(std::span<const std::uint64_t> keys, std::span<const std::int64_t> rows,
             std::span<const std::int64_t> documents, std::span<const double> squares,
             std::span<const LabelSums> sums, std::uint32_t paths);
  // Admits the features that at least `least_rows` rows have, and returns them.
  std::vector<std::uint64_t> admit(double least_rows);
  std::size_t left() const { return left_.size(); }

  // Adds the results of a part for features that are left.
  void add(const Found& found);
  // Ends a stage: judges all features by what was added, and returns how many may stay. The rank of
  // a feature is a number with the same order as its score.
  std::size_t judge(double rows, double keep);

  // Takes the features that may stay and whose rank starts with the bits `prefix`. Counts them by
  // the next `bits` bits of the rank, which are above its lowest `shift` bits. If `tied` is not 0,
  // it takes only features of that rank, and uses the bits of ~key instead of the rank.
  std::vector<std::int64_t> histogram(std::uint64_t tied, std::uint64_t prefix, unsigned shift,
                                      unsigned bits) const;
  // Purges the features below a rank, and those of that rank with keys above `last`; returns them.
  std::vector<std::uint64_t> purge(std::int64_t stage, std::uint64_t rank, std::uint64_t last);

  // Ends the refit: sets the weights to the means of what was added.
  void set_weights();

  SparseWeights weights() const;
  Findings findings(const RowTotals& rows) const;  // of all parts
  std::vector<std::int64_t> documents() const;     // of the features of findings()

  State state() const;
  void restore(State state);

 private:
  std::vector<std::uint64_t> keys_;  // increasing
  std::vector<RobustFeature> features_;
  std::vector<std::int64_t> documents_;
  std::vector<std::uint32_t> paths_;  // of the parts whose rows have the feature
  std::vector<LabelSums> label_sums_;
  std::vector<std::uint8_t> admitted_;
  std::vector<std::size_t> left_;     // positions of features that are admitted and not purged
  std::vector<std::uint64_t> ranks_;  // of features that are left, in a stage; 0: may not stay
  PathSums sums_{0};                  // of those left
};

}  // namespace thresher
