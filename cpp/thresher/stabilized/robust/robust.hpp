// The robust variant of the stabilized rule: it measures evidence against noise, over long bursts
// (docs/decisions/0007).
//
// Like stabilized/paper/stabilized.hpp it has several paths, counts of steps that had a gradient, a
// selection probability, a purge that is final, a rejection share, and the mean of the paths. It
// differs in how a feature is judged. M paths of SGD learn from random halves of the rows: two
// paths from the two halves of one split, with several passes from w = 0. A row makes as many steps
// as its weight says (core/repeats.hpp), all of them in one half. For each path,
//
//   z_j   sum of the updates of w_j in its first pass, divided by the root of the sum of their
//         squares: k equal updates give sqrt(k), k random ones about 1, a single one gives 1
//   w_j   mean of its iterates in the second half of its steps
//
// At the end of stage s, Z_j is the sum over all stages of the mean of z_j over the paths, divided
// by the root of s, W_j is the mean of w_j over paths and stages, and
//
//   Pi_j    the share of the paths whose w_j has the more frequent sign
//   score   |W_j Z_j| rms(x_j): how much a feature changes predictions, times how certain that is
//
// Features with Pi_j < keep are purged, and then those of lowest score: a share `rejection`, or as
// many as exceed `target`. When at most `target` are left, M paths learn the weights of these
// features again, from all rows, each in its own order. The model is the mean of these paths.
//
// If no target is given, the labels choose it (stabilized/robust/sizing.hpp), and paths start from
// the log-odds of the rows instead of a bias of 0. If there is no signal, the model is the
// intercept. The refit has the l2 that was best for this size.
//
// What makes it fast: rows are copied without the purged features, so that later stages cost less
// (stabilized/robust/candidates.hpp). The paths are in stabilized/robust/half_paths.hpp, the
// judgement of a feature in stabilized/robust/feature.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "thresher/core/threads.hpp"
#include "thresher/stabilized/paths.hpp"
#include "thresher/stabilized/robust/candidates.hpp"
#include "thresher/stabilized/robust/feature.hpp"
#include "thresher/stabilized/robust/half_paths.hpp"
#include "thresher/stabilized/robust/progressive.hpp"
#include "thresher/stabilized/robust/sizing.hpp"

namespace thresher {

template <class Real>
class Robust {
  using Rows = CandidateRows<Real>;

 public:
  Robust(std::uint64_t width, const Loss& loss, const Params& params)
      : width_(width),
        paths_(loss, params, 0, static_cast<std::size_t>(params.number("paths"))),
        sizing_(loss, params),
        rejection_(params.number("rejection")),
        keep_(params.number("keep")),
        least_rows_(params.number("min_updates")),
        target_(params.number("target", 0.0)),
        streams_(params.number("streams", 0.0) != 0.0),
        features_(width),
        sums_(width) {
    if (width == 0) throw std::invalid_argument("the stabilized rule needs a width");
  }

