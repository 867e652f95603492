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
//   g0     gravity of the next stage: the beta-quantile of |change of w_j| / k_j
//
// Stage 0 warms up: g0 = 0, nothing is purged. The model is the mean of the paths.
//
// What makes a stage of 25 rows cheap: every list is of touched features alone, a worker counts in arrays
// of its own, and the quantile is found by a histogram over the leading bits of the ratios.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "../error.hpp"
#include "../shrink.hpp"
#include "../team.hpp"
#include "paths.hpp"

namespace thresher {

template <class Real>
class Stabilized {
 public:
  Stabilized(std::uint64_t width, const Loss& loss, const Params& params)
      : paths_(width, loss, params),
        eta_(params.number("eta0")),
        K0_(static_cast<std::int64_t>(params.number("burst"))),
        n_K_(static_cast<std::int64_t>(params.number("bursts"))),
        beta0_(params.number("rejection")),
        gamma_(params.number("annealing")),
        pi0_(params.number("keep")),
        delta_K_(params.number("min_updates")),
        alpha_(params.number("burst_growth", 0.0)),
        counts_gradients_(params.word("count") == "gradient"),
        by_weight_(params.word("gravity_rule") == "weight-quantile"),
        evidence_(width) {
    K_ = K0_, beta_ = beta0_;
  }

  // Stages until every path has taken `passes` times as many rows as there are. After each stage
  // go_on(stage) is asked; false ends it. Stops also when after a pass the model has moved by less
  // than tol of its norm and nothing was purged.
  template <class GoOn>
  void learn(const Batch& batch, std::int64_t passes, double tol, std::size_t jobs, GoOn&& go_on) {
    if (batch.rows == 0) return;
    paths_.check(batch);
    mark_seen(batch);
    Team team(std::min(std::max<std::size_t>(jobs, 1), paths_.count()));
    std::vector<Worker> workers(team.size());
    team.together([&](std::size_t w) { workers[w].begin(evidence_, team.size()); });
    std::vector<Walk<Real>> walks;
    for (std::size_t m = 0; m < paths_.count(); ++m) walks.emplace_back(batch, paths_, m);
    std::vector<double> before;
    std::int64_t purged_before = -1;
    for (std::int64_t taken = 0, pass = 1; taken < passes * batch.rows;) {
      one_stage(team, workers, walks);
      taken += K_used_ * n_K_;
      taken_ += K_used_ * n_K_;
      if (!go_on(report(walks))) break;
      if (tol > 0 && taken >= pass * batch.rows) {
        pass = taken / batch.rows + 1;
        std::vector<double> now = paths_.mean();
        if (purged_ == purged_before && distance(now, before) <= tol * distance(before, {})) break;
        before = std::move(now), purged_before = purged_;
      }
    }
    paths_.end_pass();
  }

  std::vector<double> mean() const { return paths_.mean(); }
  double intercept() const { return 0.0; }  // the published rule has none

  // For each feature what is known of it; of those never seen, nothing.
  Findings findings() const {
    Findings found;
    for (std::uint64_t j = 0; j < evidence_.size(); ++j)
      if (evidence_[j].purged != unseen)
        found.add(j, evidence_[j].probability(), static_cast<std::int64_t>(evidence_[j].updates),
                  evidence_[j].purged);
    return found;
  }

  template <class Archive>
  void archive(Archive& io) {
    paths_.archive(io);
    io(stage_), io(taken_), io(g0_), io(beta_), io(d_), io(K_), io(stable_), io(seen_), io(purged_);
    const std::size_t width = evidence_.size();
    io(evidence_);
    if (evidence_.size() != width) throw std::invalid_argument("the learner state is damaged");
  }

 private:
  Stage report(const std::vector<Walk<Real>>& walks) const {
    Stage stage{stage_, taken_, g0_, beta_, d_, stable_, K_, 0.0, 0.0};
    for (const Walk<Real>& walk : walks)
      stage.loss_sum += walk.tally().loss(), stage.weight_sum += walk.tally().weight();
    return stage;
  }

