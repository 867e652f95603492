// Stabilized truncated SGD: Y. Ma, T. Zheng, "Stabilized Sparse Online Learning for Sparse Data",
// JMLR 2017, Algorithms 2 to 5, with its misprints corrected (REQUIREMENTS ).
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
// A path's step costs what a step of plain SGD does (paths.hpp), the end of a burst looks at the features
// it has seen alone, or at all of them without a detour (bursts.hpp), and workers meet twice a stage.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "../error.hpp"
#include "../team.hpp"
#include "bursts.hpp"
#include "evidence.hpp"
#include "paths.hpp"
#include "quantile.hpp"

namespace thresher {

template <class Real>
class Stabilized {
  using Cells = DenseStore<PathCell<Real>>;

 public:
  Stabilized(std::uint64_t width, const Loss& loss, const Params& params)
      : paths_(width, loss, params),
        eta_(params.number("eta0")),
        K0_(static_cast<std::int64_t>(params.number("burst"))),
        n_K_(static_cast<std::int64_t>(params.number("bursts"))),
        beta0_(params.number("rejection")),
        gamma_(params.number("annealing")),
        alpha_(params.number("burst_growth", 0.0)),
        counts_gradients_(params.word("count") == "gradient"),
        by_weight_(params.word("gravity_rule") == "weight-quantile"),
        evidence_(width, params.number("keep"), params.number("min_updates")) {
    K_ = K0_, beta_ = beta0_;
  }