  // Makes stages until at most the target number of features is left, then learns their weights
  // again. Calls go_on(stage) after each stage; false ends the stages, and purges down to the
  // target at once.
  //
  // In a stream, each call adds the evidence of its rows, and continues from the current weights.
  // It purges features only after enough rows since the last purge: a few rows are too little
  // evidence.
  //
  // Calls between_stages() after the size is chosen and after a purge: the state is then complete,
  // and a call with the same rows and with `resumed` continues from it. It does not count the rows
  // again.
  template <class GoOn, class BetweenStages>
  void learn(const Batch& batch, std::int64_t passes, double, std::size_t jobs, GoOn&& go_on,
             bool resumed, BetweenStages&& between_stages) {
    if (batch.rows == 0) return;
    if (resumed && streams_)
      throw std::invalid_argument("learning from a stream cannot be resumed within a batch");
    Team team(std::min(std::max<std::size_t>(jobs, 1), paths_.count()));
    if (streams_ && target_ == 0 && totals_.weight > 0) judge_progress(batch);
    Rows rows = read(batch, resumed);
    if (rows.count() == 0) return;
    const std::function<void()> check_interrupt = [&] { go_on(Stage{}); };
    if (target_ == 0 && !streams_ && size_ == unknown_size) {
      choose_size(rows, jobs, check_interrupt);
      if (size_ > 0) between_stages();
    }
    if (size_ == 0) {
      end_without_signal(rows, go_on);
      return;
    }
    const std::size_t target = target_size();
    rows_since_purge_ += static_cast<std::int64_t>(rows.count());
    const bool purges = !streams_ || rows_since_purge_ >= purge_rows;
    if (purges) rows_since_purge_ = 0;
    bool going_on = true;
    bool stages_left = stage_ == 0 || !resumed || rows.ids.size() > target;
    while (stages_left) {
      one_stage(team, check_interrupt, rows);
      going_on = go_on(report(rows));
      if (purges)
        purge(rows, going_on ? robust_size_after(rows.ids.size(), target, rejection_) : target);
      stages_left = going_on && purges && rows.ids.size() > target;
      if (going_on) between_stages();
    }
    refit(team, check_interrupt, rows, going_on ? passes : 1);
    go_on(report(rows));
  }

  // Weights of 0 in a stream in which the model has not been better than the intercept alone.
  std::vector<double> mean() const {
    std::vector<double> w(width_);
    if (has_signal())
      for (std::uint64_t j = 0; j < width_; ++j) w[j] = features_[j].weight;
    return w;
  }
  double intercept() const { return has_signal() ? bias_ : prior(); }
  bool is_new() const { return rows_ == 0; }
  bool has_signal() const { return size_ != 0 && progress_.has_signal(); }

  Findings findings() const {
    Findings found;
    for (std::uint64_t j = 0; j < width_; ++j)
      if (features_[j].rows > 0)
        found.add(j, std::max(0.0, features_[j].probability), features_[j].updates,
                  features_[j].purged),
            found.z.push_back(sums_known_ ? sums_[j].z(totals_) : unknown_z);
    return found;
  }

  template <class Archive>
  void archive(Archive& io) {
    io(features_), io(bias_), io(stage_), io(rows_), io(seen_), io(norms_), io(weights_);
    io(taken_), io(rows_since_purge_), io(stable_), io(loss_sum_), io(weight_sum_);
    if (features_.size() != width_ || stage_ < 0 || rows_ < 0 || taken_ < 0 ||
        rows_since_purge_ < 0)
      throw std::invalid_argument("the learner state is damaged");
    if constexpr (requires { io.finished(); })
      if (io.finished()) {  // written by version 0.1.0
        sums_known_ = rows_ == 0, sums_.assign(width_, {});
        size_ = stage_ > 0 && target_ == 0 && !streams_ ? earlier_size() : unknown_size;
        return;
      }
    io(sums_), io(sums_known_), io(totals_), io(size_), io(strength_), io(progress_);
    if (sums_.size() != width_ || size_ < unknown_size)
      throw std::invalid_argument("the learner state is damaged");
  }
  // Between two stages, no more than archive() saves is needed.
  template <class Archive>
  void archive_call(Archive&) {}

 private:
  using Feature = RobustFeature;
  static constexpr std::int64_t kept = Feature::kept;
  static constexpr std::int64_t purge_rows = 500;  // of a stream, between two purges
  static constexpr std::int64_t unknown_size = -1;
  static constexpr double unknown_z = std::numeric_limits<double>::quiet_NaN();

  // ---- reading the rows ----------------------------------------------------------------------

  // Copies the rows with the features that can be judged: those that enough rows have.
  Rows read(const Batch& batch, bool counted) {
    Rows rows;
    const auto see = [&](std::uint64_t j, double x, double weight, double label) {
      if (counted) return;
      seen_ += features_[j].rows++ == 0;
      features_[j].squares += x * x;
      sums_[j].add(weight, x, label);
    };
    rows.count_in(batch, width_, see, [](std::uint64_t) {});
    if (!counted) {
      for (std::size_t r = 0; r < rows.count(); ++r) {
        norms_ += rows.weights[r] * rows.norms[r], weights_ += rows.weights[r];
        totals_.add(rows.weights[r], rows.labels[r]);
      }
      const bool first = rows_ == 0;
      rows_ += static_cast<std::int64_t>(rows.count());
      if (first) bias_ = first_bias();
    }
    rows.copy_from(batch, width_, [this](std::uint64_t j) {
      return features_[j].purged == kept && features_[j].often_enough(least_rows_);
    });
    return rows;
  }

