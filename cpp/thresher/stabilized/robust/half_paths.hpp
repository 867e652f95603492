// The paths of the robust rule: SGD on halves of the rows, or on all rows
// (stabilized/robust/robust.hpp). The rows are all rows, or those of one part on a cluster
// (stabilized/robust/pieces.hpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "thresher/core/error.hpp"
#include "thresher/core/random.hpp"
#include "thresher/core/tally.hpp"
#include "thresher/core/threads.hpp"
#include "thresher/loss/loss.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/stabilized/robust/candidates.hpp"

namespace thresher {

// Means over all rows, of all parts.
struct RowSizes {
  double norm;    // of weight times ||x||^2
  double weight;  // of the weight
};

// The results of paths, summed in the order of the paths; indexed by positions in the rows' `ids`.
struct PathSums {
  std::vector<double> z, w;  // z of the first pass, and the mean of the second half of the iterates
  std::vector<std::uint32_t> plus, minus;  // paths whose mean is above 0, and below
  std::vector<std::int64_t> updates;
  double bias = 0.0;
  double loss = 0.0, weight = 0.0;  // progressive
  std::int64_t rows = 0;            // steps of all paths

  explicit PathSums(std::size_t features)
      : z(features), w(features), plus(features), minus(features), updates(features) {}
};

template <class Real>
class RobustPaths {
  using Rows = CandidateRows<Real>;

 public:
  // Paths first .. first + count - 1; both numbers are even, because paths come in pairs.
  RobustPaths(const Loss& loss, const Params& params, std::size_t first, std::size_t count)
      : loss_(loss),
        paths_(static_cast<std::size_t>(params.number("paths"))),
        first_(first),
        count_(count),
        seed_(static_cast<std::uint64_t>(params.number("seed"))),
        eta_(params.number("eta0")),
        stage_steps_(static_cast<std::int64_t>(params.number("stage_steps", 1000))),
        refit_steps_(static_cast<std::int64_t>(params.number("refit_steps", 5000))) {}

  std::size_t count() const { return count_; }
  std::int64_t refit_steps() const { return refit_steps_; }