  // Stages until every path has taken `passes` times as many rows as there are. After each stage
  // go_on(stage) is asked; false ends it. Stops also when after a pass the model has moved by less
  // than tol of its norm and nothing was purged.
  template <class GoOn>
  void learn(const Batch& batch, std::int64_t passes, double tol, std::size_t jobs, GoOn&& go_on) {
    if (batch.rows == 0) return;
    Team team(std::min(std::max<std::size_t>(jobs, 1), paths_.count()));
    const bool zeros = look_through(batch, team);
    std::vector<Worker> workers;
    for (std::size_t w = 0; w < team.size(); ++w) workers.emplace_back(paths_, team.size());
    if (purged_ > 0) team.together([&](std::size_t w) { freeze_purged(w, team.size()); });
    std::vector<Walk<Real>> walks;
    for (std::size_t m = 0; m < paths_.count(); ++m) walks.emplace_back(batch, paths_, m, zeros);
    std::vector<double> before;
    std::int64_t purged_before = -1;
    for (std::int64_t taken = 0, pass = 1; taken < passes * batch.rows;) {
      one_stage(team, workers, walks);
      taken += K_used_ * n_K_;
      taken_ += K_used_ * n_K_;
      if (!go_on(report(walks))) break;
      if (tol > 0 && taken >= pass * batch.rows) {
        pass = taken / batch.rows + 1;
        team.together([&](std::size_t w) { purge(workers, w); });
        std::vector<double> now = paths_.mean();
        if (purged_ == purged_before && distance(now, before) <= tol * distance(before, {})) break;
        before = std::move(now), purged_before = purged_;
      }
    }
    team.together([&](std::size_t w) { purge(workers, w); });
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

 private:
  Stage report(const std::vector<Walk<Real>>& walks) const {
    Stage stage{stage_, taken_, g0_, beta_, d_, stable_, K_, 0.0, 0.0};
    for (const Walk<Real>& walk : walks)
      stage.loss_sum += walk.tally().loss(), stage.weight_sum += walk.tally().weight();
    return stage;
  }

  // Workers share nothing within a stage.
  struct Worker {
    Worker(const Paths<Real>& paths, std::size_t workers)
        : touched(paths.width()), letters(workers) {}

    Touched<Real> touched;
    Sweep<Real> sweep;
    Staged<Real> row;
    Ratios<Real> ratios;
    Letters letters;
    std::vector<std::uint64_t> purged;  // of the features this worker owns, in the last stage
  };

  // ---- a stage -------------------------------------------------------------------------------

  void one_stage(Team& team, std::vector<Worker>& workers, std::vector<Walk<Real>>& walks) {
    K_used_ = K_;
    sweeps_ = sweeping_pays();
    team.together([&](std::size_t w) {
      Worker& worker = workers[w];
      purge(workers, w);
      worker.letters.clear();
      worker.sweep.end_stage();
      worker.ratios.size = 0;
      for (std::size_t m = w; m < paths_.count(); m += workers.size()) {
        if (sweeps_) worker.sweep.begin(paths_.cells(m));
        const std::size_t after = m + workers.size() < paths_.count() ? m + workers.size() : w;
        walks[after].fetch_rows();
        for (std::int64_t b = 0; b < n_K_; ++b) {
          if (b == n_K_ - 1) walks[after].fetch_cells(paths_.cells(after));
          sweeps_ ? sweeping_burst(walks[m], paths_.cells(m), worker)
                  : listing_burst(walks[m], paths_.cells(m), worker);
        }
      }
      worker.ratios.sift(quantile_.low(), quantile_.high());
    });
    team.together([&](std::size_t w) { weigh(workers, w); });
    for (const Worker& worker : workers) {
      stable_ -= static_cast<std::int64_t>(worker.purged.size());
      purged_ += static_cast<std::int64_t>(worker.purged.size());
    }
    if (stage_ > 0) {
      d_ = seen_ ? static_cast<double>(stable_) / static_cast<double>(seen_) : 0.0;
      beta_ = rejection(d_, beta0_, gamma_);
      if (alpha_ > 0) K_ = burst_size(K0_, alpha_, d_);
    }
    touched_ = 0.0;
    for (const Worker& worker : workers)
      touched_ += static_cast<double>(worker.ratios.size) /
                  static_cast<double>(static_cast<std::int64_t>(paths_.count()) * n_K_);
    if (!by_weight_)
      g0_ = quantile_.find(
          team, [&](std::size_t w) -> Ratios<Real>& { return workers[w].ratios; }, beta_);
    ++stage_;
  }

  // K steps of one path, and the truncation.
  void listing_burst(Walk<Real>& walk, Cells& cells, Worker& worker) {
    Touched<Real>& touched = worker.touched;
    touched.begin();
    for (std::int64_t t = 0; t < K_used_; ++t) {
      walk.next();
      const auto before = touched.mark();
      const double slope = walk.slope(cells, worker.row, touched.lister());
      touched.end_row(walk.count(), worker.row);
      if (slope == 0.0 && counts_gradients_) touched.back_to(before);
      else walk.move(cells, worker.row, static_cast<Real>(-eta_ * slope));
    }
    touched.truncate(cells, truncation(cells), worker.ratios, worker.letters);
  }

  void sweeping_burst(Walk<Real>& walk, Cells& cells, Worker& worker) {
    typename Sweep<Real>::Idler nobody;
    for (std::int64_t t = 0; t < K_used_; ++t) {
      walk.next();
      const double slope = walk.slope(cells, worker.row, nobody);
      if (slope != 0.0 || !counts_gradients_)
        walk.move(cells, worker.row, static_cast<Real>(-eta_ * slope));
    }
    worker.sweep.truncate(cells, truncation(cells), K_used_, worker.ratios);
  }

  Truncation<Real> truncation(const Cells& cells) const {
    const double g = !by_weight_ ? g0_ : stage_ > 0 ? quantile_of_weights(cells) : 0.0;
    return {Pack<Real>::all(static_cast<Real>(g)), !by_weight_};
  }

  // A sweep costs about as much for a feature as the list does for a third of a touched one.
  bool sweeping_pays() const {
    return touched_ > 0.3 * static_cast<double>(paths_.width()) && K_used_ <= Sweep<Real>::longest;
  }

  // Adds up what the workers have counted of one's own features, and evaluates them.
  void weigh(std::vector<Worker>& workers, std::size_t self) {
    std::vector<std::uint64_t>& purged = workers[self].purged;
    purged.clear();
    const auto evaluate = [&](std::uint64_t j) {
      if (evidence_.weigh(j, stage_)) purged.push_back(j);
    };
    const bool evaluates = stage_ > 0 && !evidence_.never_purges();
    if (sweeps_) {
      for (std::uint64_t from = 0; from < paths_.width(); from += 64) {
        if (Letters::owner(from, workers.size()) != self) continue;
        for (std::uint64_t j = from; j < std::min(paths_.width(), from + 64); ++j) {
          bool seen = false;
          for (Worker& worker : workers)
            worker.sweep.take(j, [&](std::uint32_t b, std::uint32_t kb, std::uint32_t k) {
              evidence_.add(j, stage_, b, kb, k), seen = true;
            });
          if (seen && evaluates) evaluate(j);
        }
      }
      return;
    }
    const auto fetch = [this](std::uint64_t j) { evidence_.fetch(j); };
    for (const Worker& worker : workers)
      worker.letters.each(self, fetch, [&](std::uint64_t j, std::uint32_t k, std::uint32_t left) {
        evidence_.add(j, stage_, left, 1, k);
      });
    if (!evaluates) return;
    for (const Worker& worker : workers)  // who had two letters is evaluated once
      worker.letters.each(self, fetch,
                          [&](std::uint64_t j, std::uint32_t, std::uint32_t) { evaluate(j); });
  }

  // Purged features are frozen at 0, for good, in every path.
  static constexpr auto frozen = std::numeric_limits<Whole<Real>>::min();

  void purge(const std::vector<Worker>& workers, std::size_t self) {
    for (const Worker& worker : workers)
      for (std::size_t m = self; m < paths_.count(); m += workers.size())
        for (const std::uint64_t j : worker.purged)
          paths_.cells(m).data()[j] = PathCell<Real>(0, frozen);
  }

  // All that were ever purged: paths that were restored do not know.
  void freeze_purged(std::size_t self, std::size_t workers) {
    for (std::size_t m = self; m < paths_.count(); m += workers)
      for (std::uint64_t j = 0; j < paths_.width(); ++j)
        if (evidence_.purged(j)) paths_.cells(m).data()[j] = PathCell<Real>(0, frozen);
  }

  // The rule of the authors' code: the beta-quantile of the weights that are not zero.
  double quantile_of_weights(const Cells& cells) const {
    std::vector<Real> sizes;
    for (std::uint64_t j = 0; j < paths_.width(); ++j)
      if (const Real w = cells.data()[j].first(); w != 0) sizes.push_back(std::fabs(w));
    return beta_ <= 0 || sizes.empty() ? 0.0 : nth(sizes, rank_of(beta_, sizes.size()));
  }

  // ---- schedules -----------------------------------------------------------------------------

  // phi of: beta0 at d = 1, 0 at d = 0; below the line for gamma > 0, above it for gamma < 0.
  static double rejection(double d, double beta0, double gamma) {
    if (gamma >= 0) return beta0 * (std::exp(-gamma * (1 - d)) - (1 - d) * std::exp(-gamma));
    return beta0 * std::log1p(-gamma * d) / std::log1p(-gamma);
  }

  static std::int64_t burst_size(std::int64_t K0, double alpha, double d) {
    const double K = static_cast<double>(K0) * std::log(1.0 / (alpha * std::max(d, 1e-12)));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(K)));
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
  double eta_;
  std::int64_t K0_, n_K_;
  double beta0_, gamma_, alpha_;
  bool counts_gradients_, by_weight_;
  Evidence evidence_;
  Quantile<Real> quantile_;
  std::int64_t stage_ = 0, taken_ = 0;
  double g0_ = 0.0, beta_ = 0.0, d_ = 1.0;
  std::int64_t K_ = 1, K_used_ = 1;
  std::int64_t seen_ = 0, stable_ = 0, purged_ = 0;
  double touched_ = 0.0;  // features that a burst of the last stage saw, on average
  bool sweeps_ = false;
};

}  // namespace thresher
