// The clock of truncated gradient: it counts steps, computes the learning rate eta_i of step i, and
// records a shrink event in its ledger (shrinkage/ledger.hpp) after every K-th step. With
// truncation, the event after step i changes each weight v to
//
//   |v| -> (|v| - eta_i K g)_+ / (1 + eta_i K l2)
//
// For rounding and the l1 subgradient, see shrinkage/settlement.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "thresher/rules/rule.hpp"
#include "thresher/schedule/rate.hpp"
#include "thresher/schedule/relative_rate.hpp"
#include "thresher/schedule/steering.hpp"
#include "thresher/shrinkage/ledger.hpp"
#include "thresher/shrinkage/settlement.hpp"

namespace thresher {

class EventClock {
 public:
  // `with_sums`: the ledger keeps sums for averages; `least_B`: see Ledger.
  EventClock(const Params& params, bool with_sums, double least_B)
      : rate_(params.word("schedule"), params.number("eta0"), params.number("power"),
              params.number("decay")),
        shrink_(shrink_of(params.word("shrink"))),
        g_(params.number("gravity"), params.number("target_nnz", 0.0)),
        fading_(params.flag("fading")),
        K_(static_cast<std::int64_t>(params.number("period"))),
        l2_(params.number("l2")),
        ledger_(l2_ > 0, with_sums,
                static_cast<std::size_t>(params.number("sweep_events", 1 << 20)), least_B),
        has_events_(shrink_ == Shrink::round || g_.now() > 0 || l2_ > 0),
        relative_(params.flag("relative")),
        eta_(rate_(1)),
        eta_bias_(eta_),
        until_event_(K_) {
    if (K_ < 1) throw std::invalid_argument("period must be at least 1");
  }

  // ---- the current step ----------------------------------------------------------------------

  double eta() const { return eta_; }
  double eta_bias() const { return eta_bias_; }  // of the intercept

  // The event of the current step: |v| -> (|v| - amount) * factor.
  double amount() const {
    if (shrink_ == Shrink::round) return 0.0;
    const double g = fading_ ? g_.now() / static_cast<double>(t_ + 1) : g_.now();
    return eta_ * static_cast<double>(K_) * g;
  }
  double factor() const { return 1.0 / (1.0 + eta_ * static_cast<double>(K_) * l2_); }

  // Whether the current step shrinks its weights itself, before it updates them. The subgradient
  // needs this at an event, because it uses the sign of a weight before the step.
  bool shrinks_before_step() const {
    return shrink_ == Shrink::subgradient && has_events_ && until_event_ == 1;
  }

  // Relative rates depend on the squared norm of the row, and on the steepness of its loss.
  void see(double squared_norm, double steepness) {
    if (!relative_) return;
    const auto divisors = norms_.see(t_ + 1, squared_norm, steepness);
    eta_ = rate_(t_ + 1) / divisors.weights;
    eta_bias_ = rate_(t_ + 1) / divisors.intercept;
  }

  void finish() {
    norms_.finish();
    last_eta_ = eta_;
    if (--until_event_ == 0) {
      until_event_ = K_;
      if (has_events_) ledger_.record(amount(), factor());
    }
    ++t_;
    g_.count_step(t_);
    ledger_.count_step();
    eta_ = eta_bias_ = rate_(t_ + 1);
  }

  void next_pass() {
    rate_.next_pass();
    eta_ = eta_bias_ = rate_(t_ + 1);
  }

  // ---- steps and events so far ---------------------------------------------------------------

  std::int64_t t() const { return t_; }  // steps done
  double steps() const { return static_cast<double>(std::max<std::int64_t>(t_, 1)); }
  double last_eta() const { return last_eta_; }
  const Ledger& ledger() const { return ledger_; }
  void reset_ledger() { ledger_.reset(); }

  Shrink shrink() const { return shrink_; }
  double l2() const { return l2_; }
  bool has_events() const { return has_events_; }
  // All events subtract the same amount.
  bool is_even() const { return rate_.is_constant() && !relative_ && !fading_ && !g_.wanted(); }

  // K g, and its sum over all events so far; for constant gravity.
  double pull() const { return static_cast<double>(K_) * g_.now(); }
  double pull_sum() const {
    const std::int64_t events = t_ / K_;
    return static_cast<double>(events) * static_cast<double>(K_) * g_.now();
  }

  SteeredGravity& gravity() { return g_; }
  bool steering_due() const { return g_.due() && until_event_ == K_; }

  // The clock is archived by two functions, because checkpoints store other numbers of the rule
  // between them.
  template <class Archive>
  void archive_steps(Archive& io) {
    rate_.archive(io), ledger_.archive(io);
    io(t_), io(until_event_), io(eta_), io(eta_bias_), io(last_eta_);
    if (until_event_ < 1 || until_event_ > K_)
      throw std::invalid_argument("the learner state is damaged");
  }
  template <class Archive>
  void archive_norms(Archive& io) {
    norms_.archive(io);
  }

 private:
  Rate rate_;
  Shrink shrink_;
  SteeredGravity g_;
  bool fading_;  // g_i = g / i: the penalty is on the sum of the losses, not on their mean
  std::int64_t K_;
  double l2_;
  Ledger ledger_;
  bool has_events_, relative_;
  double eta_, eta_bias_;  // of the current step
  std::int64_t until_event_;
  std::int64_t t_ = 0;
  double last_eta_ = 0.0;
  RelativeRate norms_;  // of rows, for relative rates
};

}  // namespace thresher
