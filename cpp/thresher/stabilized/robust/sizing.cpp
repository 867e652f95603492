#include "thresher/stabilized/robust/sizing.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "thresher/loss/losses.hpp"
#include "thresher/stabilized/robust/ascent.hpp"
#include "thresher/stabilized/robust/feature.hpp"

namespace thresher {
namespace {

constexpr double strengths[] = {0.3, 1.0, 5.0, 25.0, 125.0};  // c, from strong l2 to weak
constexpr double weak = 60.0;                                 // most paths chose the weakest: no l2
constexpr std::size_t smallest = 4;                           // the last number of features
constexpr double halving = 0.5;
constexpr std::int64_t least_sweeps = 3;
constexpr double rounding = 1e-9;  // a smaller difference of mean losses says nothing

}  // namespace

// ---- the table ---------------------------------------------------------------------------------

void SizeTable::add(const SizeTable& other) {
  if (other.sizes.empty()) return;
  if (sizes.empty()) {
    *this = other;
    return;
  }
  if (sizes != other.sizes) throw std::invalid_argument("tables of different sizes");
  rows += other.rows, weight += other.weight, squares += other.squares;
  paths += other.paths;
  for (std::size_t a = 0; a < sums.size(); ++a) {
    sums[a] += other.sums[a], square_sums[a] += other.square_sums[a];
    logs[a] += other.logs[a];
  }
  for (std::size_t i = 0; i < products.size(); ++i) products[i] += other.products[i];
}

double SizeTable::error(std::size_t a, std::size_t b) const {
  const std::size_t k = sizes.size();
  const double d = mean(a) - mean(b);
  const double squared = products[a * k + a] - 2.0 * products[a * k + b] + products[b * k + b];
  const double about = squared - 2.0 * d * (square_sums[a] - square_sums[b]) + d * d * squares;
  return std::sqrt(std::max(0.0, about)) / weight;
}

ChosenSize chosen_size(const SizeTable& table, std::size_t features) {
  std::size_t best = 0;
  for (std::size_t a = 1; a < table.sizes.size(); ++a)
    if (table.mean(a) < table.mean(best)) best = a;
  if (best == 0) return {};
  const double gain = table.mean(0) - table.mean(best);
  if (gain < rounding || gain < 2.0 * table.error(0, best)) return {};
  double weights = 0.0, size = 0.0, strength = 0.0;  // sums over sizes; of logarithms
  for (std::size_t a = 1; a < table.sizes.size(); ++a) {
    const double excess = table.mean(a) - table.mean(best), error = table.error(a, best);
    const double ratio = excess > rounding ? excess / error : 0.0;  // error 0: infinite
    const double weight = std::exp(-ratio * ratio / 2.0);
    weights += weight, size += weight * std::log(static_cast<double>(table.sizes[a]));
    strength += weight * table.logs[a] / table.paths;
  }
  size = 2.0 * std::exp(size / weights), strength = std::exp(strength / weights);
  return {
      std::min(static_cast<std::int64_t>(features), static_cast<std::int64_t>(std::llround(size))),
      strength < weak ? strength : 0.0};
}

double log_odds(double positive, double weight, double rows) {
  const double share = std::clamp(positive / weight, 1.0 / (rows + 1.0), rows / (rows + 1.0));
  return std::log(share / (1.0 - share));
}

// ---- the paths ---------------------------------------------------------------------------------

template <class Real>
struct RobustSizing<Real>::Half {
  std::size_t number;  // of its path
  Rows rows;           // all rows, with the features left
  double mean_norm;
  std::vector<double> variances;           // of all features, by their first positions
  std::vector<std::int64_t> mine, others;  // numbers of rows
  std::size_t features;                    // of all parts
  double bias = 0.0;                       // log-odds of its own rows
  bool one_class = false;
  std::vector<double> duals;                // of the models with the strongest l2, for all rows
  std::vector<std::vector<double>> losses;  // of `others`, for each size
  std::vector<std::int64_t> sizes;
  std::vector<double> logs;  // ln c of the best model, for each size
};

template <class Real>
RobustSizing<Real>::RobustSizing(const Loss& loss, const Params& params)
    : judge_(loss, params, 0, 2),
      first_(2 * static_cast<std::size_t>(params.number("paths"))),
      pairs_(static_cast<std::size_t>(params.number("size_pairs", 0))),
      steps_(static_cast<std::int64_t>(params.number("stage_steps", 1000))) {}

template <class Real>
std::vector<double> RobustSizing<Real>::variances(const Rows& rows) {
  std::vector<double> sums(rows.ids.size()), squares(rows.ids.size());
  double weight = 0.0;
  for (std::size_t r = 0; r < rows.count(); ++r) {
    weight += rows.weights[r];
    for (std::size_t k = rows.starts[r]; k < rows.starts[r + 1]; ++k) {
      const double x = static_cast<double>(rows.x[k]);
      sums[rows.keys[k]] += rows.weights[r] * x;
      squares[rows.keys[k]] += rows.weights[r] * x * x;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double mean = sums[i] / weight;
    const double square = squares[i] / weight, variance = square - mean * mean;
    squares[i] = variance > 1e-12 * square ? variance : 0.0;  // constant, up to rounding
  }
  return squares;
}

template <class Real>
double RobustSizing<Real>::spread(const Rows& rows) {
  const std::vector<double> all = variances(rows);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

template <class Real>
SizeTable RobustSizing<Real>::measure(std::size_t jobs,
                                      const std::function<void()>& check_interrupt,
                                      const Rows& rows, double mean_norm,
                                      std::size_t features) const {
  const auto n = static_cast<std::int64_t>(rows.count());
  SizeTable table;
  if (n < 2) return table;
  const std::vector<double> variance = variances(rows);
  // With few rows, one split says little, and costs little.
  const std::size_t pairs = pairs_ > 0 ? pairs_ : n < 2000 ? 8 : 3, paths = 2 * pairs;
  Team team(std::min(std::max<std::size_t>(jobs, 1), paths));
  std::atomic<bool> ended = false;
  std::vector<std::vector<double>> losses;  // of all rows, for each size
  for (std::size_t from = 0; from < paths; from += team.size()) {
    const std::size_t count = std::min(team.size(), paths - from);
    std::vector<Half> wave(count);
    team.each(count, [&](std::size_t i, std::size_t worker) {
      Half& half = wave[i];
      half.number = from + i, half.rows = rows, half.variances = variance;
      half.mean_norm = mean_norm, half.features = features;
      half.mine = judge_.order(first_ + half.number / 2, 0, 0, n);
      half.others.assign(half.mine.begin() + n / 2, half.mine.end());
      half.mine.resize(static_cast<std::size_t>(n / 2));
      if (half.number % 2) std::swap(half.mine, half.others);
      try {
        follow({&ended, worker == 0 ? &check_interrupt : nullptr}, half);
      } catch (...) {
        ended = true;
        throw;
      }
    });
    for (const Half& half : wave) {
      table.sizes = half.sizes, table.paths += 1.0;
      table.logs.resize(half.sizes.size());
      losses.resize(half.sizes.size(), std::vector<double>(rows.count()));
      for (std::size_t a = 0; a < losses.size(); ++a) table.logs[a] += half.logs[a];
      for (std::size_t a = 0; a < losses.size(); ++a)
        for (std::size_t i = 0; i < half.others.size(); ++i)
          losses[a][static_cast<std::size_t>(half.others[i])] +=
              half.losses[a][i] / static_cast<double>(pairs);
    }
  }
  const std::size_t k = table.sizes.size();
  table.sums.resize(k), table.square_sums.resize(k), table.products.resize(k * k);
  for (std::size_t r = 0; r < rows.count(); ++r) {
    const double h = rows.weights[r];
    table.rows += 1.0, table.weight += h, table.squares += h * h;
    for (std::size_t a = 0; a < k; ++a) {
      table.sums[a] += h * losses[a][r], table.square_sums[a] += h * h * losses[a][r];
      for (std::size_t b = 0; b < k; ++b)
        table.products[a * k + b] += h * h * losses[a][r] * losses[b][r];
    }
  }
  return table;
}

// The stages of a path, and the losses of its models.
template <class Real>
void RobustSizing<Real>::follow(const typename Paths::Control& control, Half& half) const {
  Rows& rows = half.rows;
  half.duals.resize(rows.count());
  RowTotals totals;
  for (const std::int64_t row : half.mine)
    totals.add(rows.weights[static_cast<std::size_t>(row)],
               rows.labels[static_cast<std::size_t>(row)]);
  half.one_class = totals.positive == 0 || totals.positive == totals.weight;
  half.bias = log_odds(totals.positive, totals.weight, static_cast<double>(half.mine.size()));
  const Loss logistic("logistic", 0.0, 0.5);
  half.sizes.push_back(0), half.losses.emplace_back(), half.logs.push_back(0.0);
  for (const std::int64_t row : half.others)
    half.losses.back().push_back(
        logistic(half.bias, rows.labels[static_cast<std::size_t>(row)]).loss());
  std::vector<RobustFeature> features(rows.ids.size());
  for (std::size_t k = 0; k < rows.keys.size(); ++k) {
    const double x = static_cast<double>(rows.x[k]);
    features[rows.keys[k]].squares += x * x;
  }
  const auto mine = static_cast<std::int64_t>(half.mine.size());
  const std::int64_t passes = std::max<std::int64_t>(2, (steps_ + mine - 1) / mine);
  std::size_t size = half.features;
  for (std::int64_t stage = 1; size > 0; ++stage) {
    half.sizes.push_back(static_cast<std::int64_t>(size));
    half.losses.push_back(least_losses(control, half, stage));
    if (size <= smallest || control.ended->load(std::memory_order_relaxed)) return;
    const auto orders = [&](std::int64_t pass) {
      std::vector<std::int64_t> mixed = judge_.order(first_ + half.number, stage, pass, mine);
      for (std::int64_t& i : mixed) i = half.mine[static_cast<std::size_t>(i)];
      return mixed;
    };
    const auto found =
        judge_.alone(control, rows, half.mean_norm, passes, orders, {{}, half.bias, 0.0});
    size = robust_size_after(size, smallest, halving);
    std::vector<double> score(rows.ids.size());
    for (std::size_t i = 0; i < score.size(); ++i) {
      features[i].judge(found.z[i], found.w[i], found.w[i] > 0, found.w[i] < 0, 1.0);
      score[i] = features[i].score(static_cast<double>(rows.count()));
    }
    if (score.size() <= size) continue;
    std::vector<std::size_t> ranked(score.size());
    std::iota(ranked.begin(), ranked.end(), std::size_t{0});
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
    std::vector<bool> stays(score.size(), false);
    for (std::size_t i = 0; i < size; ++i) stays[ranked[i]] = true;
    std::size_t left = 0, at = 0;
    for (std::size_t i = 0; i < score.size(); ++i)
      if (stays[i]) features[left] = features[i], half.variances[left++] = half.variances[i];
    features.resize(left), half.variances.resize(left);
    rows.drop([&](std::uint64_t) { return !stays[at++]; });
  }
}

// The losses of the other rows by the best of the models with the features left.
template <class Real>
std::vector<double> RobustSizing<Real>::least_losses(const typename Paths::Control& control,
                                                     Half& half, std::int64_t stage) const {
  const Rows& rows = half.rows;
  const Loss logistic("logistic", 0.0, 0.5);
  const double spread = std::accumulate(half.variances.begin(), half.variances.end(), 0.0);
  half.logs.push_back(0.0);
  // Constant features and labels say nothing.
  if (spread == 0 || half.one_class) return half.losses[0];
  const auto mine = static_cast<std::int64_t>(half.mine.size());
  const std::int64_t sweeps = std::max(least_sweeps, (steps_ + mine - 1) / mine);
  std::uint32_t seen = 0;
  const auto keep_on = [&] {
    if (++seen % 1024 != 0) return true;
    if (control.check_interrupt) (*control.check_interrupt)();
    return !control.ended->load(std::memory_order_relaxed);
  };
  std::vector<double> best, duals;
  double least = 0.0;
  std::int64_t number = 0;
  for (const double strength : strengths) {
    ++number;
    // The duals of the strongest l2 are those of the last stage, those of others of the one before.
    if (number == 2) duals = half.duals;
    LogisticAscent<Real> ascent(rows, half.mine, strength, spread, half.bias,
                                number == 1 ? half.duals : duals);
    LogisticModel mean{std::vector<double>(rows.ids.size()), 0.0};
    const std::int64_t later = sweeps - sweeps / 2;
    const auto averaged = static_cast<double>(later);
    for (std::int64_t sweep = 0; sweep < sweeps; ++sweep) {
      std::vector<std::int64_t> order =
          judge_.order(first_ + half.number, stage, (number << 16) + sweep, mine);
      for (std::int64_t& i : order) i = half.mine[static_cast<std::size_t>(i)];
      ascent.sweep(order, keep_on);
      if (sweep < sweeps / 2) continue;
      for (std::size_t i = 0; i < mean.w.size(); ++i) mean.w[i] += ascent.model().w[i] / averaged;
      mean.bias += ascent.model().bias / averaged;
    }
    std::vector<double> losses;
    double sum = 0.0;
    for (const std::int64_t row : half.others) {
      const auto r = static_cast<std::size_t>(row);
      losses.push_back(
          logistic(LogisticAscent<Real>::prediction(mean, rows, r), rows.labels[r]).loss());
      sum += rows.weights[r] * losses.back();
    }
    if (number == 1 || sum < least)
      least = sum, best = std::move(losses), half.logs.back() = std::log(strength);
  }
  return best;
}

template class RobustSizing<float>;
template class RobustSizing<double>;

}  // namespace thresher
