#include "thresher/solvers/coordinate_descent.hpp"

namespace thresher {

// Templates come first: clang 14 does not instantiate those that it meets in std::visit before
// their definition.

template <class Start, class Key, class Value>
void CoordinateDescent::check(const Start* starts, const Key* keys, const Value* values) {
  const auto rows = static_cast<std::uint64_t>(y_.size());
  for (std::size_t j = 0; j < w_.size(); ++j) {
    for (Start k = starts[j]; k < starts[j + 1]; ++k) {
      const auto row = static_cast<std::uint64_t>(keys[k]);
      if (row >= rows)
        throw std::invalid_argument("feature " + std::to_string(j) + ": row number " +
                                    std::to_string(keys[k]) + " is outside 0.." +
                                    std::to_string(rows - 1));
      const auto x = static_cast<double>(values[k]);
      if (!std::isfinite(values[k] * values[k]))
        throw DataError(static_cast<std::int64_t>(row),
                        "the value of feature " + std::to_string(j) + " is " +
                            (std::isnan(x) ? "NaN; values must be finite"
                                           : shown(x) + "; values must be finite, with finite "
                                                        "squares in the dtype"));
      square_[j] += share_[row] * x * x;
    }
  }
}

CoordinateDescent::CoordinateDescent(const Batch& columns, std::span<const double> labels,
                                     std::span<const double> weights, const Loss& loss, double l1,
                                     const std::string& step)
    : columns_(columns),
      y_(labels.begin(), labels.end()),
      share_(labels.size(), 1.0),
      loss_(loss),
      l1_(l1),
      square_(static_cast<std::size_t>(columns.rows), 0.0),
      beta_(square_.size(), 0.0),
      w_(square_.size(), 0.0),
      z_(labels.size(), 0.0),
      slope_(labels.size(), 0.0) {
  if (static_cast<std::size_t>(columns.columns) != y_.size())
    throw std::invalid_argument("there must be one label for each row");
  if (!weights.empty() && weights.size() != y_.size())
    throw std::invalid_argument("there must be one sample weight for each row");
  if (!loss.has_bounded_curvature() || loss.normalises())
    throw std::invalid_argument("coordinate descent needs a loss of bounded curvature");
  if (step != "coordinate" && step != "global")
    throw std::invalid_argument("unknown step '" + step + "'");
  double total = 0.0;
  for (std::size_t i = 0; i < y_.size(); ++i) {
    if (!weights.empty()) share_[i] = weights[i];
    check_target(static_cast<std::int64_t>(i), y_[i], share_[i]);
    total += share_[i];
  }
  if (!(total > 0 && std::isfinite(total)))
    throw std::invalid_argument("the sample weights must have a sum above 0");
  for (double& share : share_) share /= total;
  with_columns([&](auto starts, auto keys, auto values) { check(starts, keys, values); });
  for (std::size_t j = 0; j < beta_.size(); ++j)
    if (square_[j] > 0) beta_[j] = loss_.curvature() * (step == "coordinate" ? square_[j] : 1.0);
  refresh();
}

double CoordinateDescent::steps(std::span<const std::int64_t> draws) {
  for (const std::int64_t draw : draws)
    if (draw < intercept_draw || draw >= columns_.rows)
      throw std::invalid_argument("a draw must be a feature, or -1 for the intercept");
  return with_columns([&](auto starts, auto keys, auto values) {
    constexpr std::size_t early = 8;  // draws between the prefetch of a column and its use
    double largest = 0.0;
    for (std::size_t n = 0; n < draws.size(); ++n) {
      if (n + 2 * early < draws.size()) __builtin_prefetch(starts + draws[n + 2 * early]);
      if (n + early < draws.size() && draws[n + early] >= 0) {
        const auto from = starts[draws[n + early]];
        __builtin_prefetch(keys + from), __builtin_prefetch(values + from);
      }
      if (draws[n] == intercept_draw) {
        largest = std::max(largest, step_intercept());
        continue;
      }
      const auto j = static_cast<std::size_t>(draws[n]);
      if (beta_[j] == 0.0) continue;
      const double g = gradient(starts, keys, values, j, slope_.data()), before = w_[j];
      largest = std::max(largest, coordinate_violation(g, before));
      const double after = soft(before - g / beta_[j], l1_ / beta_[j]);
      const double change = after - before;
      if (!std::isfinite(after))
        throw Divergence("the weight of feature " + std::to_string(j) + " is not finite");
      if (change == 0.0) continue;
      w_[j] = after;
      for (auto k = starts[j]; k < starts[j + 1]; ++k) {
        const auto i = static_cast<std::size_t>(keys[k]);
        z_[i] += change * static_cast<double>(values[k]);
        slope_[i] = slope(i);
      }
    }
    return largest;
  });
}

// Returns |g_b| before the step.
double CoordinateDescent::step_intercept() {
  const double g = intercept_gradient(), change = -g / loss_.curvature();
  if (change == 0.0) return 0.0;
  b_ += change;
  for (std::size_t i = 0; i < z_.size(); ++i) z_[i] += change, slope_[i] = slope(i);
  return std::fabs(g);
}

void CoordinateDescent::refresh() {
  std::fill(z_.begin(), z_.end(), b_);
  with_columns([&](auto starts, auto keys, auto values) {
    for (std::size_t j = 0; j < w_.size(); ++j) {
      if (w_[j] == 0.0) continue;
      for (auto k = starts[j]; k < starts[j + 1]; ++k)
        z_[static_cast<std::size_t>(keys[k])] += w_[j] * static_cast<double>(values[k]);
    }
  });
  for (std::size_t i = 0; i < z_.size(); ++i) slope_[i] = slope(i);
}

double CoordinateDescent::objective() const {
  double mean_loss = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < z_.size(); ++i) mean_loss += share_[i] * loss_(z_[i], y_[i]).loss();
  for (const double w : w_) norm += std::fabs(w);
  return mean_loss + l1_ * norm;
}

double CoordinateDescent::intercept_gradient() const {
  double sum = 0.0;
  for (const double slope : slope_) sum += slope;
  return sum;
}

double CoordinateDescent::largest_gradient() const {
  return largest([](std::size_t, double g) { return std::fabs(g); });
}

double CoordinateDescent::violation(bool with_intercept) const {
  const double of_features = largest([this](std::size_t j, double g) {
    return beta_[j] > 0 ? coordinate_violation(g, w_[j]) : 0.0;
  });
  return with_intercept ? std::max(of_features, std::fabs(intercept_gradient())) : of_features;
}

std::pair<std::int64_t, double> CoordinateDescent::steepest() const {
  const auto found = std::max_element(square_.begin(), square_.end());
  if (found == square_.end()) return {0, 0.0};
  return {found - square_.begin(), *found};
}

std::vector<std::byte> CoordinateDescent::state() const {
  Saver save;
  save(w_), save(z_), save(b_);
  return save.take();
}

void CoordinateDescent::restore(std::span<const std::byte> state) {
  Restorer restore(state);
  std::vector<double> w, z;
  double b = 0.0;
  restore(w), restore(z), restore(b);
  if (w.size() != w_.size() || z.size() != z_.size() || !restore.finished())
    throw std::invalid_argument("the state is of a solver of other rows");
  w_ = std::move(w), z_ = std::move(z), b_ = b;
  for (std::size_t i = 0; i < z_.size(); ++i) slope_[i] = slope(i);
}

}  // namespace thresher
