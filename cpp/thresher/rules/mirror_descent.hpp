// Stochastic mirror descent made sparse (SMIDAS): S. Shalev-Shwartz, A. Tewari, "Stochastic Methods
// for l1 Regularized Loss Minimization", ICML 2009; in the form of S. Xie et al., "Efficient and
// Numerically Stable Sparse Learning", ECML PKDD 2010, eq 8 to 10 (R-11).
//
//   w_j = sgn(theta_j) |theta_j|^(p-1) / ||theta||_p^(p-2)   w = 0 if theta = 0
//   theta <- S(theta - eta L'(w . x, y) x, a)                on every coordinate, at every step
//
//   theta  dual vector; p = 2 gives w = theta: truncated gradient with K = 1
//   a      l1 ("paper", eq 9), or eta * l1 ("scaled", as in the authors' code)      
//   b      the intercept: not part of the norm, not thresholded
//
// With m = max |theta|, powers are computed of |theta_j| / m <= 1, so that none overflows:
//
//   w_j = sgn(theta_j) m (|theta_j|/m)^(p-1) / (sum_i (|theta_i|/m)^p)^((p-2)/p)
//
// The time of a step grows with the nonzeros of x and of theta, because every step thresholds all
// coordinates and computes the norm of all. So this is a learner with its own loop, not a
// Rule. It is fast because it keeps a list of the nonzero coordinates, and does not raise
// coordinates to a power that are too small to change the norm.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/core/power.hpp"
#include "thresher/core/repeats.hpp"
#include "thresher/loss/losses.hpp"
#include "thresher/loss/safe_rate.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/schedule/rate.hpp"
#include "thresher/schedule/relative_rate.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

class MirrorDescent final : public Learner, public RoundLearner {
 public:
  MirrorDescent(std::uint64_t width, const Loss& loss, const Params& params)
      : loss_(loss),
        rate_(params.word("schedule"), params.number("eta0"), params.number("power"),
              params.number("decay")),
        p_(params.number("p")),
        l1_(params.number("l1")),
        scaled_(scaled_of(params.word("threshold"))),
        relative_(params.flag("relative")),
        fit_intercept_(params.flag("fit_intercept")),
        theta_(width, 0.0) {
    if (width == 0) throw std::invalid_argument("mirror descent needs the number of features");
    if (!(p_ >= 2 && std::isfinite(p_))) throw std::invalid_argument("p must be at least 2");
  }

  std::int64_t learn(const Batch& batch, const Visit& visit) override {
    Rows<double> rows(batch, visit, theta_.size());
    while (rows.next()) {
      const Repeats repeats = repeats_of(rows.weight());
      const Outcome first = step(batch, rows, repeats);
      for (std::int64_t i = 1; i < repeats.count; ++i) step(batch, rows, repeats);
      tally_.add(first, rows.weight(), rows.unit());
    }
    return visit.last - visit.first;
  }

  void next_pass() override { rate_.next_pass(); }

  void predict(const Batch& batch, const Visit& visit, bool, double* out) const override {
    Rows<double> rows(batch, visit, theta_.size());
    while (rows.next()) {
      const double q = row_scale(loss_, rows) * inner_with(rows).dot + bias_;
      if (!std::isfinite(q)) {
        rows.check_values();
        throw DataError(rows.row(), "the prediction overflows");
      }
      *out++ = q;
    }
  }

  SparseWeights weights(bool) const override {
    std::vector<std::uint64_t> keys(nonzero_);
    std::sort(keys.begin(), keys.end());
    SparseWeights result;
    for (const std::uint64_t key : keys) {
      const double w = weight(theta_[key]);
      if (w != 0.0) result.keys.push_back(key), result.values.push_back(w);
    }
    return result;
  }

  // A weight can underflow to zero while its theta does not.
  std::int64_t nonzeros(bool) const override {
    return std::count_if(nonzero_.begin(), nonzero_.end(),
                         [this](std::uint64_t key) { return weight(theta_[key]) != 0.0; });
  }

