#include "thresher/stabilized/robust/half_paths.hpp"

#include "thresher/core/repeats.hpp"
#include "thresher/loss/losses.hpp"

namespace thresher {

template <class Real>
PathSums RobustPaths<Real>::halves(Team& team, const std::function<void()>& check_interrupt,
                                   const Rows& rows, double mean_norm, std::int64_t stage,
                                   std::int64_t passes, double bias) const {
  const auto n = static_cast<std::int64_t>(rows.count()), half = half_of(rows);
  const auto walks = [&](std::size_t number, Path& path) {
    std::vector<std::int64_t> mine = order(paths_ + number / 2, stage, 0, n);
    if (number % 2 == 0) mine.resize(static_cast<std::size_t>(half));
    else if (n > 1) mine.erase(mine.begin(), mine.begin() + half);
    path.begin({{}, bias, 0.0}, rows.ids.size());
    const auto orders = [&](std::int64_t pass) {
      std::vector<std::int64_t> mixed =
          order(number, stage, pass, static_cast<std::int64_t>(mine.size()));
      for (std::int64_t& i : mixed) i = mine[static_cast<std::size_t>(i)];
      return mixed;
    };
    walk(rows, mean_norm, passes, orders, path);
  };
  return all_paths(team, check_interrupt, rows.ids.size(), walks);
}

template <class Real>
PathSums RobustPaths<Real>::whole(Team& team, const std::function<void()>& check_interrupt,
                                  const Rows& rows, double mean_norm, std::int64_t stage,
                                  std::int64_t passes, const Start& start) const {
  const std::size_t m = rows.ids.size();
  const auto n = static_cast<std::int64_t>(rows.count());
  const auto walks = [&](std::size_t number, Path& path) {
    path.begin(start, m);
    const auto orders = [&](std::int64_t pass) { return order(number, stage, pass, n); };
    walk(rows, mean_norm, passes, orders, path);
  };
  return all_paths(team, check_interrupt, m, walks);
}

template <class Real>
typename RobustPaths<Real>::Single RobustPaths<Real>::alone(const Control& control,
                                                            const Rows& rows, double mean_norm,
                                                            std::int64_t passes,
                                                            const Orders& orders,
                                                            const Start& start) const {
  Path path;
  path.control = control;
  path.begin(start, rows.ids.size());
  walk(rows, mean_norm, passes, orders, path);
  Single found;
  found.w.reserve(path.cells.size());
  for (const Cell& cell : path.cells) found.w.push_back(path.mean(cell));
  found.z.assign(path.z.begin(), path.z.end());
  found.bias = path.bias - path.late_bias;
  return found;
}

template <class Real>
void RobustPaths<Real>::Path::begin(const Start& start, std::size_t features) {
  cells.resize(features);
  bias = start.bias, l2 = start.l2;
  if (!start.weights) return;
  for (std::size_t i = 0; i < features; ++i) cells[i].w = static_cast<Real>(start.weights(i));
}

// The l2 of a step: all weights become smaller by a share.
template <class Real>
void RobustPaths<Real>::Path::shrink(double share) {
  scale /= 1.0 + share;
  if (scale > 1e-6) return;
  for (Cell& cell : cells) {  // cell.late takes the sum of the iterates so far
    const auto w = static_cast<double>(cell.w);
    cell.late = static_cast<Real>(static_cast<double>(cell.late) - w * averaged);
    cell.w = static_cast<Real>(w * scale);
  }
  averaged = 0.0, scale = 1.0;
}

template <class Real>
void RobustPaths<Real>::walk(const Rows& rows, double mean_norm, std::int64_t passes,
                             const Orders& orders, Path& path) const {
  double t = 0.0, start = 0.0, window = 1.0;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const std::vector<std::int64_t> order = orders(pass);
    if (pass == 0) {
      std::int64_t steps = 0;
      for (const std::int64_t row : order)
        steps += repeats_of(rows.weights[static_cast<std::size_t>(row)]).count;
      const double total = static_cast<double>(passes) * static_cast<double>(steps);
      start = std::floor(total / 2), window = total - start;
    }
    for (const std::int64_t row : order) {
      if (path.should_stop()) return;
      const auto r = static_cast<std::size_t>(row);
      const Repeats repeats = repeats_of(rows.weights[r]);
      for (std::int64_t i = 0; i < repeats.count; ++i) {
        const double late = std::max(0.0, t - start) / window;
        const Outcome outcome = step(rows, r, repeats.weight, mean_norm, late, path);
        if (path.l2 > 0 && t >= start) path.averaged += path.scale / window;
        t += 1.0;
        if (i == 0) path.tally.add(outcome, rows.weights[r]);
      }
    }
    if (pass == 0 && path.l2 == 0) set_z(path);
  }
}

