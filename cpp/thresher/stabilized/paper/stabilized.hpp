// Stabilized truncated SGD: Y. Ma, T. Zheng, "Stabilized Sparse Online Learning for Sparse Data",
// JMLR 2017, Algorithms 2 to 4, with its misprints corrected.
//
// M paths of SGD learn from the rows, each in its own order. A burst is K rows of a path and then
// a truncation, proportional to k_j, the number of steps of the burst whose row has feature j (a
// row makes one step, or more if its weight says so: core/repeats.hpp):
//
//   w_j <- S(w_j, g0 k_j)                     (R-13.2: weights without a step do not change)
//
// A stage is n_K bursts on every path. At its end
//
//   Pi_j   selection probability: the share of bursts with k_j > 0 that left w_j nonzero
//   Omega  stable set: features with Pi_j < pi0 are purged from every path and stay 0
//   d      share of Omega among the features seen;  beta = phi(d), the rejection rate
//   g0     gravity of the next stage: the beta-quantile of |change of w_j| / k_j over all
//          features that were in Omega during the stage, including those just purged
//
// Stage 0 is a warm-up: g0 = 0, nothing is purged. The model is the mean of the paths.
//
// What makes it fast: a step of a path costs as much as a step of plain SGD (stabilized/paths.hpp).
// The end of a burst reads only the features that it saw, or all in one loop
// (stabilized/paper/bursts.hpp). Workers wait for each other twice per stage: after the bursts
// (stabilized/paper/stage_work.hpp), and after the evaluation of the evidence
// (stabilized/paper/evidence.hpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "thresher/core/threads.hpp"
#include "thresher/stabilized/paper/evidence.hpp"
#include "thresher/stabilized/paper/quantile.hpp"
#include "thresher/stabilized/paper/schedules.hpp"
#include "thresher/stabilized/paper/stage_work.hpp"
#include "thresher/stabilized/paths.hpp"

namespace thresher {

template <class Real>
class Stabilized {
 public:
  Stabilized(std::uint64_t width, const Loss& loss, const Params& params)
      : paths_(width, loss, params),
        bursts_(params),
        K0_(static_cast<std::int64_t>(params.number("burst"))),
        beta0_(params.number("rejection")),
        gamma_(params.number("annealing")),
        alpha_(params.number("burst_growth", 0.0)),
        evidence_(width, params.number("keep"), params.number("min_updates")) {
    K_ = K0_, beta_ = beta0_;
  }

  // Makes stages until every path has made `passes` passes over the rows. Calls go_on(stage) after
  // each stage; false ends learning. Also ends if during a pass the model changed by less than tol
  // of its norm and nothing was purged.
  //
  // Calls between_stages() between two stages: the state is then complete, and a call with the same
  // rows and with `resumed` continues from it.
  template <class GoOn, class BetweenStages>
  void learn(const Batch& batch, std::int64_t passes, double tol, std::size_t jobs, GoOn&& go_on,
             bool resumed, BetweenStages&& between_stages) {
    if (batch.rows == 0) return;
    Team team(std::min(std::max<std::size_t>(jobs, 1), paths_.count()));
    const bool zeros = check_rows(batch, team);
    StageWork<Real> work(batch, paths_, bursts_, team.size(), zeros, touched_);
    if (purged_ > 0) team.together([&](std::size_t w) { freeze_purged(w, team.size()); });
    if (!resumed) call_ = Call{};
    else if (call_.tallies.size() != paths_.count())
      throw std::invalid_argument("the learner state is damaged");
    for (std::size_t m = 0; m < call_.tallies.size(); ++m)
      work.walk(m).resume(call_.taken, call_.tallies[m]);
    std::int64_t pass = call_.taken / batch.rows + 1;
    while (call_.taken < passes * batch.rows) {
      const std::int64_t rows = K_ * bursts_.n_K;
      one_stage(team, work);
      call_.taken += rows, taken_ += rows;
      if (!go_on(report(work.walks()))) break;
      if (tol > 0 && call_.taken >= pass * batch.rows) {
        pass = call_.taken / batch.rows + 1;
        work.freeze(team);
        std::vector<double> now = paths_.mean();
        if (purged_ == call_.purged && distance(now, call_.mean) <= tol * distance(call_.mean, {}))
          break;
        call_.mean = std::move(now), call_.purged = purged_;
      }
      if (call_.taken < passes * batch.rows) {
        walks_ = &work.walks();
        between_stages();
        walks_ = nullptr;
      }
    }
    work.freeze(team);
    call_ = Call{};
    touched_ = work.touched();
    paths_.end_pass();
  }

  bool is_new() const { return seen_ == 0 && taken_ == 0; }

  std::vector<double> mean() const { return paths_.mean(); }
  double intercept() const { return 0.0; }  // the published rule has no intercept

  Findings findings() const { return evidence_.findings(); }

  template <class Archive>
  void archive(Archive& io) {
    paths_.archive(io);
    io(stage_), io(taken_), io(g0_), io(beta_), io(d_), io(K_), io(stable_), io(seen_), io(purged_);
    evidence_.archive(io);
    const double longest = alpha_ > 0 ? static_cast<double>(burst_size(K0_, alpha_, 0.0)) : 0.0;
    const bool sound = K_ >= 1 &&
                       static_cast<double>(K_) <= std::max(longest, static_cast<double>(K0_)) &&
                       stage_ >= 0 && taken_ >= 0 && g0_ >= 0 && std::isfinite(g0_) && beta_ >= 0 &&
                       beta_ <= 1 && d_ >= 0 && d_ <= 1 && stable_ >= 0 && stable_ <= seen_;
    if (!sound) throw std::invalid_argument("the learner state is damaged");
  }

