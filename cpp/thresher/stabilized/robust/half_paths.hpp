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

// The results of paths, summed in the order of the paths; indexed by positions in the rows' `ids`.
struct PathSums {
  std::vector<double> z, w;  // z of the first pass, and the mean of the second half of the iterates
  std::vector<std::uint32_t> plus, minus;  // number of paths whose mean is above 0, and below 0
  std::vector<std::int64_t> updates;
  double bias = 0.0;
  double loss = 0.0, weight = 0.0;  // progressive
  std::int64_t rows = 0;            // that all paths have learned

  explicit PathSums(std::size_t features)
      : z(features), w(features), plus(features), minus(features), updates(features) {}
};

template <class Real>
class RobustPaths {
  using Rows = CandidateRows<Real>;

 public:
  using Orders = std::function<std::vector<std::int64_t>(std::int64_t pass)>;

  // Where a path starts, and the l2 penalty of the mean loss (half of it times |w|^2).
  struct Start {
    std::function<double(std::size_t)> weights;  // of a position; empty: all 0
    double bias = 0.0;
    double l2 = 0.0;
  };

  // The result of a single path: the mean of the second half of its iterates, and z of its first
  // pass (without l2).
  struct Single {
    std::vector<double> w, z;
    double bias = 0.0;
  };

  // Stops all paths that share it, after an error in one of them or on Ctrl-C.
  struct Control {
    std::atomic<bool>* ended = nullptr;                      // whether one of them threw
    const std::function<void()>* check_interrupt = nullptr;  // in the caller's thread only
  };

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

  // Small data sets need several passes for meaningful weights; for large ones, two are enough.
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
  // from w = 0 and a bias. `mean_norm` is the mean of ||x||^2 over all rows of all parts, with
  // their weights. The caller's thread sometimes calls `check_interrupt`, which throws on Ctrl-C.
  PathSums halves(Team& team, const std::function<void()>& check_interrupt, const Rows& rows,
                  double mean_norm, std::int64_t stage, std::int64_t passes, double bias) const;

  // Paths learn from all rows, each in its own orders.
  PathSums whole(Team& team, const std::function<void()>& check_interrupt, const Rows& rows,
                 double mean_norm, std::int64_t stage, std::int64_t passes,
                 const Start& start) const;

  // One path over the rows of orders(0), orders(1), ...
  Single alone(const Control& control, const Rows& rows, double mean_norm, std::int64_t passes,
               const Orders& orders, const Start& start) const;

  std::vector<std::int64_t> order(std::size_t path, std::int64_t stage, std::int64_t pass,
                                  std::int64_t rows) const {
    return permutation(seed_, path, static_cast<std::uint64_t>((stage << 20) + pass), rows);
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
    double l2 = 0.0;
    double scale = 1.0;     // the weights are scale * cells.w: so the l2 of a step costs nothing
    double averaged = 0.0;  // with l2: sum of the scales of the averaged iterates so far
    Tally tally;
    Control control;
    std::uint32_t rows = 0;

    // Whether to stop; checks every 1024 rows.
    bool should_stop() {
      if (++rows % 1024 != 0) return false;
      if (control.check_interrupt) (*control.check_interrupt)();
      return control.ended->load(std::memory_order_relaxed);
    }

    // The mean of the second half of the iterates: every update is in the iterates after it.
    double mean(const Cell& cell) const {
      return l2 > 0 ? static_cast<double>(cell.w) * averaged - static_cast<double>(cell.late)
                    : static_cast<double>(cell.w - cell.late);
    }
    void begin(const Start& start, std::size_t features);
    void shrink(double share);
  };

  // SGD over the rows of orders(0), orders(1), ...; sets z after the first pass.
  void walk(const Rows& rows, double mean_norm, std::int64_t passes, const Orders& orders,
            Path& path) const;

  // A step of weight `weight` on a row; a share `late` of the averaged iterates is before it.
  // Returns the loss before the step.
  Outcome step(const Rows& rows, std::size_t r, double weight, double mean_norm, double late,
               Path& path) const;

  static void set_z(Path& path);

  // Runs as many paths at a time as there are workers. Sums them in the order of the paths, so that
  // sums do not depend on the number of workers.
  PathSums all_paths(Team& team, const std::function<void()>& check_interrupt, std::size_t features,
                     const std::function<void(std::size_t number, Path& path)>& walks) const;
  static void add(const Path& path, PathSums& sums);

  Loss loss_;
  std::size_t paths_, first_, count_;
  std::uint64_t seed_;
  double eta_;
  std::int64_t stage_steps_, refit_steps_;
};

extern template class RobustPaths<float>;  // in half_paths.cpp
extern template class RobustPaths<double>;

}  // namespace thresher
