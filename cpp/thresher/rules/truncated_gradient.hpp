// Truncated gradient: J. Langford, L. Li, T. Zhang, "Sparse Online Learning via Truncated
// Gradient", NIPS 2008 (R-3 to R-6).
//
//   w_{i+1} = T1(w_i - eta_i L'(w_i . x_i, y_i) x_i, eta_i g_i, theta)
//
//   g_i = K g if K divides i, else 0
//   T1(v, a, theta) = S(v, a) if |v| <= theta, else v;   S(v, a) = sgn(v) (|v| - a)_+
//
//   g      gravity: how strongly weights are pulled to zero; 0 is plain SGD
//   K      period: truncation happens after every K-th step, K times as strongly
//   theta  ceiling: larger weights are not pulled; infinite gives online l1 regularisation
//   l2     ridge, not in the paper: a truncation also divides every weight by 1 + eta_i K l2, which
//          gives the proximal map of the elastic net
//
// Two related rules shrink by another map at the same steps: `round` by T0(v, theta), which sets
// |v| < theta to zero, and `subgradient` by eta_i K g sgn(w_i), with the sign of the weight
// before the step. Forward-backward splitting (FOBOS) is K = 1, theta infinite, g = l1
//
//
// Why a step costs only the nonzeros of x: a truncation is an event in a ledger, and a weight
// applies its pending events when it is next used (R-6.12; shrinkage/ledger.hpp). with_opener
// applies them, with_closer makes the gradient step, and finish records the next event. LazyWeights
// (shrinkage/lazy_weights.hpp) holds the clock, and reads cells.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/rules/regret_certificate.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/shrinkage/even_debt.hpp"
#include "thresher/shrinkage/lazy_weights.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real_, bool Averaged>
class TruncatedGradient : public LazyWeights<Real_, Averaged> {
  using Lazy = LazyWeights<Real_, Averaged>;
  using Lazy::clock_, Lazy::plain_l1_, Lazy::unit_;
  using Lazy::unpack, Lazy::settlement;

 public:
  using Real = Real_;
  using Lazy::ledger, Lazy::eta, Lazy::eta_bias, Lazy::amount, Lazy::factor;
  using Lazy::shrinks_before_step, Lazy::is_even;
  using Lazy::weight, Lazy::average;
  using typename Lazy::Cell, typename Lazy::Stamp;

  struct Row {
    std::vector<Real> w;
    std::vector<double> sum;
    std::size_t count = 0;  // number of coordinates; after them the last one is repeated
    double pulls = 0.0;     // pending pulls of their cells; see RegretCertificate
    void resize(std::size_t n) {
      if (w.size() >= n) return;
      if (Averaged) sum.resize(n);
      w.resize(n);  // resized last: the test above uses its size for both
    }
  };

  explicit TruncatedGradient(const Params& params)
      : Lazy(params),
        fit_intercept_(params.flag("fit_intercept")),
        certificate_(params.number("certify", 0.0) != 0.0 && plain_l1_ && is_even()) {}

  // ---- one row -------------------------------------------------------------------------------

  // w_i: the weights of the row, with all pending events applied.
  template <class Use>
  void with_opener(Row& row, Use&& use) const {
    if constexpr (!Averaged) {
      if (certificate_.kept()) {
        row.pulls = 0.0;
        use([this, &row](std::size_t k, const Four<Cell>& cells, const Pack<Real>& x) {
          for (std::size_t i = 0; i < pack_size; ++i) {
            row.w[k + i] = static_cast<Real>(weight(cells[i]));
            if (k + i < row.count) row.pulls += pulls(cells[i]);
          }
          return Pack<Real>::load(row.w.data() + k) * x;
        });
        return;
      }
      if (plain_l1_ && ledger().even()) {  // the fast path: soft threshold, all in registers
        use([w_row = row.w.data(), a = ledger().even_amount(), Q_now = ledger().Q()](
                std::size_t k, const Four<Cell>& cells,
                const Pack<Real>& x) __attribute__((always_inline)) {
          const Pack<Real> w = soft(half<0>(cells), even_debt<Real>(half<1>(cells), a, Q_now));
          w.store(w_row + k);
          return w * x;
        });
        return;
      }
      if (plain_l1_) {  // soft threshold by a difference of two sums
        use([w_row = row.w.data(), Q = ledger().Qs(), Q_now = ledger().Q()](
                std::size_t k, const Four<Cell>& cells,
                const Pack<Real>& x) __attribute__((always_inline)) {
          const auto pending = Pack<Real>::of([&](std::size_t i) __attribute__((always_inline)) {
            return static_cast<Real>(Q_now - Q[cells[i].second()]);
          });
          const Pack<Real> w = soft(half<0>(cells), pending);
          w.store(w_row + k);
          return w * x;
        });
        return;
      }
    }
    [[maybe_unused]] const double inverse = unit_.inverse;
    use([=, &row, lazy = settlement()](std::size_t k, const Four<Cell>& cells,
                                       const Pack<Real>& x) {
      for (std::size_t i = 0; i < pack_size; ++i) {
        const auto [w, e] = unpack(cells[i]);
        const auto now = lazy.settle(w, e);
        row.w[k + i] = static_cast<Real>(now.weight);
        if constexpr (Averaged) row.sum[k + i] = cells[i].sum + now.account * inverse;
      }
      return Pack<Real>::load(row.w.data() + k) * x;
    });
  }