  std::size_t target_size() const {
    if (size_ > 0) return static_cast<std::size_t>(size_);
    return robust_target(target_, static_cast<double>(rows_), target_ == 0 ? judged() : 0.0);
  }
  double judged() const {
    double count = 0.0;
    for (const Feature& feature : features_) count += feature.often_enough(least_rows_);
    return count;
  }
  // The size that version 0.1.0 chose, to continue one of its runs.
  std::int64_t earlier_size() const {
    return static_cast<std::int64_t>(robust_target(0.0, static_cast<double>(rows_), judged()));
  }

  // ---- the size --------------------------------------------------------------------------------

  void choose_size(const Rows& rows, std::size_t jobs,
                   const std::function<void()>& check_interrupt) {
    const std::size_t features = rows.ids.size();
    const SizeTable table = sizing_.measure(jobs, check_interrupt, rows, mean_norm(), features);
    const ChosenSize chosen = chosen_size(table, features);
    size_ = chosen.size, strength_ = chosen.strength;
    if (!table.sizes.empty()) intercept_loss_ = table.sums[0];
  }

  // The model is the intercept. There are two reports, as if of a first and a last stage: so that
  // records of several outputs can be told apart.
  template <class GoOn>
  void end_without_signal(const Rows& rows, GoOn&& go_on) {
    stable_ = 0, bias_ = prior();
    taken_ = static_cast<std::int64_t>(rows.count());
    for (int i = 0; i < 2; ++i) {
      ++stage_;
      loss_sum_ += intercept_loss_ / 2.0, weight_sum_ += totals_.weight / 2.0;
      go_on(report(rows));
      taken_ += paths_.stage_passes(rows) * paths_.half_of(rows);
    }
  }

  // In a stream: the loss of the model on rows that it has not learned.
  void judge_progress(const Batch& batch) {
    const double before = prior();
    thresher::Rows<Real> source(batch, Visit{nullptr, 0, batch.rows}, width_);
    while (source.next()) {
      source.check_values();
      source.check_target();
      if (source.weight() == 0) continue;
      double p = bias_;
      source.with_keys([&](const auto* keys) {
        for (std::size_t k = 0; k < source.count(); ++k)
          p += features_[static_cast<std::uint64_t>(keys[k])].weight *
               static_cast<double>(source.values()[k]);
      });
      progress_.add(source.weight(), p, before, source.label());
    }
  }

  // The log-odds of the rows so far.
  double prior() const {
    if (!(totals_.weight > 0)) return 0.0;
    return log_odds(totals_.positive, totals_.weight, static_cast<double>(rows_));
  }
  // Where paths start; 0 if the target is given: then the selection is that of version 0.1.0.
  double first_bias() const { return target_ == 0 ? prior() : 0.0; }

  // ||x||^2 of the rows so far: a mean with their weights.
  double mean_norm() const { return norms_ / weights_; }

  // ---- a stage -------------------------------------------------------------------------------

  // The evidence of one stage.
  void one_stage(Team& team, const std::function<void()>& check_interrupt, const Rows& rows) {
    ++stage_;
    const std::int64_t passes = streams_ ? 2 : paths_.stage_passes(rows);
    const PathSums sums =
        paths_.halves(team, check_interrupt, rows, mean_norm(), stage_, passes, first_bias());
    taken_ += passes * paths_.half_of(rows);
    count(sums);
    for (std::size_t i = 0; i < rows.ids.size(); ++i) {
      Feature& feature = features_[rows.ids[i]];
      feature.updates += sums.updates[i];
      feature.judge(sums.z[i], sums.w[i], sums.plus[i], sums.minus[i], paths());
    }
    stable_ = static_cast<std::int64_t>(rows.ids.size());
  }

