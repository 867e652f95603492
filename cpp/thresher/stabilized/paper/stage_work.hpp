// The bursts of a stage of the published rule: each path makes n_K bursts of K rows and a
// truncation. A row makes as many steps as its weight says (core/repeats.hpp),
// and all of them are in one burst. The paths are divided among the workers; their counts are then
// read by feature.
//
// Used by the rule on one machine (stabilized/paper/stabilized.hpp), and for the paths of one part
// of the rows (stabilized/paper/part.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "thresher/core/repeats.hpp"
#include "thresher/core/threads.hpp"
#include "thresher/stabilized/paper/bursts.hpp"
#include "thresher/stabilized/paper/evidence.hpp"
#include "thresher/stabilized/paper/quantile.hpp"
#include "thresher/stabilized/paths.hpp"

namespace thresher {

// What all bursts have in common.
struct BurstRule {
  explicit BurstRule(const Params& params)
      : eta(params.number("eta0")),
        n_K(static_cast<std::int64_t>(params.number("bursts"))),
        counts_gradients(params.word("count") == "gradient"),
        by_weight(params.word("gravity_rule") == "weight-quantile") {}

  double eta;
  std::int64_t n_K;
  bool counts_gradients, by_weight;
};

// The values at the start of a stage.
struct StagePlan {
  std::int64_t stage, K;
  double g0, beta;
};

template <class Real>
class StageWork {
  using Cells = DenseStore<PathCell<Real>>;

 public:
  // `zeros`: rows have stored zeros. `touched`: expected number of features that a burst sees.
  StageWork(const Batch& batch, Paths<Real>& paths, const BurstRule& rule, std::size_t workers,
            bool zeros, double touched = 0.0)
      : paths_(paths), rule_(rule), touched_(touched) {
    for (std::int64_t r = 0; batch.weights && r < batch.rows; ++r)
      most_steps_ = std::max(most_steps_, repeats_of(batch.weights[r]).count);
    for (std::size_t w = 0; w < workers; ++w) workers_.emplace_back(paths.width(), workers);
    for (std::size_t m = 0; m < paths.count(); ++m) walks_.emplace_back(batch, paths, m, zeros);
  }

  // Runs a stage of all paths, after it has frozen the features that were purged. Collects the
  // ratios from `low` to `high`.
  void run(Team& team, const StagePlan& plan, Real low, Real high);

  // Reads the counts of all workers for the features of worker `self`; call it once per stage. It
  // calls add(j, b, kb, k) one or more times for a feature, and fetch(j) a little earlier. If
  // `wanted`, it calls see(j) one or more times after all counts of j were added.
  template <class Fetch, class Add, class See>
  void each_count(std::size_t self, const Fetch& fetch, const Add& add, bool wanted,
                  const See& see) {
    if (sweeps_) {
      for (std::uint64_t from = 0; from < paths_.width(); from += 64) {
        if (CountLists::owner(from, workers_.size()) != self) continue;
        for (std::uint64_t j = from; j < std::min(paths_.width(), from + 64); ++j) {
          bool seen = false;
          for (Worker& worker : workers_)
            worker.sweep.take(j, [&](std::uint32_t b, std::uint32_t kb, std::uint32_t k) {
              add(j, b, kb, k), seen = true;
            });
          if (seen && wanted) see(j);
        }
      }
      return;
    }
    for (const Worker& worker : workers_)
      worker.counts.each(self, fetch, [&](std::uint64_t j, std::uint32_t k, std::uint32_t left) {
        add(j, left, 1u, k);
      });
    if (!wanted) return;
    for (const Worker& worker : workers_)
      worker.counts.each(self, fetch,
                         [&](std::uint64_t j, std::uint32_t, std::uint32_t) { see(j); });
  }

  std::size_t workers() const { return workers_.size(); }
  Ratios<Real>& ratios(std::size_t worker) { return workers_[worker].ratios; }
  Walk<Real>& walk(std::size_t path) { return walks_[path]; }
  const std::vector<Walk<Real>>& walks() const { return walks_; }
  double touched() const { return touched_; }

  // The purged features that a worker found. All workers freeze them in freeze(), or at the start
  // of the next stage.
  std::vector<std::uint64_t>& purged(std::size_t worker) { return workers_[worker].purged; }
  void freeze(Team& team) {
    team.together([this](std::size_t w) { freeze(w); });
  }

 private:
  // Workers share nothing within a stage.
  struct Worker {
    Worker(std::uint64_t width, std::size_t workers) : touched(width), counts(workers) {}

    Touched<Real> touched;
    Sweep<Real> sweep;
    Staged<Real> row;
    Ratios<Real> ratios;
    CountLists counts;
    std::vector<std::uint64_t> purged;
  };

  // K rows of one path, and the truncation.
  void listing_burst(Walk<Real>& walk, Cells& cells, Worker& worker, const StagePlan& plan);
  void sweeping_burst(Walk<Real>& walk, Cells& cells, Worker& worker, const StagePlan& plan);
  Truncation<Real> truncation(const Cells& cells, const StagePlan& plan) const;
  double quantile_of_weights(const Cells& cells, double beta) const;

  // A sweep costs per feature about a third of what the list costs per touched feature.
  bool sweep_is_faster(std::int64_t K) const {
    return touched_ > 0.3 * static_cast<double>(paths_.width()) &&
           most_steps_ * K <= Sweep<Real>::longest;
  }

  // Purged features stay 0 in every path.
  void freeze(std::size_t self) {
    for (const Worker& worker : workers_)
      for (std::size_t m = self; m < paths_.count(); m += workers_.size())
        for (const std::uint64_t j : worker.purged) paths_.freeze(m, j);
  }

  Paths<Real>& paths_;
  BurstRule rule_;
  std::vector<Worker> workers_;
  std::vector<Walk<Real>> walks_;
  double touched_;  // mean number of features that a burst of the last stage saw
  bool sweeps_ = false;
  std::int64_t most_steps_ = 1;  // of a row
};

}  // namespace thresher
