// The stabilized rule made robust: evidence against noise, over long bursts (docs/decisions/0007).
//
// What stays of rules/stabilized.hpp: several paths, counting only steps that had a gradient, a selection
// probability, purging for good, a rejection share, and the mean of the paths. What changes is how a
// feature is judged. M paths of SGD walk through random halves of the rows, two paths through the two
// halves of one split, several passes from w = 0. Of each path,
//
//   z_j   sum of its first pass's single updates of w_j over the root of their sum of squares: k updates
//         that agree give sqrt(k), k updates that do not about 1. What was seen once weighs 1
//   w_j   the mean of its iterates in the second half of its steps
//
// and at the end of the stage, with Z_j the sum over all s stages of the mean of z_j over the paths, over
// the root of s, and W_j the mean of w_j over paths and stages,
//
//   Pi_j    the share of the paths whose w_j has the sign of most
//   score   |W_j Z_j| rms(x_j):  how much a feature moves predictions, times how little of it is noise
//
// Features with Pi_j < keep are purged, and of the rest those of lowest score: a share `rejection`, or
// as many as exceed `target`. When no more than `target` are left, M paths through all rows, each in an
// order of its own, learn the weights anew on the features that stayed; the model is their mean.
//
// Rows are copied without the features purged, so that later stages cost less (candidates.hpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../error.hpp"
#include "../team.hpp"
#include "candidates.hpp"
#include "paths.hpp"

namespace thresher {

template <class Real>
class Robust {
  using Rows = CandidateRows<Real>;

 public:
  Robust(std::uint64_t width, const Loss& loss, const Params& params)
      : loss_(loss),
        width_(width),
        paths_(static_cast<std::size_t>(params.number("paths"))),
        seed_(static_cast<std::uint64_t>(params.number("seed"))),
        eta_(params.number("eta0")),
        rejection_(params.number("rejection")),
        keep_(params.number("keep")),
        least_rows_(params.number("min_updates")),
        target_(params.number("target", 0.0)),
        stage_steps_(static_cast<std::int64_t>(params.number("stage_steps", 1000))),
        refit_steps_(static_cast<std::int64_t>(params.number("refit_steps", 5000))),
        streams_(params.number("streams", 0.0) != 0.0),
        features_(width) {
    if (width == 0) throw std::invalid_argument("the stabilized rule needs a width");
  }

  // Stages until no more than the target are left, then a new start for the weights that stayed. After
  // each stage go_on(stage) is asked; false ends the stages, and what is too much goes at once.
  //
  // In a stream, each call adds the evidence of its rows, and weights go on from where they were.
  // Features are purged when enough rows have come since the last time: a few rows cannot condemn.
  template <class GoOn>
  void learn(const Batch& batch, std::int64_t passes, double, std::size_t jobs, GoOn&& go_on) {
    if (batch.rows == 0) return;
    Team team(std::min(std::max<std::size_t>(jobs, 1), paths_));
    Rows rows = read(batch);
    if (rows.count() == 0) return;
    const std::size_t target = target_size();
    rows_since_purge_ += static_cast<std::int64_t>(rows.count());
    const bool purges = !streams_ || rows_since_purge_ >= purge_rows;
    if (purges) rows_since_purge_ = 0;
    const std::function<void()> look = [&] { go_on(Stage{}); };
    bool going_on = true;
    do {
      one_stage(team, look, rows);
      going_on = go_on(report(rows));
      if (purges) purge(rows, going_on ? size_after(rows.ids.size(), target) : target);
    } while (going_on && purges && rows.ids.size() > target);
    refit(team, look, rows, going_on ? passes : 1);
    go_on(report(rows));
  }

  std::vector<double> mean() const {
    std::vector<double> w(width_);
    for (std::uint64_t j = 0; j < width_; ++j) w[j] = features_[j].weight;
    return w;
  }
  double intercept() const { return bias_; }
  bool fresh() const { return rows_ == 0; }

  Findings findings() const {
    Findings found;
    for (std::uint64_t j = 0; j < width_; ++j)
      if (features_[j].rows > 0)
        found.add(j, std::max(0.0, features_[j].probability), features_[j].updates,
                  features_[j].purged);
    return found;
  }

