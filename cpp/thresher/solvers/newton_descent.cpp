#include "thresher/solvers/newton_descent.hpp"

#include <limits>
#include <numeric>

#include "thresher/loss/conjugate.hpp"

namespace thresher {

namespace {

// Constants, chosen by the time of fits to training rows (docs/decisions/0030-newton-steps.md).
constexpr std::size_t smallest_set = 300;  // features in a working set, if there are so many
constexpr std::size_t growth = 2;          // a set has this many times the nonzero weights
constexpr double inner_share = 0.1;        // a set is solved to this share of the gap
constexpr int most_newton = 20;            // Newton steps on a working set
constexpr int most_epochs = 60;            // scans of the set in a Newton step
constexpr double epoch_share = 0.02;  // the last scan lowers the model by at most this share of the
                                      // first
// The Hessian of the nonzero weights is a dense matrix if there are at most so many, and their
// columns have at least so many values for each entry of the matrix.
constexpr std::size_t most_dense = 128, least_dense = 8;
constexpr double dense_share = 1e-6;  // as epoch_share, for a dense matrix
constexpr double sigma = 0.01;        // of the line search
constexpr int most_halvings = 30;
constexpr double rounding = 1e-15;  // relative rounding error of F
constexpr double flattest = 1e-10;  // smallest curvature of a model, in units of the largest

}  // namespace

double NewtonDescent::begin(bool with_intercept) {
  if (!(l1_ > 0)) throw std::invalid_argument("a duality gap needs an l1 penalty above 0");
  if (z_.size() > std::numeric_limits<std::uint32_t>::max() ||
      w_.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument("there are too many rows or features");
  with_intercept_ = with_intercept;
  equal_ = std::all_of(share_.begin(), share_.end(), [&](double s) { return s == share_[0]; });
  std::fill(w_.begin(), w_.end(), 0.0);
  for (auto* each : {&h_, &v_, &r_, &xd_, &trial_z_, &trial_u_, &trial_h_})
    each->assign(z_.size(), 0.0);
  g_.assign(w_.size(), 0.0), least_.assign(w_.size(), 0.0), alive_.clear();
  for (std::size_t j = 0; j < w_.size(); ++j) {
    least_[j] = flattest * loss_.curvature() * square_[j];
    if (square_[j] > 0) alive_.push_back(static_cast<std::uint32_t>(j));
  }
  dual_ = -std::numeric_limits<double>::infinity();
  b_ = 0.0;
  std::fill(z_.begin(), z_.end(), 0.0);
  loss_now_ = evaluate(z_, slope_, h_);
  if (with_intercept_) best_intercept();
  certify();
  return value_;
}

// Newton's method in one dimension; the curvature bounds of losses other than logistic make every
// step a descent.
void NewtonDescent::best_intercept() {
  constexpr int most = 100;
  for (int n = 0; n < most; ++n) {
    double slope = 0.0, size = 0.0, total = 0.0;
    for (std::size_t i = 0; i < z_.size(); ++i)
      slope += slope_[i], size += std::fabs(slope_[i]), total += h_[i];
    if (std::fabs(slope) <= 1e-9 * size || !(total > 0)) return;
    bool lower = false;
    for (double change = -slope / total; !lower && std::fabs(change) > 1e-12 * std::fabs(b_);
         change *= 0.5) {
      std::fill(trial_z_.begin(), trial_z_.end(), b_ + change);
      const double loss = evaluate(trial_z_, trial_u_, trial_h_);
      lower = loss < loss_now_;
      if (!lower) continue;
      b_ += change, loss_now_ = loss;
      z_.swap(trial_z_), slope_.swap(trial_u_), h_.swap(trial_h_);
    }
    if (!lower) return;
  }
}

// With equal weights, factors of the loss are multiplied, so that most rows need no logarithm, as
// in core/tally.hpp.
double NewtonDescent::evaluate(const std::vector<double>& z, std::vector<double>& u,
                               std::vector<double>& h) const {
  const auto sum_of = [&](auto&& logarithm) {
    double sum = 0.0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      const Outcome outcome = loss_(z[i], y_[i]);
      u[i] = share_[i] * outcome.slope;
      h[i] = share_[i] * loss_.newton_curvature(outcome.slope);
      sum += share_[i] * (outcome.value + logarithm(outcome.factor));
    }
    return sum;
  };
  if (!equal_) return sum_of([](double factor) { return std::log(factor); });
  double product = 1.0;
  const double sum = sum_of([&](double factor) {
    product *= factor;
    if (product < 1e300) return 0.0;
    return std::log(std::exchange(product, 1.0));
  });
  return sum + share_[0] * std::log(product);
}

void NewtonDescent::balance() {
  v_ = slope_;
  if (!with_intercept_) return;
  double positive = 0.0, negative = 0.0;
  for (const double u : v_) (u > 0 ? positive : negative) += u;
  const double size = std::min(positive, -negative);
  const double of_positive = positive > 0 ? size / positive : 1.0;
  const double of_negative = negative < 0 ? -size / negative : 1.0;
  for (double& u : v_) u *= u > 0 ? of_positive : of_negative;
}

double NewtonDescent::dual(double scale) const {
  double sum = 0.0;
  for (std::size_t i = 0; i < v_.size(); ++i)
    if (share_[i] > 0) sum += share_[i] * loss_.conjugate(scale * v_[i] / share_[i], y_[i]);
  return -sum;
}

double NewtonDescent::norm() const {
  double sum = 0.0;
  for (const std::uint32_t j : alive_) sum += std::fabs(w_[j]);
  return sum;
}

void NewtonDescent::certify() {
  value_ = loss_now_ + l1_ * norm();
  balance();
  const double largest = with_columns([&](auto starts, auto keys, auto values) {
    double found = 0.0;
    for (const std::uint32_t j : alive_) {
      g_[j] = gradient(starts, keys, values, j, v_.data());
      found = std::max(found, std::fabs(g_[j]));
    }
    return found;
  });
  const double scale = largest > l1_ ? l1_ / largest : 1.0, here = dual(scale);
  dual_ = std::max(dual_, here);
  gap_ = std::max(value_ - dual_, 0.0);
  const double radius = std::sqrt(2.0 * loss_.curvature() * std::max(value_ - here, 0.0));
  std::erase_if(alive_, [&](std::uint32_t j) {
    return w_[j] == 0.0 && scale * std::fabs(g_[j]) + radius * std::sqrt(square_[j]) < l1_;
  });
}

void NewtonDescent::choose() {
  std::vector<std::pair<double, std::uint32_t>> others;
  set_.features.clear();
  for (const std::uint32_t j : alive_)
    if (w_[j] != 0.0) set_.features.push_back(j);
    else others.emplace_back((l1_ - std::fabs(g_[j])) / std::sqrt(square_[j]), j);
  const std::size_t wanted = std::max(smallest_set, growth * set_.size()) - set_.size();
  if (wanted < others.size()) {
    std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(wanted),
                     others.end());
    others.resize(wanted);
  }
  for (const auto& [_, j] : others) set_.features.push_back(j);
  std::sort(set_.features.begin(), set_.features.end());
  with_columns([&](auto starts, auto keys, auto values) { set_.pack(starts, keys, values); });
  for (std::size_t at = 0; at < set_.size(); ++at) set_.w[at] = w_[set_.features[at]];
}