  // What is known of a feature: 32 bytes.
  struct Evidence {
    std::uint64_t updates = 0;  // sum of k_j
    std::uint32_t B = 0, KB = 0,
                  KU = 0;  // bursts that left it nonzero, bursts that saw it, updates:
                           // since it was last evaluated
    std::uint32_t last_B = 0, last_KB = 0;  // then, Pi_j = last_B / last_KB
    std::int32_t purged = unseen;           // the stage at whose end it was purged

    double probability() const {
      return last_KB ? static_cast<double>(last_B) / static_cast<double>(last_KB) : 1.0;
    }
  };
  static constexpr std::int32_t unseen = -2, kept = -1;

  // A feature in the burst of a path: w_j at its begin, and k_j, or `gone`.
  struct Mark {
    Real start = 0;
    std::uint32_t k = 0;
  };
  static constexpr std::uint32_t gone = std::numeric_limits<std::uint32_t>::max();

  // A feature in the bursts of a stage, as B, KB, KU.
  struct Count {
    std::uint16_t b = 0, kb = 0;
    std::uint32_t ku = 0;
  };

  struct Letter {
    std::uint64_t key;
    Count count;
  };

  // Workers share nothing within a stage. What they have counted they write to one another in letters: a
  // feature belongs to one worker, who alone adds up its evidence. (Reading another worker's counts where
  // they lie would cost a cache miss each.)
  struct Worker {
    std::vector<Mark> marks;
    std::vector<Count> counts;
    std::vector<std::uint64_t> touched, listed;  // features of a burst, of a stage
    std::size_t n_touched = 0, n_listed = 0;
    std::vector<std::vector<Letter>> letters;    // one list for each worker
    std::vector<std::uint64_t> weighed, purged;  // features of this worker that had letters
    std::vector<Real> ratios;                    // |change| / k of all bursts of a stage
    std::vector<std::uint32_t> histogram;        // of the ratios, by leading bits
    std::vector<Real> chosen;                    // ratios of one bin
    Staged<Real> row;

    void begin(const std::vector<Evidence>& evidence, std::size_t workers) {
      marks.resize(evidence.size()), counts.resize(evidence.size());
      touched.resize(evidence.size() + 1), listed.resize(evidence.size() + 1);
      letters.resize(workers);
      histogram.assign(bins, 0);
      for (std::size_t j = 0; j < evidence.size(); ++j)
        if (evidence[j].purged >= 0) marks[j].k = gone;
    }
  };

  static std::size_t owner(std::uint64_t key, std::size_t workers) { return key / 64 % workers; }

  // ---- a stage -------------------------------------------------------------------------------

