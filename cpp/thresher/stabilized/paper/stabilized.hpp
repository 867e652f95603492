// Stabilized truncated SGD: Y. Ma, T. Zheng, "Stabilized Sparse Online Learning for Sparse Data",
// JMLR 2017, Algorithms 2 to 4, with its misprints corrected.
//
// M paths of SGD walk through the rows, each in an order of its own. A burst is K steps of a path, and
// then a truncation in proportion to evidence: k_j, the steps of the burst that saw feature j,
//
//   w_j <- S(w_j, g0 k_j)                                          (R-13.2: untouched weights stay)
//
// A stage is n_K bursts on every path. At its end
//
//   Pi_j   selection probability: the share of bursts with k_j > 0 that left w_j nonzero
//   Omega  stable set: features with Pi_j < pi0 are purged, for good, from every path
//   d      share of Omega among the features seen;  beta = phi(d), the rejection rate
//   g0     gravity of the next stage: the beta-quantile of |change of w_j| / k_j, of all features
//          that were in Omega during the stage, those just purged among them
//
// Stage 0 warms up: g0 = 0, nothing is purged. The model is the mean of the paths.
//
// A path's step costs what a step of plain SGD does (stabilized/paths.hpp), the end of a burst looks at the features
// it has seen alone, or at all of them without a detour (stabilized/paper/bursts.hpp), and workers meet twice a stage:
// when the bursts are made (stabilized/paper/stage_work.hpp), and when the evidence is weighed (stabilized/paper/evidence.hpp).
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

  // Stages until every path has taken `passes` times as many rows as there are. After each stage
  // go_on(stage) is asked; false ends it. Stops also when after a pass the model has moved by less
  // than tol of its norm and nothing was purged.
  //
  // Between two stages rest() is called: the state is complete, and `resumed` learning of the same rows
  // continues from it with the next stage.
  template <class GoOn, class Rest>
  void learn(const Batch& batch, std::int64_t passes, double tol, std::size_t jobs, GoOn&& go_on,
             bool resumed, Rest&& rest) {
    if (batch.rows == 0) return;
    Team team(std::min(std::max<std::size_t>(jobs, 1), paths_.count()));
    const bool zeros = look_through(batch, team);
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
        rest();
        walks_ = nullptr;
      }
    }
    work.freeze(team);
    call_ = Call{};
    touched_ = work.touched();
    paths_.end_pass();
  }

  bool fresh() const { return seen_ == 0 && taken_ == 0; }

  std::vector<double> mean() const { return paths_.mean(); }
  double intercept() const { return 0.0; }  // the published rule has none

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

  // What the state at a rest has besides: where the call of learn stands.
  template <class Archive>
  void archive_rest(Archive& io) {
    if (walks_) {
      call_.tallies.clear();
      for (const Walk<Real>& walk : *walks_) call_.tallies.push_back(walk.tally());
    }
    io(call_.taken), io(call_.tallies), io(call_.mean), io(call_.purged);
    if (call_.taken < 0 || (!call_.mean.empty() && call_.mean.size() != paths_.width()))
      throw std::invalid_argument("the learner state is damaged");
  }

 private:
  // Where a call of learn stands.
  struct Call {
    std::int64_t taken = 0;      // rows, by each path
    std::vector<Tally> tallies;  // of the walks, where learning is resumed
    std::vector<double> mean;    // of the paths, when tol was last looked at
    std::int64_t purged = -1;    // features by then
  };

  Stage report(const std::vector<Walk<Real>>& walks) const {
    Stage stage{stage_, taken_, g0_, beta_, d_, stable_, K_, 0.0, 0.0};
    for (const Walk<Real>& walk : walks)
      stage.loss_sum += walk.tally().loss(), stage.weight_sum += walk.tally().weight();
    return stage;
  }

  void one_stage(Team& team, StageWork<Real>& work) {
    work.run(team, {stage_, K_, g0_, beta_}, quantile_.low(), quantile_.high());
    team.together([&](std::size_t w) { weigh(work, w); });
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

  // Adds up what the workers have counted of one's own features, and evaluates them.
  void weigh(StageWork<Real>& work, std::size_t self) {
    std::vector<std::uint64_t>& purged = work.purged(self);
    purged.clear();
    work.tell(
        self, [this](std::uint64_t j) { evidence_.fetch(j); },
        [this](std::uint64_t j, std::uint32_t b, std::uint32_t kb, std::uint32_t k)
            __attribute__((always_inline)) { evidence_.add(j, stage_, b, kb, k); },
        evidence_.evaluates(stage_),
        [&](std::uint64_t j) {
          if (evidence_.weigh(j, stage_)) purged.push_back(j);
        });
  }

  // All that were ever purged: paths that were restored do not know.
  void freeze_purged(std::size_t self, std::size_t workers) {
    for (std::size_t m = self; m < paths_.count(); m += workers)
      for (std::uint64_t j = 0; j < paths_.width(); ++j)
        if (evidence_.purged(j)) paths_.freeze(m, j);
  }

  // Throws for the first bad row, marks the features of these rows that no rows before had, and
  // returns whether there are stored zeros.
  bool look_through(const Batch& batch, Team& team) {
    const auto workers = static_cast<std::int64_t>(team.size());
    std::vector<std::uint8_t> come(paths_.width());
    std::vector<char> zeros(team.size());
    team.together([&](std::size_t w) {
      const auto part = static_cast<std::int64_t>(w);
      zeros[w] = paths_.check(batch, part * batch.rows / workers, (part + 1) * batch.rows / workers,
                              [&come](std::uint64_t j) {
                                std::atomic_ref(come[j]).store(1, std::memory_order_relaxed);
                              });
    });
    for (std::uint64_t j = 0; j < come.size(); ++j)
      if (come[j] && evidence_.see(j)) ++seen_, ++stable_;
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
  double touched_ = 0.0;  // as StageWork knows it
  Call call_;
  const std::vector<Walk<Real>>* walks_ = nullptr;  // at a rest
};

}  // namespace thresher