  // Keeps at most `size` features with a probability of at least `keep`: those of highest score,
  // among equal scores the first. Purges all others.
  void purge(Rows& rows, std::size_t size) {
    const std::size_t m = rows.ids.size();
    std::vector<double> score(m);
    std::vector<std::size_t> ranked;
    for (std::size_t i = 0; i < m; ++i) {
      const Feature& feature = features_[rows.ids[i]];
      score[i] = feature.score(static_cast<double>(rows_));
      if (feature.may_stay(keep_)) ranked.push_back(i);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
    if (ranked.size() > size) ranked.resize(size);
    std::vector<bool> stays(m, false);
    for (const std::size_t i : ranked) stays[i] = true;
    for (std::size_t i = 0; i < m; ++i)
      if (!stays[i]) {
        features_[rows.ids[i]].purged = stage_;
        features_[rows.ids[i]].weight = 0.0;
      }
    rows.drop([this](std::uint64_t j) { return features_[j].purged != kept; });
    stable_ = static_cast<std::int64_t>(rows.ids.size());
  }

  // Learns the weights of the features that are left: the mean over the second half of the steps,
  // and over the paths.
  void refit(Team& team, const std::function<void()>& check_interrupt, const Rows& rows,
             std::int64_t passes) {
    if (streams_)  // a few passes at first, later one pass
      passes = std::clamp<std::int64_t>((paths_.refit_steps() + rows_ - 1) / rows_, 1, 4);
    else passes = paths_.refit_passes(rows, passes);
    ++stage_;
    typename RobustPaths<Real>::Start start;
    start.weights = [&](std::size_t i) { return features_[rows.ids[i]].weight; };
    start.bias = bias_;
    if (strength_ > 0) start.l2 = scale_free_l2(strength_, sizing_.spread(rows), totals_.weight);
    const PathSums sums =
        paths_.whole(team, check_interrupt, rows, mean_norm(), stage_, passes, start);
    taken_ += passes * static_cast<std::int64_t>(rows.count());
    count(sums);
    for (std::size_t i = 0; i < rows.ids.size(); ++i) {
      features_[rows.ids[i]].updates += sums.updates[i];
      features_[rows.ids[i]].weight = sums.w[i] / paths();
    }
    bias_ = sums.bias / paths();
  }

  double paths() const { return static_cast<double>(paths_.count()); }
  void count(const PathSums& sums) { loss_sum_ += sums.loss, weight_sum_ += sums.weight; }

  Stage report(const Rows& rows) const {
    const double d = seen_ ? static_cast<double>(stable_) / static_cast<double>(seen_) : 0.0;
    const auto n = static_cast<std::int64_t>(rows.count());
    return {stage_, taken_, 0.0, rejection_, d, stable_, n, loss_sum_, weight_sum_};
  }

  std::uint64_t width_;
  RobustPaths<Real> paths_;
  RobustSizing<Real> sizing_;
  double rejection_, keep_, least_rows_, target_;
  bool streams_;  // rows come in batches
  std::vector<Feature> features_;
  std::vector<LabelSums> sums_;
  bool sums_known_ = true;  // not in states of version 0.1.0
  RowTotals totals_;
  std::int64_t size_ = unknown_size;  // chosen by the labels
  double strength_ = 0.0;             // of the l2 of the refit; 0: none
  ProgressiveGain progress_;          // of a stream
  double intercept_loss_ = 0.0;       // of all rows, while the size is chosen
  double bias_ = 0.0;
  std::int64_t stage_ = 0, rows_ = 0, seen_ = 0, stable_ = 0, taken_ = 0;
  std::int64_t rows_since_purge_ = 0;
  double norms_ = 0.0, weights_ = 0.0;
  double loss_sum_ = 0.0, weight_sum_ = 0.0;
};

}  // namespace thresher