// Whether the gap on the working set is at most `enough`. D is concave, so D(c u) is at most the
// tangent at u: the mean loss - c u.z. This bound needs no logarithms, and is mostly enough.
bool NewtonDescent::solved(double largest, double enough) const {
  const double scale = largest > l1_ ? l1_ / largest : 1.0, penalty = l1_ * norm();
  const double tangent = std::inner_product(slope_.begin(), slope_.end(), z_.begin(), 0.0);
  if (penalty + scale * tangent > enough) return false;
  return loss_now_ + penalty - dual(scale) <= enough;
}

double NewtonDescent::improve(double goal) {
  choose();
  const double enough = std::max(inner_share * gap_, 0.5 * goal);
  for (int step = 0; step < most_newton; ++step) {
    double total = 0.0;
    if (with_intercept_)
      for (const double h : h_) total += h;
    if (step > 0) balance();
    const double largest = set_.weigh(h_, v_, total, least_);
    if (step > 0 && solved(largest, enough)) break;
    solve_model();
    if (search_line()) continue;
    // Rounding, or a model that is far too flat: the largest curvature makes a full step a descent.
    for (std::size_t i = 0; i < h_.size(); ++i) h_[i] = share_[i] * loss_.curvature();
    if (with_intercept_) total = std::accumulate(h_.begin(), h_.end(), 0.0);
    set_.weigh(h_, v_, total, least_);
    solve_model();
    if (search_line()) continue;
    evaluate(z_, slope_, h_);  // the state to resume from has no curvatures: they follow from z
    break;
  }
  certify();
  return gap_;
}

