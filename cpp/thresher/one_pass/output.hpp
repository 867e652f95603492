// One output of the rule one-pass: everything that does not belong to a feature. The intercepts of
// the lanes, the stack, the targets, and the progressive loss.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "thresher/core/tally.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/one_pass/bank.hpp"
#include "thresher/one_pass/implicit_slope.hpp"
#include "thresher/one_pass/inputs.hpp"
#include "thresher/one_pass/stack.hpp"
#include "thresher/one_pass/target.hpp"
#include "thresher/rules/params.hpp"

namespace thresher::one_pass {

class Output {
  template <class T>
  using PerLane = std::array<T, 16>;  // as the kernels need

 public:
  Output(std::size_t lanes, const Params& params, const lanes::StackKernels& kernels)
      : bank_(bank_of(lanes)),
        kernels_(kernels),
        loss_(params.word("loss"), params.number("quantile")),
        epsilon_(params.number("epsilon")),
        relative_(params.number("relative_epsilon", 0.0) != 0.0),
        fit_intercept_(params.flag("fit_intercept")),
        stack_(lanes, fit_intercept_, kernels),
        target_(loss_, fit_intercept_) {}

  const Stack& stack() const { return stack_; }
  const Target& target() const { return target_; }
  const Tally& tally() const { return tally_; }

  // ---- a row: predict, then learn for each of its steps ----------------------------------------

  // Takes the inner products of the lanes.
  void predict(const double* dot) {
    const double offset = target_.offset();
    for (std::size_t k = 0; k < bank_.size(); ++k)
      m_[k] = target_.clip(offset + intercepts_[k] + dot[k]);
    p_ = stack_.predict(m_.data());
  }
  // The mean of the iterates has its own intercept; `gain` is the share of the last iterate.
  void average_intercept(double gain) { averaged_ += gain * (mixed_intercept() - averaged_); }
  double raw_prediction() const { return target_.mean() + target_.unit() * target_.clip(p_); }

  // Takes the target of a row whose first step has weight h. The stack and the tally learn the row
  // once, with its whole weight. `averaged` is the inner product of the averaged weights.
  void judge(double y, double h, double weight, double averaged, double rows) {
    const double raw = raw_prediction();
    const bool started = target_.started();
    const double before = target_.clip(averaged + averaged_);
    if (weight > 0) target_.see(y, h);
    set_slopes(y);
    const double e = epsilon();
    const Outcome last = loss_.outcome(target_.clip(p_), y_, e);
    // The first target of a regression is not predicted: nothing is known of its size.
    if (!loss_.regression()) tally_.add(last, weight);
    else tally_.add({started ? loss_.loss(raw, y, e * target_.unit()) : 0.0, 0.0}, weight);
    if (!(weight > 0)) return;
    predictions_.see(p_, weight);
    judged_[0] += weight * rows * loss_.score(target_.clip(p_), y_, e);
    judged_[1] += weight * rows * loss_.score(before, y_, e);
    const double share = stack_.share(weight);
    if (loss_.logistic() && share == 1.0) {
      stack_.weigh_by_probabilities(probabilities_.data());
    } else {
      PerLane<double> losses;
      for (std::size_t k = 0; k < bank_.size(); ++k) losses[k] = loss_.loss(m_[k], y_, e);
      stack_.weigh(share, losses.data());
    }
    stack_.learn(m_.data(), p_, y_, share, e, loss_);
  }
  void see_again(double y, double h) {  // the further steps of a row
    target_.see(y, h);
    set_slopes(y);
  }

  // The growth of n that a step of weight h makes; 0 for Newton.
  template <class Real>
  void grow(double h, Real* growth) {
    for (std::size_t k = 0; k < bank_.size(); ++k) {
      growth_[k] = bank_[k].newton ? 0.0 : h * slopes_[k] * slopes_[k];
      growth[k] = static_cast<Real>(growth_[k]);
    }
  }
  // Takes q, makes the step of the intercepts, and sets the steps of the weights.
  template <class Real>
  void step(double h, const double* q, const RowMeans& rows, Real* steps, Real* growth) {
    PerLane<double> inverses{}, reaches{};
    for (std::size_t k = 0; k < bank_.size(); ++k) {
      const Lane& lane = bank_[k];
      const double sum = sums_[k] + growth_[k];
      inverses[k] = !fit_intercept_ ? 0.0
                    : lane.newton   ? 1.0 / (bias_prior * lane.a + sum)
                                    : lane.a / (rows.G(lane.own) * std::sqrt(sum + beta * beta));
      reaches[k] = h * (q[k] + inverses[k]);
    }
    land(&reaches);
    for (std::size_t k = 0; k < bank_.size(); ++k) {
      const double step = h * slopes_[k];
      intercepts_[k] -= step * inverses[k];
      const double grown = bank_[k].newton ? h * curvatures_[k] : growth_[k];
      sums_[k] += grown;
      steps[k] = static_cast<Real>(step), growth[k] = static_cast<Real>(grown);
    }
  }