  // Small data sets need several passes for meaningful weights; large ones have enough rows in two.
  std::int64_t stage_passes(const Rows& rows) const {
    const std::int64_t half = half_of(rows);
    return std::max<std::int64_t>(2, (stage_steps_ + half - 1) / half);
  }
  std::int64_t refit_passes(const Rows& rows, std::int64_t passes) const {
    const auto n = static_cast<std::int64_t>(rows.count());
    return std::max(passes, (refit_steps_ + n - 1) / n);
  }
  static std::int64_t half_of(const Rows& rows) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(rows.count()) / 2);
  }

  // The evidence of a stage: pairs of paths learn from the two halves of random splits of the rows,
  // from w = 0. The caller's thread sometimes calls `check_interrupt`, which throws on Ctrl-C.
  PathSums halves(Team& team, const std::function<void()>& check_interrupt, const Rows& rows,
                  const RowSizes& sizes, std::int64_t stage, std::int64_t passes) const {
    const auto n = static_cast<std::int64_t>(rows.count()), half = half_of(rows);
    const auto walks = [&](std::size_t number, Path& path) {
      std::vector<std::int64_t> mine = order(paths_ + number / 2, stage, 0, n);
      if (number % 2 == 0) mine.resize(static_cast<std::size_t>(half));
      else if (n > 1) mine.erase(mine.begin(), mine.begin() + half);
      path.cells.resize(rows.ids.size());
      const auto orders = [&](std::int64_t pass) {
        std::vector<std::int64_t> mixed =
            order(number, stage, pass, static_cast<std::int64_t>(mine.size()));
        for (std::int64_t& i : mixed) i = mine[static_cast<std::size_t>(i)];
        return mixed;
      };
      walk(rows, sizes, passes, orders, path);
    };
    return all_paths(team, check_interrupt, rows.ids.size(), walks);
  }

  // Paths learn from all rows, each in its own orders, from the weights start(position) and a bias.
  template <class Start>
  PathSums whole(Team& team, const std::function<void()>& check_interrupt, const Rows& rows,
                 const RowSizes& sizes, std::int64_t stage, std::int64_t passes, Start&& start,
                 double bias) const {
    const std::size_t m = rows.ids.size();
    const auto n = static_cast<std::int64_t>(rows.count());
    const auto walks = [&](std::size_t number, Path& path) {
      path.cells.resize(m);
      path.bias = bias;
      for (std::size_t i = 0; i < m; ++i) path.cells[i].w = static_cast<Real>(start(i));
      const auto orders = [&](std::int64_t pass) { return order(number, stage, pass, n); };
      walk(rows, sizes, passes, orders, path);
    };
    return all_paths(team, check_interrupt, m, walks);
  }

 private:
  // The result of a path for one feature.
  struct Cell {
    Real w = 0, squares = 0;
    Real late = 0;  // sum of updates, each times the share of averaged iterates before it
    std::uint32_t updates = 0;
  };
  struct Path {
    std::vector<Cell> cells;
    std::vector<Real> z;
    double bias = 0.0, late_bias = 0.0;
    Tally tally;
    std::atomic<bool>* ended = nullptr;  // shared by all paths: one of them threw
    const std::function<void()>* check_interrupt = nullptr;  // in the caller's thread only
    std::uint32_t rows = 0;

    // Whether to stop; checks every 1024 rows.
    bool should_stop() {
      if (++rows % 1024 != 0) return false;
      if (check_interrupt) (*check_interrupt)();
      return ended->load(std::memory_order_relaxed);
    }
  };

  std::vector<std::int64_t> order(std::size_t path, std::int64_t stage, std::int64_t pass,
                                  std::int64_t rows) const {
    return permutation(seed_, path, static_cast<std::uint64_t>((stage << 20) + pass), rows);
  }

  // SGD over the rows of orders(0), orders(1), ...; sets z after the first pass.
  template <class Orders>
  void walk(const Rows& rows, const RowSizes& sizes, std::int64_t passes, const Orders& orders,
            Path& path) const {
    double t = 0.0, start = 0.0, window = 1.0;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const std::vector<std::int64_t> order = orders(pass);
      if (pass == 0) {
        const double total = static_cast<double>(passes) * static_cast<double>(order.size());
        start = std::floor(total / 2), window = total - start;
      }
      for (const std::int64_t row : order) {
        if (path.should_stop()) return;
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
        if (g == 0.0) continue;  // no gradient: no evidence
        const double norm = std::max(sizes.norm, rows.norms[r]);
        const double step = -eta_ * g / (norm > 0 ? norm : 1.0);
        const double step_bias = -eta_ * g / std::max(sizes.weight, rows.weights[r]);  // its x is 1
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

  // Runs as many paths at a time as there are workers. Sums them in the order of the paths, so that
  // sums do not depend on the number of workers.
  template <class Walks>
  PathSums all_paths(Team& team, const std::function<void()>& check_interrupt, std::size_t features,
                     const Walks& walks) const {
    PathSums sums(features);
    std::vector<Path> wave(team.size());
    std::atomic<bool> ended = false;
    for (std::size_t from = 0; from < count_; from += wave.size()) {
      const std::size_t count = std::min(wave.size(), count_ - from);
      team.each(count, [&](std::size_t i, std::size_t worker) {
        wave[i] = Path{};
        wave[i].ended = &ended;
        if (worker == 0) wave[i].check_interrupt = &check_interrupt;
        try {
          walks(first_ + from + i, wave[i]);
        } catch (...) {
          ended = true;
          throw;
        }
      });
      for (std::size_t i = 0; i < count; ++i) add(wave[i], sums);
    }
    return sums;
  }

  static void add(const Path& path, PathSums& sums) {
    for (std::size_t i = 0; i < path.cells.size(); ++i) {
      const Cell& cell = path.cells[i];
      const double mean = static_cast<double>(cell.w - cell.late);
      sums.z[i] += static_cast<double>(path.z[i]), sums.w[i] += mean;
      sums.plus[i] += mean > 0, sums.minus[i] += mean < 0;
      sums.updates[i] += cell.updates;
    }
    sums.bias += path.bias - path.late_bias;
    sums.loss += path.tally.loss(), sums.weight += path.tally.weight();
    sums.rows += path.tally.rows();
  }

  Loss loss_;
  std::size_t paths_, first_, count_;
  std::uint64_t seed_;
  double eta_;
  std::int64_t stage_steps_, refit_steps_;
};

}  // namespace thresher