  double intercept(bool) const override { return bias_; }
  const Tally& tally() const override { return tally_; }
  double rate() const override { return last_eta_; }
  std::size_t bytes() const override {
    return theta_.capacity() * sizeof(double) + nonzero_.capacity() * sizeof(std::uint64_t);
  }

  // Saves the coordinates in the order of the list: the norm sums them in this order.
  std::vector<std::byte> state() const override {
    Saver save;
    save(signature);
    auto& self = const_cast<MirrorDescent&>(*this);  // a Saver only reads
    self.clock(save);
    save(nonzero_);
    for (const std::uint64_t key : nonzero_) save(theta_[key]);
    return save.take();
  }

  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0;
    restore(saved);
    if (saved != signature)
      throw std::invalid_argument("the state is of a learner of another rule or number type");
    MirrorDescent other(*this, std::vector<double>(theta_.size(), 0.0));
    other.clock(restore);
    restore(other.nonzero_);
    for (const std::uint64_t key : other.nonzero_) {
      double theta = 0.0;
      restore(theta);
      if (key >= theta_.size() || other.theta_[key] != 0.0 || theta == 0.0 || !std::isfinite(theta))
        throw std::invalid_argument("the learner state is damaged");
      other.theta_[key] = theta;
    }
    if (!restore.finished()) throw std::invalid_argument("the learner state has bytes left over");
    take_clock(other);  // from here on nothing throws
    round_ = false;
    theta_ = std::move(other.theta_), nonzero_ = std::move(other.nonzero_);
    threshold(0.0), measure();
  }

  // ---- rounds: {theta} -----------------------------------------------------------------------
  //
  // The norm is summed in the order of the list, so at the start of a round the list is in the
  // order of keys. All thresholds of a round together are one threshold: their sum.

  std::size_t numbers_per_feature() const override { return 1; }

  std::vector<std::byte> clock() const override {
    Saver save;
    const_cast<MirrorDescent&>(*this).clock(save);  // a Saver only reads
    return save.take();
  }
  void set_clock(std::span<const std::byte> bytes) override {
    MirrorDescent like(*this, {});
    Restorer restore(bytes);
    like.clock(restore);
    if (!restore.finished()) throw std::invalid_argument("the clock has bytes left over");
    take_clock(like);
  }

  void begin_round() override {
    if (round_) throw std::invalid_argument("a round is already in progress");
    round_ = true;
    nonzero_at_start_ = nonzero_;
    theta_at_start_.clear();
    for (const std::uint64_t key : nonzero_) theta_at_start_.push_back(theta_[key]);
    updates_.assign(theta_.size(), 0);
    thresholds_ = 0.0;
  }

  RoundResult end_round() override {
    if (!round_) throw std::invalid_argument("no round is in progress");
    round_ = false;
    RoundResult result;
    for (std::size_t key = 0; key < updates_.size(); ++key) {
      if (updates_[key] == 0) continue;
      result.keys.push_back(key), result.updates.push_back(updates_[key]);
      result.numbers.push_back(theta_[key]);
    }
    for (const std::uint64_t key : nonzero_) theta_[key] = 0.0;
    nonzero_ = std::move(nonzero_at_start_);
    for (std::size_t i = 0; i < nonzero_.size(); ++i) theta_[nonzero_[i]] = theta_at_start_[i];
    threshold(0.0), measure();
    nonzero_at_start_.clear(), theta_at_start_.clear(), updates_.clear();
    return result;
  }

  std::vector<std::byte> pending() const override {
    if (l1_ == 0.0) return {};
    Saver save;
    save(thresholds_);
    return save.take();
  }
  void apply_pending(std::span<const std::byte> pending, std::span<double> numbers) const override {
    double a = 0.0;
    if (!pending.empty()) {
      Restorer restore(pending);
      restore(a);
      if (!restore.finished())
        throw std::invalid_argument("the pending events have bytes left over");
    }
    for (double& theta : numbers) theta = soft(theta, a);
  }

  void set_numbers(std::span<const std::uint64_t> keys, std::span<const double> numbers) override {
    if (numbers.size() != keys.size())
      throw std::invalid_argument("the count of numbers does not match the count of features");
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] >= theta_.size())
        throw std::invalid_argument("a feature number is not below the width");
      if (theta_[keys[i]] == 0.0 && numbers[i] != 0.0) nonzero_.push_back(keys[i]);
      theta_[keys[i]] = numbers[i];
    }
    std::sort(nonzero_.begin(), nonzero_.end());
    threshold(0.0), measure();
  }
  std::int64_t nonzeros_at(std::span<const std::byte>, std::span<const double> numbers,
                           bool) const override {
    return std::count_if(numbers.begin(), numbers.end(), [](double theta) { return theta != 0.0; });
  }
  std::vector<double> intercept_numbers() const override { return {bias_}; }
  void set_intercept_numbers(std::span<const double> numbers) override {
    if (numbers.size() != 1) throw std::invalid_argument("wrong count of numbers for an intercept");
    bias_ = numbers[0];
  }
  void finish_rounds(std::span<const std::uint64_t> keys, std::span<const double> numbers,
                     const Tally& tally) override {
    set_numbers(keys, numbers);
    tally_ = tally;
  }

 private:
  static constexpr std::uint64_t signature = 0x534D494441533031u;  // "SMIDAS01"

  MirrorDescent(const MirrorDescent& like, std::vector<double> theta)
      : loss_(like.loss_),
        rate_(like.rate_),
        p_(like.p_),
        l1_(like.l1_),
        scaled_(like.scaled_),
        relative_(like.relative_),
        fit_intercept_(like.fit_intercept_),
        theta_(std::move(theta)) {}

  static bool scaled_of(const std::string& name) {
    if (name == "paper") return false;
    if (name == "scaled") return true;
    throw std::invalid_argument("unknown threshold '" + name + "'");
  }

  template <class Archive>
  void clock(Archive& io) {
    rate_.archive(io), norms_.archive(io), tally_.archive(io);
    io(t_), io(bias_), io(last_eta_);
  }

  void take_clock(const MirrorDescent& other) {
    rate_ = other.rate_, norms_ = other.norms_, tally_ = other.tally_;
    t_ = other.t_, bias_ = other.bias_, last_eta_ = other.last_eta_;
  }

  // Makes a step, none if the weight is 0. Returns the loss before it.
  Outcome step(const Batch& batch, const Rows<double>& rows, const Repeats& repeats) {
    const double scale = row_scale(loss_, rows);
    const Inner inner = inner_with(rows);
    const double q = scale * inner.dot + bias_;
    if (!std::isfinite(q + inner.squares)) report(batch, rows);
    rows.check_target();
    const double y = rows.label();
    const Outcome outcome = loss_(q, y);
    if (repeats.count == 0) return outcome;

    double eta = rate_(t_ + 1), eta_bias = eta, norm = 0.0;
    if (relative_ || repeats.weight > 1.0)
      norm = scale * scale * relative_norm(rows, inner.squares);
    if (relative_) {
      const auto divisors = norms_.see(t_ + 1, norm, outcome.steepness);
      eta /= divisors.weights, eta_bias /= divisors.intercept;
    }
    const double reach = eta * norm + (fit_intercept_ ? eta_bias : 0.0);
    const double g = repeats.weight > 1.0 ? loss_.long_slope(q, y, repeats.weight, reach)
                                          : repeats.weight * outcome.slope;
    const double farthest =
        std::fabs(g) * std::max(eta * scale * std::sqrt(inner.squares), eta_bias);
    if (!(farthest + m_ < 1e305 && farthest + std::fabs(bias_) < 1e305)) report(batch, rows);

    if (g != 0.0) move(rows, eta * g * scale);
    const double a = scaled_ ? eta * l1_ : l1_;
    threshold(a);
    thresholds_ += a;
    measure();
    if (fit_intercept_) bias_ -= eta_bias * g;
    if (relative_) norms_.finish();
    last_eta_ = eta;
    ++t_;
    return outcome;
  }

  struct Inner {
    double dot;      // w . x
    double squares;  // ||x||^2
  };

  Inner inner_with(const Rows<double>& rows) const {
    Inner inner{0.0, 0.0};
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows.count(); ++k) {
        const double x = rows.values()[k], theta = theta_[static_cast<std::size_t>(keys[k])];
        if (theta != 0.0) inner.dot += weight(theta) * x;
        inner.squares += x * x;
      }
    });
    return inner;
  }

  // (p - 1) ||x||_p^2 bounds how much a step changes the prediction of its row, in the geometry of
  // the p-norm. Relative rates use it instead of ||x||^2.
  double relative_norm(const Rows<double>& rows, double squares) {
    if (p_ == 2.0 || squares == 0.0) return squares;
    size_.resize(rows.count());
    double m = 0.0;
    for (std::size_t k = 0; k < rows.count(); ++k)
      m = std::max(m, size_[k] = std::fabs(rows.values()[k]));
    const double sum = sum_of_powers(size_.data(), size_.size(), m, p_, least_share() * m);
    return (p_ - 1.0) * m * m * std::pow(sum, 2.0 / p_);
  }

  void move(const Rows<double>& rows, double step) {
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows.count(); ++k) {
        const auto key = static_cast<std::size_t>(keys[k]);
        const double before = theta_[key];
        theta_[key] = before - step * rows.values()[k];
        if (before == 0.0 && theta_[key] != 0.0) nonzero_.push_back(key);
        if (round_) updates_[key] += rows.values()[k] != 0;
      }
    });
  }

  // Thresholds every coordinate, removes zeros from the list, and sets m.
  void threshold(double a) {
    std::size_t kept = 0;
    m_ = 0.0, size_.resize(nonzero_.size());
    for (const std::uint64_t key : nonzero_) {
      const double theta = theta_[key] = soft(theta_[key], a);
      m_ = std::max(m_, std::fabs(theta));
      nonzero_[kept] = key, size_[kept] = std::fabs(theta);
      kept += theta != 0.0;
    }
    nonzero_.resize(kept), size_.resize(kept);
  }

  // A coordinate with |theta|/m below this has (|theta|/m)^p < 1e-24: 10^12 of them do not change a
  // sum of at least 1.
  double least_share() const { return std::exp(-55.0 / p_); }

  // Sets the factor of the weights, from ||theta||_p.
  void measure() {
    factor_ = 1.0;
    if (p_ == 2.0 || nonzero_.empty()) return;
    const double sum = sum_of_powers(size_.data(), size_.size(), m_, p_, m_ * least_share());
    factor_ = m_ * std::pow(sum, -(p_ - 2.0) / p_);
  }

  double weight(double theta) const {
    if (p_ == 2.0) return theta;
    return std::copysign(factor_ * std::pow(std::fabs(theta) / m_, p_ - 1.0), theta);
  }

  [[noreturn]] void report(const Batch& batch, const Rows<double>& rows) const {
    rows.check_values();
    throw Divergence("the weights diverged at step " + std::to_string(t_ + 1) + ", row " +
                     std::to_string(rows.row()) + ": lower eta0; for these rows " +
                     shown(safe_rate<double>(batch, loss_) / (p_ - 1.0)) + " is safe");
  }

  Loss loss_;
  Rate rate_;
  double p_, l1_;
  bool scaled_, relative_, fit_intercept_;
  RelativeRate norms_;
  Tally tally_;
  std::int64_t t_ = 0;  // steps done
  double bias_ = 0.0, last_eta_ = 0.0;
  std::vector<double> theta_;
  std::vector<std::uint64_t> nonzero_;  // where theta is not zero, each once
  std::vector<double> size_;            // scratch: |theta| of the list, or |x| of a row
  double m_ = 0.0, factor_ = 1.0;       // max |theta|, and m / ||theta / m||_p^(p-2)

  bool round_ = false;  // a round is in progress
  std::vector<std::uint64_t> nonzero_at_start_;
  std::vector<double> theta_at_start_;
  std::vector<std::uint32_t> updates_;  // number of updates of each coordinate in the round
  double thresholds_ = 0.0;             // sum of the thresholds of all steps of the round
};

}  // namespace thresher