  double prediction(const Row&, double dot) const { return dot + bias_; }

  void see(double squared_norm, double steepness) {
    certificate_.see(squared_norm);
    clock_.see(squared_norm, steepness);
  }

  double reach(double squared_norm) const {
    return eta() * squared_norm + (fit_intercept_ ? eta_bias() : 0.0);
  }

  // A float overflows at 3e38. NaN does not fit either.
  bool fits(double gradient) const {
    return std::fabs(gradient) * std::max(eta(), eta_bias()) < 1e30;
  }

  // The gradient step: w_i - eta_i L'(w_i . x_i, y_i) x_i, with g = L'.
  template <class Use>
  void with_closer(const Row& row, double g, Use&& use) {
    if constexpr (!Averaged)
      if (certificate_.kept()) charge(row.pulls);
    const auto step = Pack<Real>::all(static_cast<Real>(-eta() * g));
    const bool shrinks = shrinks_before_step();
    if constexpr (!Averaged) {
      if (!shrinks) {
        use([w_row = row.w.data(), step,
             stamps = Pack<Stamp>::all(static_cast<Stamp>(ledger().now()))](
                std::size_t k, const Pack<Real>& x, Four<Cell>& cells)
                __attribute__((always_inline)) {
                  zip(Pack<Real>::load(w_row + k) + step * x, stamps, cells);
                });
        return;
      }
    }
    const Stamp stamp = static_cast<Stamp>(ledger().now()) + (shrinks ? 1 : 0);
    const Real a = static_cast<Real>(amount()), b = static_cast<Real>(factor());
    const double B = shrinks ? ledger().B() * factor() : ledger().B();
    [[maybe_unused]] const double inverse = unit_.inverse;
    use([=, &row, lazy = settlement()](std::size_t k, const Pack<Real>& x, Four<Cell>& cells) {
      const Pack<Real> move = step * x;
      for (std::size_t i = 0; i < pack_size; ++i) {
        Real w = row.w[k + i];
        if (shrinks && w != 0) w = (w - std::copysign(a, w)) * b;
        w += move[i];
        if constexpr (Averaged)
          cells[i] = {{w, stamp}, row.sum[k + i] - lazy.account(w, B) * inverse};
        else cells[i] = {w, stamp};
      }
    });
  }

  // After every K-th step the clock records a truncation in the ledger.
  void finish(double g) {
    if (fit_intercept_) bias_ -= eta_bias() * g;
    bias_sum_ += bias_;
    clock_.finish();
  }

  void next_pass() { clock_.next_pass(); }

  bool steering_due() const { return clock_.steering_due(); }
  template <class Each>
  void steer(Each&& each) {
    if (!clock_.gravity().wanted()) return;
    double nonzeros = 0.0;
    each([&](const Cell& cell) { nonzeros += weight(cell) != 0.0; });
    clock_.gravity().steer(nonzeros);
  }

  // ---- reading -------------------------------------------------------------------------------

  double intercept() const { return bias_; }
  double average_intercept() const {
    return Averaged && clock_.t() > 0 ? bias_sum_ / static_cast<double>(clock_.t()) : bias_;
  }

  double rate() const { return clock_.last_eta(); }

  std::string advice(double safe) const {
    return "lower eta0; for these rows " + shown(safe) + " is safe";
  }

  bool dead(const Cell& cell) const {
    if (weight(cell) != 0.0) return false;
    if constexpr (Averaged) return average(cell) == 0.0;
    else return !certificate_.kept() || pulls(cell) == 0.0;
  }

  // The same as a function object; see zero_test().
  auto dead_test() const
    requires(!Averaged)
  {
    return [this, zero = this->zero_test(), certifies = certificate_.kept()](const Cell& cell)
               __attribute__((always_inline)) { return certifies ? dead(cell) : zero(cell); };
  }

  // ---- the regret certificate ----------------------------------------------------------------

  bool certifies() const { return certificate_.kept(); }
  void charge(double pulls) { certificate_.charge(pulls); }
  std::map<std::string, double> facts(double pending) const {
    return certificate_.facts(pending, clock_.pull_sum());
  }
  // The sum of g_i |w_{i+1}| over the pending events of the cell.
  double pulls(const Cell& cell) const
    requires(!Averaged)
  {
    const auto [w, e] = unpack(cell);
    return RegretCertificate::pulls(clock_.pull(), w, amount(), ledger().now() - e);
  }

  // ---- the intercept of a start from given weights, and of rounds ----------------------------

  void set_intercept(double b) { bias_ = b; }

  using InterceptNumbers = std::array<double, 2>;
  InterceptNumbers intercept_numbers() const { return {bias_, bias_sum_ / clock_.steps()}; }
  void set_intercept_numbers(const InterceptNumbers& numbers) {
    bias_ = numbers[0], bias_sum_ = numbers[1] * clock_.steps();
  }

  template <class Archive>
  void archive(Archive& io) {
    clock_.archive_steps(io);
    io(bias_), io(bias_sum_);
    clock_.archive_norms(io);
    certificate_.archive(io);
    clock_.gravity().archive(io);
  }

 private:
  bool fit_intercept_;
  RegretCertificate certificate_;
  double bias_ = 0.0, bias_sum_ = 0.0;  // the intercept, and its sum over the iterates
};

}  // namespace thresher