// Minimises the model around w. r_i + h_i shift_ is the model's derivative by z_i.
void NewtonDescent::solve_model() {
  double total = 0.0, slope = 0.0;
  if (with_intercept_)
    for (std::size_t i = 0; i < h_.size(); ++i) total += h_[i], slope += slope_[i];
  shift_ = total > 0 ? -slope / total : 0.0;
  r_ = slope_;
  std::fill(set_.d.begin(), set_.d.end(), 0.0);
  double first = 0.0;
  for (int epoch = 0; epoch < most_epochs; ++epoch) {
    double lowered = 0.0;
    const auto visit = [&](std::size_t at) {
      const double before = set_.w[at] + set_.d[at], curvature = set_.curvature[at];
      const double g = set_.dot(at, r_.data()) + shift_ * set_.sums[at];
      const double after = soft(before - g / curvature, l1_ / curvature);
      const double change = after - before;
      if (change == 0.0) return after != 0.0;
      set_.d[at] = after - set_.w[at];
      for (std::size_t k = set_.starts[at]; k < set_.starts[at + 1]; ++k)
        r_[set_.rows[k]] += change * set_.hx[k];
      if (total > 0) shift_ -= change * set_.sums[at] / total;
      lowered += 0.5 * curvature * change * change;
      return after != 0.0;
    };
    if (epoch == 0) {
      set_.moves.clear();
      for (std::size_t at = 0; at < set_.size(); ++at)
        if (visit(at)) set_.moves.push_back(static_cast<std::uint32_t>(at));
      first = lowered;
    } else {
      for (const std::uint32_t at : set_.moves) visit(at);
    }
    const double rest = rounding * loss_now_;
    if (lowered <= std::max(epoch_share * first, rest)) break;
    if (epoch > 0 || !dense_pays()) continue;
    shift_ = set_.solve_dense(r_, shift_, total, l1_, std::max(dense_share * first, rest));
    break;
  }
}

bool NewtonDescent::dense_pays() const {
  const std::size_t count = set_.moves.size();
  if (count > most_dense) return false;
  std::size_t values = 0;
  for (const std::uint32_t at : set_.moves) values += set_.starts[at + 1] - set_.starts[at];
  return values >= least_dense * count * count;
}

// Returns whether F fell, or stayed the same up to rounding.
bool NewtonDescent::search_line() {
  std::fill(xd_.begin(), xd_.end(), shift_);
  double change = 0.0, before = 0.0;
  for (std::size_t at = 0; at < set_.size(); ++at) {
    before += std::fabs(set_.w[at]);
    if (set_.d[at] == 0.0) continue;
    change += std::fabs(set_.w[at] + set_.d[at]) - std::fabs(set_.w[at]);
    for (std::size_t k = set_.starts[at]; k < set_.starts[at + 1]; ++k)
      xd_[set_.rows[k]] += set_.d[at] * set_.x[k];
  }
  double fall = l1_ * change;
  for (std::size_t i = 0; i < z_.size(); ++i) fall += slope_[i] * xd_[i];
  const double now = loss_now_ + l1_ * before;
  double t = 1.0;
  for (int halving = 0; halving < most_halvings; ++halving, t *= 0.5) {
    double norm = 0.0;
    for (std::size_t at = 0; at < set_.size(); ++at) norm += std::fabs(set_.w[at] + t * set_.d[at]);
    for (std::size_t i = 0; i < z_.size(); ++i) trial_z_[i] = z_[i] + t * xd_[i];
    const double loss = evaluate(trial_z_, trial_u_, trial_h_);
    if (!(loss + l1_ * norm <= now + sigma * t * fall + rounding * now)) continue;
    loss_now_ = loss, b_ += t * shift_;
    z_.swap(trial_z_), slope_.swap(trial_u_), h_.swap(trial_h_);
    for (std::size_t at = 0; at < set_.size(); ++at) {
      set_.w[at] += t * set_.d[at];
      w_[set_.features[at]] = set_.w[at];
    }
    return true;
  }
  return false;
}

std::int64_t NewtonDescent::nonzeros() const {
  return std::count_if(w_.begin(), w_.end(), [](double w) { return w != 0.0; });
}

std::vector<std::byte> NewtonDescent::newton_state() const {
  Saver save;
  save(w_), save(z_), save(b_), save(dual_), save(alive_);
  return save.take();
}

void NewtonDescent::restore_newton(std::span<const std::byte> state, bool with_intercept) {
  begin(with_intercept);
  Restorer restore(state);
  std::vector<double> w, z;
  std::vector<std::uint32_t> alive;
  double b = 0.0, dual = 0.0;
  restore(w), restore(z), restore(b), restore(dual), restore(alive);
  if (w.size() != w_.size() || z.size() != z_.size() || !restore.finished() ||
      std::any_of(alive.begin(), alive.end(), [&](auto j) { return j >= w.size(); }))
    throw std::invalid_argument("the state is of a solver of other rows");
  w_ = std::move(w), z_ = std::move(z), b_ = b;
  dual_ = dual, alive_ = std::move(alive);
  loss_now_ = evaluate(z_, slope_, h_);
  certify();
}

}  // namespace thresher