  template <class Archive>
  void archive(Archive& io) {
    io(features_), io(bias_), io(stage_), io(rows_), io(seen_), io(norms_), io(weights_);
    io(taken_), io(rows_since_purge_), io(stable_), io(loss_sum_), io(weight_sum_);
    if (features_.size() != width_ || stage_ < 0 || rows_ < 0 || taken_ < 0 ||
        rows_since_purge_ < 0)
      throw std::invalid_argument("the learner state is damaged");
  }

 private:
  static constexpr std::int64_t kept = -1;
  static constexpr double unknown = -1.0;          // probability of a feature not judged yet
  static constexpr std::int64_t purge_rows = 500;  // of a stream between two times

  struct Feature {
    double Z = 0.0, W = 0.0;       // means over the paths, added up over the stages
    double squares = 0.0;          // sum of x_j^2 over the rows
    double probability = unknown;  // Pi_j of the last stage it took part in
    double weight = 0.0;           // of the model
    std::int64_t stages = 0;       // that had updates of it
    std::int64_t rows = 0;         // that have it
    std::int64_t updates = 0;      // over all paths and stages
    std::int64_t purged = kept;    // the stage at whose end it was purged
  };

  // What a path leaves behind, feature by feature.
  struct Cell {
    Real w = 0, squares = 0;
    Real late = 0;  // sum of updates, each times the share of the averaged iterates before it
    std::uint32_t updates = 0;
  };
  struct Path {
    std::vector<Cell> cells;
    std::vector<Real> z;
    double bias = 0.0, late_bias = 0.0;
    Tally tally;
    std::atomic<bool>* ended = nullptr;           // one for all paths
    const std::function<void()>* look = nullptr;  // of the caller's own path: throws on Ctrl-C
    std::uint32_t rows = 0;

    // Whether to go home; now and then it looks for Ctrl-C.
    bool looks() {
      if (++rows % 1024 != 0) return false;
      if (look) (*look)();
      return ended->load(std::memory_order_relaxed);
    }
  };

  // ---- reading the rows ----------------------------------------------------------------------

  // The rows with the features that can be judged; others wait until they have been seen often enough.
  Rows read(const Batch& batch) {
    Rows rows;
    rows.count_in(batch, width_, [this](std::uint64_t j, double x) {
      seen_ += features_[j].rows++ == 0;
      features_[j].squares += x * x;
    });
    for (std::size_t r = 0; r < rows.count(); ++r)
      norms_ += rows.norms[r], weights_ += rows.weights[r];
    rows_ += static_cast<std::int64_t>(rows.count());
    rows.copy_from(batch, width_, [this](std::uint64_t j) {
      return features_[j].purged == kept && often_enough(features_[j]);
    });
    return rows;
  }

  // As many as asked for, or the root of a tenth of rows times features that can be judged: more rows can
  // tell more features from noise, and of more features more are of use. Not below 400, or a third of
  // the features where these are fewer: so small a model needs no pruning that costs accuracy.
  std::size_t target_size() const {
    if (target_ > 0) return static_cast<std::size_t>(target_);
    double judged = 0.0;
    for (const Feature& feature : features_) judged += often_enough(feature);
    const double told_apart = std::sqrt(static_cast<double>(rows_) * judged / 10.0);
    return static_cast<std::size_t>(std::max({10.0, std::min(400.0, judged / 3.0), told_apart}));
  }

  bool often_enough(const Feature& feature) const {
    return feature.rows > 0 && static_cast<double>(feature.rows) >= least_rows_;
  }

  // ---- a path --------------------------------------------------------------------------------