template <class Real>
Outcome RobustPaths<Real>::step(const Rows& rows, std::size_t r, double weight, double mean_norm,
                                double late, Path& path) const {
  const std::size_t begin = rows.starts[r], end = rows.starts[r + 1];
  Real dot = 0;
  for (std::size_t k = begin; k < end; ++k) dot += path.cells[rows.keys[k]].w * rows.x[k];
  const double p = static_cast<double>(dot) * path.scale + path.bias, y = rows.labels[r];
  if (!std::isfinite(p))
    throw Divergence("the weights diverged at row " + std::to_string(r) +
                     ": lower eta0, or scale the rows");
  const Outcome outcome = loss_(p, y);
  const double largest = std::max(mean_norm, rows.norms[r]), norm = largest > 0 ? largest : 1.0;
  double g = weight * outcome.slope;
  if (weight > 1.0) g = loss_.long_slope(p, y, weight, eta_ * (rows.norms[r] / norm + 1.0));
  if (path.l2 > 0) path.shrink(eta_ / norm * weight * path.l2);
  if (g == 0.0) return outcome;        // no gradient: no evidence
  const double move_bias = -eta_ * g;  // the intercept's x is 1
  double move = -eta_ * g / norm;
  Real b = static_cast<Real>(late);
  if (path.l2 > 0) move /= path.scale, b = static_cast<Real>(path.averaged);
  for (std::size_t k = begin; k < end; ++k) {
    Cell& cell = path.cells[rows.keys[k]];
    const Real u = static_cast<Real>(move * static_cast<double>(rows.x[k]));
    cell.w += u, cell.late += b * u, cell.squares += u * u;
    ++cell.updates;
  }
  path.bias += move_bias, path.late_bias += late * move_bias;
  return outcome;
}

template <class Real>
void RobustPaths<Real>::set_z(Path& path) {
  path.z.resize(path.cells.size());
  for (std::size_t i = 0; i < path.cells.size(); ++i) {
    const Cell& cell = path.cells[i];
    path.z[i] = cell.squares > 0 ? cell.w / std::sqrt(cell.squares) : Real(0);
  }
}

template <class Real>
PathSums RobustPaths<Real>::all_paths(
    Team& team, const std::function<void()>& check_interrupt, std::size_t features,
    const std::function<void(std::size_t number, Path& path)>& walks) const {
  PathSums sums(features);
  std::vector<Path> wave(team.size());
  std::atomic<bool> ended = false;
  for (std::size_t from = 0; from < count_; from += wave.size()) {
    const std::size_t count = std::min(wave.size(), count_ - from);
    team.each(count, [&](std::size_t i, std::size_t worker) {
      wave[i] = Path{};
      wave[i].control = {&ended, worker == 0 ? &check_interrupt : nullptr};
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

template <class Real>
void RobustPaths<Real>::add(const Path& path, PathSums& sums) {
  for (std::size_t i = 0; i < path.cells.size(); ++i) {
    const Cell& cell = path.cells[i];
    const double mean = path.mean(cell);
    if (path.l2 == 0) sums.z[i] += static_cast<double>(path.z[i]);
    sums.w[i] += mean;
    sums.plus[i] += mean > 0, sums.minus[i] += mean < 0;
    sums.updates[i] += cell.updates;
  }
  sums.bias += path.bias - path.late_bias;
  sums.loss += path.tally.loss(), sums.weight += path.tally.weight();
  sums.rows += path.tally.rows();
}

template class RobustPaths<float>;
template class RobustPaths<double>;

}  // namespace thresher