  // ---- the model -----------------------------------------------------------------------------

  // Whether the averaged weights predicted better than the last ones.
  bool averages() const { return judged_[1] < judged_[0]; }
  double intercept(double gain, double share) const {
    const double b = (total_ + share * pass_intercept(gain)) / (passes_ + share);
    return target_.mean() + target_.unit() * b;
  }
  // The next pass starts from zero; the statistics of the targets go on.
  void next_pass(double gain) {
    total_ += pass_intercept(gain), passes_ += 1.0;
    intercepts_ = {}, sums_ = {}, averaged_ = 0.0, judged_ = {};
    stack_ = Stack(bank_.size(), fit_intercept_, kernels_);
  }
  // The sum over rows of the squared deviations of predictions from their mean.
  double spread() const { return predictions_.squares; }

  template <class Archive>
  void archive(Archive& io) {
    stack_.archive(io), target_.archive(io), tally_.archive(io);
    io(intercepts_), io(sums_), io(averaged_), io(judged_), io(predictions_);
    io(total_), io(passes_);
  }

 private:
  static constexpr double bias_prior = 0.01;

  struct Spread {
    double weight = 0.0, mean = 0.0, squares = 0.0;

    void see(double value, double h) {
      weight += h;
      const double before = value - mean;
      mean += h * before / weight;
      squares += h * before * (value - mean);
    }
  };

  // Sets the slopes of the lanes after steps of these reaches (null: 0), and the curvatures there.
  void land(const PerLane<double>* reaches) {
    if (loss_.logistic()) {
      kernels_.land(m_.data(), y_, reaches ? reaches->data() : nullptr, slopes_.data(),
                    probabilities_.data());
      for (std::size_t k = 0; k < bank_.size(); ++k)
        curvatures_[k] = std::fabs(slopes_[k]) * probabilities_[k];
    } else {
      const double e = epsilon();
      for (std::size_t k = 0; k < bank_.size(); ++k) {
        const Landing landing = loss_.land(m_[k], y_, reaches ? (*reaches)[k] : 0.0, e);
        slopes_[k] = landing.slope, curvatures_[k] = landing.curvature;
      }
    }
  }
  void set_slopes(double y) {
    y_ = target_.standard(y);
    land(nullptr);
  }

  double epsilon() const {
    const double unit = target_.unit();
    return relative_ || !(unit > 0) ? epsilon_ : epsilon_ / unit;
  }
  double pass_intercept(double gain) const {
    const double last = mixed_intercept();
    return averages() ? averaged_ + gain * (last - averaged_) : last;
  }
  double mixed_intercept() const {
    const double offset = target_.offset();
    double b = stack_.constant();
    for (std::size_t k = 0; k < bank_.size(); ++k) b += stack_[k] * (offset + intercepts_[k]);
    return b;
  }

  std::span<const Lane> bank_;
  lanes::StackKernels kernels_;
  ImplicitLoss loss_;
  double epsilon_;
  bool relative_, fit_intercept_;  // relative: epsilon is in units of the sd of y
  Stack stack_;
  Target target_;
  Tally tally_;
  PerLane<double> intercepts_{}, sums_{};
  double averaged_ = 0.0;           // the mean of the intercepts
  std::array<double, 2> judged_{};  // losses of the last and of the averaged weights
  Spread predictions_;
  double total_ = 0.0, passes_ = 0.0;  // intercepts of earlier passes, and their number
  PerLane<double> m_{}, growth_{}, slopes_{}, curvatures_{}, probabilities_{};  // of the row
  double p_ = 0.0, y_ = 0.0;
};

}  // namespace thresher::one_pass