  // SGD over all rows of `orders(0)`, `orders(1)`, ...; z of the first pass; the mean of the second half.
  template <class Orders>
  void walk(const Rows& rows, std::int64_t passes, const Orders& orders, Path& path) const {
    const double mean_norm = norms_ / static_cast<double>(rows_);
    const double mean_weight = weights_ / static_cast<double>(rows_);
    double t = 0.0, start = 0.0, window = 1.0;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const std::vector<std::int64_t> order = orders(pass);
      if (pass == 0) {
        const double total = static_cast<double>(passes) * static_cast<double>(order.size());
        start = std::floor(total / 2), window = total - start;
      }
      for (const std::int64_t row : order) {
        if (path.looks()) return;
        const auto r = static_cast<std::size_t>(row);
        const std::size_t begin = rows.starts[r], end = rows.starts[r + 1];
        const double share = std::max(0.0, t++ - start) / window;
        Real dot = 0;
        for (std::size_t k = begin; k < end; ++k) dot += path.cells[rows.keys[k]].w * rows.x[k];
        const double p = static_cast<double>(dot) + path.bias;
        if (!std::isfinite(p))
          throw Divergence("the weights diverged at row " + std::to_string(r) +
                           ": lower eta0, or scale the rows");
        const Outcome outcome = loss_(p, rows.labels[r]);
        path.tally.add(outcome, rows.weights[r]);
        const double g = rows.weights[r] * outcome.slope;
        if (g == 0.0) continue;  // no gradient, no evidence
        const double norm = std::max(mean_norm, rows.norms[r]);
        const double step = -eta_ * g / (norm > 0 ? norm : 1.0);
        const double step_bias = -eta_ * g / std::max(mean_weight, rows.weights[r]);  // its x is 1
        const Real b = static_cast<Real>(share);
        for (std::size_t k = begin; k < end; ++k) {
          Cell& cell = path.cells[rows.keys[k]];
          const Real u = static_cast<Real>(step * static_cast<double>(rows.x[k]));
          cell.w += u, cell.late += b * u, cell.squares += u * u;
          ++cell.updates;
        }
        path.bias += step_bias, path.late_bias += share * step_bias;
      }
      if (pass == 0) set_z(path);
    }
  }

  static void set_z(Path& path) {
    path.z.resize(path.cells.size());
    for (std::size_t i = 0; i < path.cells.size(); ++i) {
      const Cell& cell = path.cells[i];
      path.z[i] = cell.squares > 0 ? cell.w / std::sqrt(cell.squares) : Real(0);
    }
  }

  // Paths in waves of as many as there are workers; `use(path)` is called in the order of the paths, so
  // that sums do not depend on the number of workers.
  template <class Walks, class Use>
  void all_paths(Team& team, const std::function<void()>& look, const Walks& walks,
                 const Use& use) {
    std::vector<Path> wave(team.size());
    std::atomic<bool> ended = false;
    for (std::size_t from = 0; from < paths_; from += wave.size()) {
      const std::size_t count = std::min(wave.size(), paths_ - from);
      team.each(count, [&](std::size_t i, std::size_t worker) {
        wave[i] = Path{};
        wave[i].ended = &ended;
        if (worker == 0) wave[i].look = &look;
        try {
          walks(from + i, wave[i]);
        } catch (...) {
          ended = true;
          throw;
        }
      });
      for (std::size_t i = 0; i < count; ++i) {
        loss_sum_ += wave[i].tally.loss(), weight_sum_ += wave[i].tally.weight();
        use(wave[i]);
      }
    }
  }

  std::vector<std::int64_t> order(std::size_t path, std::int64_t pass, std::int64_t rows) const {
    return permutation(seed_, path, static_cast<std::uint64_t>((stage_ << 20) + pass), rows);
  }

  // ---- a stage -------------------------------------------------------------------------------

  // The evidence of one stage.
  void one_stage(Team& team, const std::function<void()>& look, const Rows& rows) {
    ++stage_;
    const auto n = static_cast<std::int64_t>(rows.count()), half = std::max<std::int64_t>(1, n / 2);
    const std::int64_t passes =
        streams_ ? 2 : std::max<std::int64_t>(2, (stage_steps_ + half - 1) / half);
    const std::size_t m = rows.ids.size();
    std::vector<double> z(m), w(m);
    std::vector<std::uint32_t> plus(m), minus(m);
    const auto walks = [&](std::size_t number, Path& path) {
      std::vector<std::int64_t> mine = order(paths_ + number / 2, 0, n);
      if (number % 2 == 0) mine.resize(static_cast<std::size_t>(half));
      else if (n > 1) mine.erase(mine.begin(), mine.begin() + half);
      path.cells.resize(m);
      const auto orders = [&](std::int64_t pass) {
        std::vector<std::int64_t> mixed =
            order(number, pass, static_cast<std::int64_t>(mine.size()));
        for (std::int64_t& i : mixed) i = mine[static_cast<std::size_t>(i)];
        return mixed;
      };
      walk(rows, passes, orders, path);
    };
    all_paths(team, look, walks, [&](const Path& path) {
      for (std::size_t i = 0; i < m; ++i) {
        const Cell& cell = path.cells[i];
        const double mean = static_cast<double>(cell.w - cell.late);
        z[i] += static_cast<double>(path.z[i]), w[i] += mean;
        plus[i] += mean > 0, minus[i] += mean < 0;
        features_[rows.ids[i]].updates += cell.updates;
      }
    });
    taken_ += passes * half;

    const double M = static_cast<double>(paths_);
    for (std::size_t i = 0; i < m; ++i) {
      Feature& feature = features_[rows.ids[i]];
      if (plus[i] + minus[i] == 0) continue;  // nothing was learned of it here
      feature.Z += z[i] / M, feature.W += w[i] / M, ++feature.stages;
      feature.probability = static_cast<double>(std::max(plus[i], minus[i])) / M;
    }
    stable_ = static_cast<std::int64_t>(m);
  }