  // Archives the progress of a call of learn, which is part of a state between two stages.
  template <class Archive>
  void archive_call(Archive& io) {
    if (walks_) {
      call_.tallies.clear();
      for (const Walk<Real>& walk : *walks_) call_.tallies.push_back(walk.tally());
    }
    io(call_.taken), io(call_.tallies), io(call_.mean), io(call_.purged);
    if (call_.taken < 0 || (!call_.mean.empty() && call_.mean.size() != paths_.width()))
      throw std::invalid_argument("the learner state is damaged");
  }

 private:
  // The progress of a call of learn.
  struct Call {
    std::int64_t taken = 0;      // rows that each path has learned
    std::vector<Tally> tallies;  // of the walks, if learning is resumed
    std::vector<double> mean;    // of the paths, at the last check of tol
    std::int64_t purged = -1;    // number of purged features, at that check
  };

  Stage report(const std::vector<Walk<Real>>& walks) const {
    Stage stage{stage_, taken_, g0_, beta_, d_, stable_, K_, 0.0, 0.0};
    for (const Walk<Real>& walk : walks)
      stage.loss_sum += walk.tally().loss(), stage.weight_sum += walk.tally().weight();
    return stage;
  }

  void one_stage(Team& team, StageWork<Real>& work) {
    work.run(team, {stage_, K_, g0_, beta_}, quantile_.low(), quantile_.high());
    team.together([&](std::size_t w) { evaluate(work, w); });
    for (std::size_t w = 0; w < work.workers(); ++w) {
      stable_ -= static_cast<std::int64_t>(work.purged(w).size());
      purged_ += static_cast<std::int64_t>(work.purged(w).size());
    }
    if (stage_ > 0) {
      d_ = seen_ ? static_cast<double>(stable_) / static_cast<double>(seen_) : 0.0;
      beta_ = rejection_rate(d_, beta0_, gamma_);
      if (alpha_ > 0) K_ = burst_size(K0_, alpha_, d_);
    }
    if (!bursts_.by_weight)
      g0_ = quantile_.find(
          team, [&](std::size_t w) -> Ratios<Real>& { return work.ratios(w); }, beta_);
    ++stage_;
  }

  // Sums the counts of all workers for the features of one worker, and evaluates these.
  void evaluate(StageWork<Real>& work, std::size_t self) {
    std::vector<std::uint64_t>& purged = work.purged(self);
    purged.clear();
    work.each_count(
        self, [this](std::uint64_t j) { evidence_.fetch(j); },
        [this](std::uint64_t j, std::uint32_t b, std::uint32_t kb, std::uint32_t k)
            __attribute__((always_inline)) { evidence_.add(j, stage_, b, kb, k); },
        evidence_.evaluates(stage_),
        [&](std::uint64_t j) {
          if (evidence_.evaluate(j, stage_)) purged.push_back(j);
        });
  }

  // Freezes all purged features: restored paths do not have this information.
  void freeze_purged(std::size_t self, std::size_t workers) {
    for (std::size_t m = self; m < paths_.count(); m += workers)
      for (std::uint64_t j = 0; j < paths_.width(); ++j)
        if (evidence_.purged(j)) paths_.freeze(m, j);
  }

  // Throws for the first bad row, marks the features of these rows as seen, and returns
  // whether there are stored zeros.
  bool check_rows(const Batch& batch, Team& team) {
    const auto workers = static_cast<std::int64_t>(team.size());
    std::vector<std::uint8_t> found(paths_.width());
    std::vector<char> zeros(team.size());
    team.together([&](std::size_t w) {
      const auto part = static_cast<std::int64_t>(w);
      zeros[w] = paths_.check(batch, part * batch.rows / workers, (part + 1) * batch.rows / workers,
                              [&found](std::uint64_t j) {
                                std::atomic_ref(found[j]).store(1, std::memory_order_relaxed);
                              });
    });
    for (std::uint64_t j = 0; j < found.size(); ++j)
      if (found[j] && evidence_.see(j)) ++seen_, ++stable_;
    if (stage_ > 0) d_ = static_cast<double>(stable_) / static_cast<double>(seen_);
    return std::find(zeros.begin(), zeros.end(), 1) != zeros.end();
  }

  static double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      const double gap = a[j] - (j < b.size() ? b[j] : 0.0);
      sum += gap * gap;
    }
    return std::sqrt(sum);
  }

  Paths<Real> paths_;
  BurstRule bursts_;
  std::int64_t K0_;
  double beta0_, gamma_, alpha_;
  Evidence evidence_;
  Quantile<Real> quantile_;
  std::int64_t stage_ = 0, taken_ = 0;
  double g0_ = 0.0, beta_ = 0.0, d_ = 1.0;
  std::int64_t K_ = 1;
  std::int64_t seen_ = 0, stable_ = 0, purged_ = 0;
  double touched_ = 0.0;  // see StageWork
  Call call_;
  const std::vector<Walk<Real>>* walks_ = nullptr;  // between two stages
};

}  // namespace thresher