  void one_stage(Team& team, std::vector<Worker>& workers, std::vector<Walk<Real>>& walks) {
    K_used_ = K_;
    team.together([&](std::size_t w) {
      for (std::size_t m = w; m < paths_.count(); m += workers.size())
        for (std::int64_t b = 0; b < n_K_; ++b) burst(walks[m], paths_.weights(m), workers[w]);
      write_letters(workers[w]);
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
    const Quantile quantile = by_weight_ ? Quantile{} : find_bin(workers);
    team.together([&](std::size_t w) {
      purge(workers, w);
      collect(workers[w], quantile);
    });
    if (!by_weight_) g0_ = value_of(workers, quantile);
    ++stage_;
  }

  // K steps of one path, and the truncation.
  void burst(Walk<Real>& walk, Real* w, Worker& worker) {
    Mark* marks = worker.marks.data();
    std::uint64_t* touched = worker.touched.data();
    std::size_t n = 0;
    for (std::int64_t t = 0; t < K_used_; ++t) {
      walk.next();
      const double slope = walk.slope(
          worker.row, [marks](std::uint64_t j) { return marks[j].k != gone; },
          [marks, w](std::uint64_t j) {
            __builtin_prefetch(marks + j, 1), __builtin_prefetch(w + j, 1);
          },
          w);
      if (slope == 0.0 && counts_gradients_) continue;
      const Real step = static_cast<Real>(-eta_ * slope);
      const std::uint64_t* keys = worker.row.keys.data();
      const Real* x = worker.row.x.data();
      for (std::size_t i = 0; i < worker.row.size; ++i) {  // free of branches
        const std::uint64_t j = keys[i];
        const Mark mark = marks[j];
        const Real v = w[j];
        touched[n] = j;
        n += mark.k == 0;
        marks[j] = {mark.k == 0 ? v : mark.start, mark.k + 1};
        w[j] = v + step * x[i];
      }
    }
    const Real g = static_cast<Real>(by_weight_ && stage_ > 0 ? quantile_of_weights(w) : g0_);
    const std::size_t before = worker.ratios.size();
    worker.ratios.resize(before + n);
    Real* ratios = worker.ratios.data() + before;
    std::uint32_t* histogram = worker.histogram.data();
    Count* counts = worker.counts.data();
    std::uint64_t* listed = worker.listed.data();
    std::size_t n_listed = worker.n_listed;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t j = touched[i];
      const Mark mark = marks[j];
      const Real k = static_cast<Real>(mark.k), v = w[j];
      const Real ratio = std::fabs(v - mark.start) / k;
      ratios[i] = ratio;
      ++histogram[bin(ratio)];
      const Real left = truncated(v, by_weight_ ? Real(1) : k, g);
      w[j] = left;
      Count count = counts[j];
      listed[n_listed] = j;
      n_listed += count.kb == 0;
      count.b = static_cast<std::uint16_t>(count.b + (left != 0));
      count.kb = static_cast<std::uint16_t>(count.kb + 1);
      count.ku += mark.k;
      counts[j] = count;
      marks[j].k = 0;
    }
    worker.n_listed = n_listed;
  }

  // S(v, g k). Compared as a ratio: a feature whose whole weight came in this burst and whose ratio is
  // the quantile g itself is rejected, whatever g k rounds to.
  static Real truncated(Real v, Real k, Real g) {
    return std::fabs(v) / k <= g ? Real(0) : soft(v, g * k);
  }

  void write_letters(Worker& worker) {
    const std::size_t workers = worker.letters.size();
    for (std::vector<Letter>& list : worker.letters) list.clear();
    for (std::size_t i = 0; i < worker.n_listed; ++i) {
      const std::uint64_t j = worker.listed[i];
      worker.letters[owner(j, workers)].push_back({j, worker.counts[j]});
      worker.counts[j] = Count{};
    }
    worker.n_listed = 0;
  }

  // Adds up what the workers have counted of one's own features, and evaluates them.
  void weigh(std::vector<Worker>& workers, std::size_t self) {
    Worker& me = workers[self];
    me.purged.clear(), me.weighed.clear();
    for (const Worker& worker : workers)
      for (const Letter& letter : worker.letters[self]) {
        Evidence& e = evidence_[letter.key];
        e.updates += letter.count.ku;
        if (stage_ == 0) continue;  // the warm-up
        e.B += letter.count.b, e.KB += letter.count.kb, e.KU += letter.count.ku;
        me.weighed.push_back(letter.key);
      }
    for (const std::uint64_t j :
         me.weighed) {  // who had two letters is evaluated once: KB = 0 then
      Evidence& e = evidence_[j];
      if (e.KB == 0 || static_cast<double>(e.KU) <= delta_K_) continue;
      e.last_B = e.B, e.last_KB = e.KB;
      e.B = e.KB = e.KU = 0;
      if (e.probability() < pi0_) {
        e.purged = static_cast<std::int32_t>(stage_);
        me.purged.push_back(j);
      }
    }
  }

  void purge(std::vector<Worker>& workers, std::size_t self) {
    for (const Worker& worker : workers)
      for (const std::uint64_t j : worker.purged) {
        workers[self].marks[j].k = gone;
        for (std::size_t m = self; m < paths_.count(); m += workers.size())
          paths_.weights(m)[j] = 0;
      }
  }

  // ---- the quantile (R-13.10) ----------------------------------------------------------------

  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  static constexpr std::size_t bins = 1 << 11;  // of the sign, always 0, and the next 11 bits

  static std::size_t bin(Real ratio) {
    return std::bit_cast<Bits>(ratio) >> (8 * sizeof(Real) - 12);
  }

  struct Quantile {
    std::size_t bin = bins;  // none
    std::size_t rank = 0;    // within the bin, from 0
  };

  // The least g that a share beta of the ratios does not exceed: the ratio of that rank.
  Quantile find_bin(const std::vector<Worker>& workers) const {
    std::size_t total = 0;
    for (const Worker& worker : workers) total += worker.ratios.size();
    if (beta_ <= 0 || total == 0) return {};
    std::size_t rank = rank_of(beta_, total);
    for (std::size_t i = 0; i < bins; ++i) {
      std::size_t here = 0;
      for (const Worker& worker : workers) here += worker.histogram[i];
      if (rank < here) return {i, rank};
      rank -= here;
    }
    return {};
  }

  static void collect(Worker& worker, const Quantile& quantile) {
    worker.chosen.clear();
    if (quantile.bin < bins)
      for (const Real ratio : worker.ratios)
        if (bin(ratio) == quantile.bin) worker.chosen.push_back(ratio);
    worker.ratios.clear();
    std::fill(worker.histogram.begin(), worker.histogram.end(), 0);
  }

  static double value_of(std::vector<Worker>& workers, const Quantile& quantile) {
    if (quantile.bin == bins) return 0.0;
    std::vector<Real>& all = workers[0].chosen;
    for (std::size_t w = 1; w < workers.size(); ++w)
      all.insert(all.end(), workers[w].chosen.begin(), workers[w].chosen.end());
    return nth(all, quantile.rank);
  }

  // The rule of the authors' code: the beta-quantile of the weights that are not zero.
  double quantile_of_weights(const Real* w) const {
    std::vector<Real> sizes;
    for (std::uint64_t j = 0; j < paths_.width(); ++j)
      if (w[j] != 0) sizes.push_back(std::fabs(w[j]));
    return beta_ <= 0 || sizes.empty() ? 0.0 : nth(sizes, rank_of(beta_, sizes.size()));
  }

  static std::size_t rank_of(double beta, std::size_t count) {
    const double rank = std::ceil(beta * static_cast<double>(count) - 1e-12);
    return std::min(count, static_cast<std::size_t>(std::max(1.0, rank))) - 1;
  }

  static double nth(std::vector<Real>& values, std::size_t rank) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), at, values.end());
    return static_cast<double>(*at);
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

  // Features of these rows that no rows before had.
  void mark_seen(const Batch& batch) {
    for_each_key(batch, paths_.width(), [this](std::uint64_t j) {
      if (evidence_[j].purged == unseen) evidence_[j].purged = kept, ++seen_, ++stable_;
    });
    if (stage_ > 0) d_ = static_cast<double>(stable_) / static_cast<double>(seen_);
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
  double beta0_, gamma_, pi0_, delta_K_, alpha_;
  bool counts_gradients_, by_weight_;
  std::vector<Evidence> evidence_;
  std::int64_t stage_ = 0, taken_ = 0;
  double g0_ = 0.0, beta_ = 0.0, d_ = 1.0;
  std::int64_t K_ = 1, K_used_ = 1;
  std::int64_t seen_ = 0, stable_ = 0, purged_ = 0;
};

}  // namespace thresher