  // How many of m features stay after a stage.
  std::size_t size_after(std::size_t m, std::size_t target) const {
    if (m <= target) return m;
    const auto share = static_cast<std::size_t>(static_cast<double>(m) * (1.0 - rejection_));
    return std::max(target, std::min(m - 1, share));
  }

  // Keeps the `size` features of highest score, of equal ones the first; those below `keep` go anyway.
  void purge(Rows& rows, std::size_t size) {
    const std::size_t m = rows.ids.size();
    std::vector<double> score(m);
    std::vector<std::size_t> ranked;
    for (std::size_t i = 0; i < m; ++i) {
      const Feature& feature = features_[rows.ids[i]];
      const double rms = std::sqrt(feature.squares / static_cast<double>(rows_));
      // The mean weight, and the sum of z as one z; in a stream features differ in how long they are known.
      const double stages = std::max(1.0, static_cast<double>(feature.stages));
      score[i] = std::fabs(feature.W / stages * feature.Z / std::sqrt(stages)) * rms;
      if (feature.probability >= keep_ || feature.probability == unknown) ranked.push_back(i);
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

  // The weights of what is left: the mean over the second half of the steps, and over the paths.
  void refit(Team& team, const std::function<void()>& look, const Rows& rows, std::int64_t passes) {
    const auto n = static_cast<std::int64_t>(rows.count());
    if (streams_)  // a few passes at first, later one
      passes = std::clamp<std::int64_t>((refit_steps_ + rows_ - 1) / rows_, 1, 4);
    else passes = std::max(passes, (refit_steps_ + n - 1) / n);
    const std::size_t m = rows.ids.size();
    std::vector<double> w(m);
    double bias = 0.0;
    ++stage_;
    const auto walks = [&](std::size_t number, Path& path) {
      path.cells.resize(m);
      path.bias = bias_;
      for (std::size_t i = 0; i < m; ++i)
        path.cells[i].w = static_cast<Real>(features_[rows.ids[i]].weight);
      walk(rows, passes, [&](std::int64_t pass) { return order(number, pass, n); }, path);
    };
    all_paths(team, look, walks, [&](const Path& path) {
      for (std::size_t i = 0; i < m; ++i) {
        w[i] += static_cast<double>(path.cells[i].w - path.cells[i].late);
        features_[rows.ids[i]].updates += path.cells[i].updates;
      }
      bias += path.bias - path.late_bias;
    });
    taken_ += passes * n;
    for (std::size_t i = 0; i < m; ++i)
      features_[rows.ids[i]].weight = w[i] / static_cast<double>(paths_);
    bias_ = bias / static_cast<double>(paths_);
  }

  Stage report(const Rows& rows) const {
    const double d = seen_ ? static_cast<double>(stable_) / static_cast<double>(seen_) : 0.0;
    const auto n = static_cast<std::int64_t>(rows.count());
    return {stage_, taken_, 0.0, rejection_, d, stable_, n, loss_sum_, weight_sum_};
  }

  Loss loss_;
  std::uint64_t width_;
  std::size_t paths_;
  std::uint64_t seed_;
  double eta_, rejection_, keep_, least_rows_, target_;
  // Enough steps for weights to say something on small sets; on large ones a pass or two has more.
  std::int64_t stage_steps_, refit_steps_;
  bool streams_;  // rows come in batches
  std::vector<Feature> features_;
  double bias_ = 0.0;
  std::int64_t stage_ = 0, rows_ = 0, seen_ = 0, stable_ = 0, taken_ = 0;
  std::int64_t rows_since_purge_ = 0;
  double norms_ = 0.0, weights_ = 0.0;
  double loss_sum_ = 0.0, weight_sum_ = 0.0;
};

}  // namespace thresher
