// The published stabilized rule for rows in several parts: the evidence of a range of features,
// with counts from all parts. It evaluates features by
// (stabilized/paper/evidence.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/stabilized/paper/evidence.hpp"
#include "thresher/stabilized/paper/part.hpp"

namespace thresher {

// Keys are relative to the start of the range.
class PaperRange {
 public:
  PaperRange(std::uint64_t width, double pi0, double delta_K) : evidence_(width, pi0, delta_K) {}

  mutable std::mutex gate;  // as in Learner
  mutable std::shared_mutex mutex;

  // Marks features that a part has; returns how many are new.
  std::int64_t see(std::span<const std::uint32_t> keys) {
    check(keys);
    std::int64_t fresh = 0;
    for (const std::uint32_t j : keys) fresh += evidence_.see(j);
    return fresh;
  }

  // Adds counts of a stage: b, kb and k.
  void add(std::int64_t stage, const FeatureCounts& counts) {
    check(counts.keys);
    if (counts.columns.size() != 3)
      throw std::invalid_argument("counts: three columns, b, kb and k");
    const std::size_t n = counts.keys.size();
    for (std::size_t i = 0; i < n; ++i) {
      evidence_.fetch(counts.keys[std::min(i + 32, n - 1)]);
      evidence_.add(counts.keys[i], stage, counts.columns[0][i], counts.columns[1][i],
                    counts.columns[2][i]);
    }
  }

  // Evaluates features of a stage, after all their counts were added; returns those purged now.
  std::vector<std::uint32_t> evaluate(std::int64_t stage, std::span<const std::uint32_t> keys) {
    check(keys);
    std::vector<std::uint32_t> purged;
    if (!evidence_.evaluates(stage)) return purged;
    for (const std::uint32_t j : keys)
      if (evidence_.evaluate(j, stage)) purged.push_back(j);
    return purged;
  }

  Findings findings() const { return evidence_.findings(); }

  std::vector<std::byte> state() const {
    Saver save;
    const_cast<Evidence&>(evidence_).archive_known(save);  // a Saver only reads
    return save.take();
  }
  // An error leaves the range unchanged.
  void restore(std::span<const std::byte> state) {
    Restorer restore(state);
    Evidence evidence = evidence_.empty_copy();
    evidence.archive_known(restore);
    if (!restore.finished()) throw std::invalid_argument("the state of a range is damaged");
    evidence_ = std::move(evidence);
  }

 private:
  void check(std::span<const std::uint32_t> keys) const {
    for (const std::uint32_t j : keys)
      if (j >= evidence_.width()) throw std::invalid_argument("a feature is outside the range");
  }

  Evidence evidence_;
};

}  // namespace thresher
