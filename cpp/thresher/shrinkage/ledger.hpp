// The ledger: all shrink events since the last sweep.
//
// A shrink event changes all weights, a step only a few. So the event is recorded here, and a
// weight applies its pending events when it is next used: its cell holds the number e of the last
// event that was applied.
//
// Event i changes |v| to (|v| - a_i)_+ * b_i, with a_i = eta K g from l1, b_i = 1 / (1 + eta K l2)
// from l2. With the products B_e = b_1 ... b_e and the scaled sums Q_e = sum a_i / B_{i-1}, all
// events after e together give
//
//   |v| -> B_now * (|v| / B_e + Q_e - Q_now)_+                 (R-2.4 with l2)
//
// for any learning rates, in constant time. Averages of iterates need sums of such values over
// steps. With F = sum of B and G = sum of B Q over steps, z = |v| / B_e + Q_e adds z F - G while
// the weight is not zero; a binary search in Q finds the event at which it becomes zero.
//
// The lists grow with every event. After `capacity` events a sweep applies all events to all cells,
// and the lists start again. The step of a sweep depends on the clock alone, not on the store or on
// reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "thresher/core/archive.hpp"

namespace thresher {

class Ledger {
 public:
  // `least_B`: a sweep is due when l2 makes B smaller than this.
  Ledger(bool with_l2, bool with_sums, std::size_t capacity, double least_B)
      : with_l2_(with_l2), with_sums_(with_sums), capacity_(capacity), least_B_(least_B) {
    reset();
  }

  // Records the event of the current step: subtract a, then multiply by b.
  void record(double a, double b) {
    const std::uint64_t e = Q_.size();
    even_ = even_ && !with_l2_ && (e == 1 || a == Q_[1]);
    Q_.push_back(even_ ? even_Q(e, a) : Q_.back() + a / B_now_);
    if (with_sums_) F_before_.push_back(F_), G_before_.push_back(G_);
    B_now_ *= b;
    if (with_l2_) B_.push_back(B_now_);
  }

  // Whether all events so far subtracted the same amount, without l2. Then Q_e is e times this
  // amount, rounded once, and a reader may compute it instead of reading it here.
  bool even() const { return even_; }
  double even_amount() const { return Q_.size() > 1 ? Q_[1] : 0.0; }
  static double even_Q(std::uint64_t e, double a) { return static_cast<double>(e) * a; }

  // At the end of a step: adds its iterate to the sums.
  void count_step() {
    if (with_sums_) F_ += B_now_, G_ += B_now_ * Q_.back();
  }

  std::uint32_t now() const { return static_cast<std::uint32_t>(Q_.size() - 1); }
  double Q() const { return Q_.back(); }
  double Q(std::uint64_t e) const { return Q_[e]; }
  const double* Qs() const { return Q_.data(); }
  const double* Bs() const { return with_l2_ ? B_.data() : nullptr; }
  double B() const { return B_now_; }
  double B(std::uint64_t e) const { return with_l2_ ? B_[e] : 1.0; }
  double F() const { return F_; }
  double G() const { return G_; }
  double F_before(std::uint64_t e) const { return F_before_[e]; }  // before event e took effect
  double G_before(std::uint64_t e) const { return G_before_[e]; }

  // a_i and b_i of one event, for rules that apply events one by one.
  double amount(std::uint64_t i) const { return (Q_[i] - Q_[i - 1]) * B(i - 1); }
  double factor(std::uint64_t i) const { return B(i) / B(i - 1); }

  // The first event after e, up to now(), for which holds(event) is true; now() + 1 if there is
  // none. Once holds is true, it must be true for all later events.
  template <class Holds>
  std::uint64_t first_event(std::uint64_t e, Holds&& holds) const {
    std::uint64_t low = e + 1, high = std::uint64_t{now()} + 1;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (holds(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  bool full() const { return now() >= capacity_ || B_now_ < least_B_; }

  void reset() {
    Q_.assign(1, 0.0);
    even_ = true;
    B_now_ = 1.0;
    if (with_l2_) B_.assign(1, 1.0);
    F_ = G_ = 0.0;
    if (with_sums_) F_before_.assign(1, 0.0), G_before_.assign(1, 0.0);
  }

  template <class Archive>
  void archive(Archive& io) {
    io(Q_), io(B_), io(F_before_), io(G_before_), io(B_now_), io(F_), io(G_);
    const std::size_t sums = with_sums_ ? Q_.size() : 0;
    if (Q_.empty() || B_.size() != (with_l2_ ? Q_.size() : 0) || F_before_.size() != sums ||
        G_before_.size() != sums)
      throw std::invalid_argument("the learner state is damaged");
    if constexpr (std::is_same_v<Archive, Restorer>) {  // also false for sums of older states
      even_ = !with_l2_;
      for (std::size_t e = 0; e < Q_.size(); ++e)
        even_ = even_ && Q_[e] == even_Q(e, even_amount());
    }
  }

 private:
  bool with_l2_, with_sums_;
  std::size_t capacity_;
  double least_B_;
  bool even_ = true;  // depends on Q_ alone, so that it need not be saved
  std::vector<double> Q_, B_, F_before_, G_before_;
  double B_now_ = 1.0, F_ = 0.0, G_ = 0.0;
};

}  // namespace thresher
