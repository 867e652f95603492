// Truncated gradient: J. Langford, L. Li, T. Zhang, "Sparse Online Learning via Truncated Gradient",
// NIPS 2008.
//
//   w_{i+1} = T1(w_i - eta_i L'(w_i . x_i, y_i) x_i, eta_i g_i, theta),   g_i = K g if K divides i, else 0
//
//   g      gravity: how hard weights are pulled to zero; 0 is plain SGD
//   K      period: truncation happens after every K-th step, K times as hard
//   theta  ceiling: larger weights are not pulled; infinite gives online l1 regularisation
//   l2     ridge, beyond the paper: at the same events every weight is divided by 1 + eta_i K l2, the
//          proximal map of the elastic net
//
// Two relatives shrink by another map at the same events: `round` by T0(w, theta), and
// `subgradient` by eta_i K g sgn(w_i), with the sign of the weight before the gradient.
// Forward-backward splitting (FOBOS) is K = 1, theta infinite, g = l1.
//
// The trick that makes a step cost the nonzeros of x alone: events are written in the ledger and paid
// when a weight is next used, before it is used.
//
// With `certify` the rule keeps what the regret certificate needs: the sum over events of
// g_i ||w_{i+1}||_1, and the largest ||x||^2. An untouched weight v adds (|v| - a) + (|v| - 2a) + ... until
// it dies, a = eta K g: in closed form, charged when its cell is next written. That needs truncation
// without ceiling, l2 and averages, at a constant rate; else nothing is kept.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "thresher/averaging/round_unit.hpp"
#include "thresher/core/cell.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/schedule/rate.hpp"
#include "thresher/schedule/relative_rate.hpp"
#include "thresher/schedule/steering.hpp"
#include "thresher/shrinkage/ledger.hpp"
#include "thresher/shrinkage/settlement.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

// With `Averaged`, a cell also carries the sum of the weight over all iterates, exactly as a loop that
// truncates eagerly would have it.
template <class Real_, bool Averaged>
class TruncatedGradient {
 public:
  using Real = Real_;
  using Stamp = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;

  using Weight = Pair<Real, Stamp>;  // w_j, and the last event it has paid
  struct Summed {
    Weight weight;
    double sum = 0.0;  // of the iterates so far, less account(w_j): see account()
    bool operator==(const Summed&) const = default;
  };
  using Cell = std::conditional_t<Averaged, Summed, Weight>;

  struct Row {
    std::vector<Real> w;
    std::vector<double> sum;
    std::size_t count = 0;  // of the coordinates; behind them the last is repeated
    double pulls = 0.0;     // what their cells have not been charged with
    void resize(std::size_t n) {
      if (w.size() >= n) return;
      if (Averaged) sum.resize(n);
      w.resize(n);  // last: its size tells whether all are large enough
    }
  };

  explicit TruncatedGradient(const Params& params)
      : rate_(params.word("schedule"), params.number("eta0"), params.number("power"),
              params.number("decay")),
        shrink_(shrink_of(params.word("shrink"))),
        given_g_(params.number("gravity")),
        g_(given_g_),
        steering_(params.number("target_nnz", 0.0)),
        fading_(params.flag("fading")),
        K_(static_cast<std::int64_t>(params.number("period"))),
        theta_(params.number("ceiling")),
        l2_(params.number("l2")),
        fit_intercept_(params.flag("fit_intercept")),
        ledger_(l2_ > 0, Averaged, static_cast<std::size_t>(params.number("sweep_events", 1 << 20)),
                least_B),
        shrinks_(shrink_ == Shrink::round || g_ > 0 || l2_ > 0),
        plain_l1_(!Averaged && shrink_ == Shrink::truncate && l2_ == 0 && std::isinf(theta_)),
        relative_(params.flag("relative")),
        certifies_(params.number("certify", 0.0) != 0.0 && plain_l1_ && is_even()),
        eta_(rate_(1)),
        eta_bias_(eta_),
        until_event_(K_) {
    if (K_ < 1) throw std::invalid_argument("period must be at least 1");
  }

  // ---- one row -------------------------------------------------------------------------------

  template <class Use>
  void with_opener(Row& row, Use&& use) const {
    if constexpr (Averaged) {
      use([this, &row, part = in_.inverse](std::size_t k, const Four<Cell>& cells,
                                           const Pack<Real>& x) {
        for (std::size_t i = 0; i < pack_size; ++i) {
          const auto [w, e] = opened(cells[i]);
          const auto now = settle(w, e);
          row.w[k + i] = static_cast<Real>(now.weight);
          row.sum[k + i] = cells[i].sum + now.account * part;
        }
        return Pack<Real>::load(row.w.data() + k) * x;
      });
    } else if (plain_l1_ && !certifies_) {
      // Soft threshold by the difference of two sums: all in registers.
      use([w_row = row.w.data(), Q = ledger_.Qs(), Q_now = ledger_.Q()](
              std::size_t k, const Four<Cell>& cells, const Pack<Real>& x)
              __attribute__((always_inline)) {
                const auto owed = Pack<Real>::of([&](std::size_t i) __attribute__((always_inline)) {
                  return static_cast<Real>(Q_now - Q[cells[i].second()]);
                });
                const Pack<Real> w = soft(half<0>(cells), owed);
                w.store(w_row + k);
                return w * x;
              });
    } else if (!certifies_) {
      use([this, &row](std::size_t k, const Four<Cell>& cells, const Pack<Real>& x) {
        for (std::size_t i = 0; i < pack_size; ++i)
          row.w[k + i] = static_cast<Real>(settle(cells[i].first(), cells[i].second()).weight);
        return Pack<Real>::load(row.w.data() + k) * x;
      });
    } else {
      row.pulls = 0.0;
      use([this, &row](std::size_t k, const Four<Cell>& cells, const Pack<Real>& x) {
        open_and_certify(row, k, cells);
        return Pack<Real>::load(row.w.data() + k) * x;
      });
    }
  }

  double prediction(const Row&, double dot) const { return dot + bias_; }

  void see(double squared_norm, double weight) {
    if (certifies_) radius_ = std::max(radius_, squared_norm);
    if (!relative_) return;
    const auto divisors = norms_.see(t_ + 1, squared_norm, weight);
    eta_ = rate_(t_ + 1) / divisors.weights;
    eta_bias_ = rate_(t_ + 1) / divisors.intercept;
  }

  // A float overflows at 3e38. NaN does not fit either.
  bool fits(double gradient) const {
    return std::fabs(gradient) * std::max(eta_, eta_bias_) < 1e30;
  }

  template <class Use>
  void with_closer(const Row& row, double g, Use&& use) {
    if (certifies_) charge(row.pulls);
    const auto step = Pack<Real>::all(static_cast<Real>(-eta_ * g));
    if constexpr (!Averaged) {
      if (!shrinks_before_step()) {
        use([w_row = row.w.data(), step,
             stamps = Pack<Stamp>::all(static_cast<Stamp>(ledger_.now()))](
                std::size_t k, const Pack<Real>& x, Four<Cell>& cells)
                __attribute__((always_inline)) {
                  zip(Pack<Real>::load(w_row + k) + step * x, stamps, cells);
                });
      } else {
        use([this, &row, step](std::size_t k, const Pack<Real>& x, Four<Cell>& cells) {
          close_with_event(row, k, step * x, cells);
        });
      }
    } else {
      const bool shrinks = shrinks_before_step();
      const Stamp stamp = static_cast<Stamp>(std::uint64_t{ledger_.now()} + shrinks);
      const Real a = static_cast<Real>(amount()), b = static_cast<Real>(factor());
      const double B = shrinks ? ledger_.B() * factor() : ledger_.B();
      const double part = in_.inverse;
      use([=, this, &row](std::size_t k, const Pack<Real>& x, Four<Cell>& cells) {
        const Pack<Real> move = step * x;
        for (std::size_t i = 0; i < pack_size; ++i) {
          Real w = row.w[k + i];
          if (shrinks && w != 0) w = (w - std::copysign(a, w)) * b;
          w += move[i];
          cells[i] = {{w, stamp}, row.sum[k + i] - account(w, B) * part};
        }
      });
    }
  }

  void finish(double g) {
    if (fit_intercept_) bias_ -= eta_bias_ * g;
    bias_sum_ += bias_;
    norms_.finish();
    last_eta_ = eta_;
    if (--until_event_ == 0) {
      until_event_ = K_;
      if (shrinks_) ledger_.record(amount(), factor());
    }
    ++t_;
    steers_ = steers_ || steering_.due(t_);
    ledger_.count_step();
    eta_ = eta_bias_ = rate_(t_ + 1);
  }

  void next_pass() {
    rate_.next_pass();
    eta_ = eta_bias_ = rate_(t_ + 1);
  }

  // Raises gravity while there are more weights than are wanted, and lowers it while there are fewer, but
  // to no more than ten times what was given and no less than a tenth: beyond, it would take from the
  // weights that matter as much as from the others. What is then too many is cut off when the model is
  // read, the smallest first; so what is wanted here is a quarter more. Weights are counted just after a
  // truncation: before the next one, every feature seen has some.
  bool steering_due() const { return steers_ && until_event_ == K_; }
  template <class Each>
  void steer(Each&& each) {
    if (!steering_.wanted()) return;
    steers_ = false;
    double nonzeros = 0.0;
    each([&](const Cell& cell) { nonzeros += weight(cell) != 0.0; });
    const double ratio = (nonzeros + 1.0) / (1.25 * steering_.target() + 1.0);
    g_ = std::clamp(g_ * std::clamp(std::sqrt(ratio), 0.7, 1.5), given_g_ / 10, given_g_ * 10);
  }

  // ---- what others may read ------------------------------------------------------------------

  double weight(const Cell& cell) const {
    const auto [w, e] = opened(cell);
    if (plain_l1_) return soft(w, static_cast<Real>(ledger_.Q() - ledger_.Q(e)));
    return static_cast<Real>(settle(w, e).weight);
  }

  double average(const Cell& cell) const {
    if constexpr (Averaged) {
      return t_ == 0 ? 0.0 : sum_of_iterates(cell) * in_.unit / static_cast<double>(t_);
    } else {
      return weight(cell);
    }
  }

  double intercept() const { return bias_; }
  double average_intercept() const {
    return Averaged && t_ > 0 ? bias_sum_ / static_cast<double>(t_) : bias_;
  }

  double rate() const { return last_eta_; }

  std::string advice(double safe) const {
    return "lower eta0; for these rows " + shown(safe) + " is safe";
  }

  bool valid(const Cell& cell) const { return opened(cell).second <= ledger_.now(); }

  bool dead(const Cell& cell) const {
    if (weight(cell) != 0.0) return false;
    if (certifies_ && pulls(cell) != 0.0) return false;
    if constexpr (Averaged) return average(cell) == 0.0;
    return true;
  }

  // ---- certificates --------------------------------------------------------------------------

  bool certifies() const { return certifies_; }

  // The sum of g_i |w_{i+1}| over the events that the cell has not paid.
  double pulls(const Cell& cell) const {
    const auto [w, e] = opened(cell);
    return pulled(static_cast<double>(K_) * g_, w, amount(), ledger_.now() - e);
  }
  void charge(double pulls) { pulls_ += pulls; }

  std::map<std::string, double> facts(double owed) const {
    if (!certifies_) return {};
    const std::int64_t events = t_ / K_;
    return {{"pull_sum", pulls_ + owed},
            {"gravity_sum", static_cast<double>(events) * static_cast<double>(K_) * g_},
            {"squared_radius", radius_}};
  }

  // ---- for lanes, whose clock this is (lanes/truncated_lanes.hpp) -----------------------------

  const Ledger& ledger() const { return ledger_; }
  double eta() const { return eta_; }  // of the step to come
  double eta_bias() const { return eta_bias_; }

  // The event of the current step: |v| -> (|v| - amount) * factor.
  double amount() const {
    if (shrink_ == Shrink::round) return 0.0;
    const double g = fading_ ? g_ / static_cast<double>(t_ + 1) : g_;
    return eta_ * static_cast<double>(K_) * g;
  }
  double factor() const { return 1.0 / (1.0 + eta_ * static_cast<double>(K_) * l2_); }

  // The subgradient's event takes the sign of the weight before the step: a touched weight pays it
  // together with the step, not later.
  bool shrinks_before_step() const {
    return shrink_ == Shrink::subgradient && shrinks_ && until_event_ == 1;
  }

  // All events take the same amount.
  bool is_even() const {
    return rate_.is_constant() && !relative_ && !fading_ && !steering_.wanted();
  }

  // ---- sweeps --------------------------------------------------------------------------------

  bool sweep_due() const { return ledger_.full(); }

  // The cell with everything paid, stamped for a ledger that begins again.
  Cell settled(const Cell& cell) const {
    const Weight paid(static_cast<Real>(weight(cell)), 0);
    if constexpr (Averaged) return {paid, sum_of_iterates(cell)};
    else return paid;
  }

  void reset_ledger() { ledger_.reset(); }

  // A cell whose weight is w now.
  Cell cell_with_weight(double w) const {
    const Weight weight(static_cast<Real>(w), static_cast<Stamp>(ledger_.now()));
    if constexpr (Averaged) return {weight, -account(weight.first(), ledger_.B()) * in_.inverse};
    else return weight;
  }
  void set_intercept(double b) { bias_ = b; }

  // ---- rounds: {w}, or {w, mean of its iterates} -----------------------------------------------

  static constexpr std::size_t numbers_per_feature = Averaged ? 2 : 1;
  using Numbers = std::array<double, numbers_per_feature>;
  using InterceptNumbers = std::array<double, 2>;

  bool changes_without_update() const { return Averaged || shrinks_; }
  Numbers numbers_of(const Cell& cell) const {
    if constexpr (Averaged) return {weight(cell), sum_of_iterates(cell) * in_.unit / steps()};
    else return {weight(cell)};
  }
  Cell cell_at_start(const Numbers& numbers) const {
    const Weight weight(static_cast<Real>(numbers[0]), 0);
    if constexpr (Averaged) return {weight, numbers[1]};
    else return weight;
  }
  Cell cell_now(const Numbers& numbers) const {
    Cell cell = cell_with_weight(numbers[0]);
    if constexpr (Averaged) cell.sum += numbers[1] * steps() * in_.inverse;
    return cell;
  }
  InterceptNumbers intercept_numbers() const { return {bias_, bias_sum_ / steps()}; }
  void set_intercept_numbers(const InterceptNumbers& numbers) {
    bias_ = numbers[0], bias_sum_ = numbers[1] * steps();
  }
  void begin_round() { in_.begin(steps()); }
  void end_rounds() { in_ = {}; }
  template <class Archive>
  void archive_round(Archive& io) {
    in_.archive(io);
  }

  template <class Archive>
  void archive(Archive& io) {
    rate_.archive(io), ledger_.archive(io);
    io(t_), io(until_event_), io(eta_), io(eta_bias_), io(last_eta_), io(bias_), io(bias_sum_);
    norms_.archive(io);
    io(pulls_), io(radius_), io(g_), io(steers_);
    if (until_event_ < 1 || until_event_ > K_)
      throw std::invalid_argument("the learner state is damaged");
  }

 private:
  // l2 lets B fall. Sweep long before 1 / B overflows; with averages, before what a step adds to the sum
  // of B is lost in it to the precision of a cell.
  static constexpr double least_B = !Averaged ? 1e-100 : sizeof(Real) == 4 ? 1e-8 : 1e-4;

  // Openers and closers of rare cases, compiled once for all stores.
  [[gnu::noinline]] void open_and_certify(Row& row, std::size_t k, const Four<Cell>& cells) const {
    for (std::size_t i = 0; i < pack_size; ++i) {
      row.w[k + i] = static_cast<Real>(weight(cells[i]));
      if (k + i < row.count) row.pulls += pulls(cells[i]);
    }
  }
  [[gnu::noinline]] void close_with_event(const Row& row, std::size_t k, const Pack<Real>& move,
                                          Four<Cell>& cells) const {
    const auto stamp = static_cast<Stamp>(std::uint64_t{ledger_.now()} + 1);
    const Real a = static_cast<Real>(amount()), b = static_cast<Real>(factor());
    for (std::size_t i = 0; i < pack_size; ++i) {
      Real w = row.w[k + i];
      if (w != 0) w = (w - std::copysign(a, w)) * b;
      if constexpr (!Averaged) cells[i] = {w + move[i], stamp};
    }
  }

  static std::pair<Real, Stamp> opened(const Cell& cell) {
    if constexpr (Averaged) return {cell.weight.first(), cell.weight.second()};
    else return {cell.first(), cell.second()};
  }

  double sum_of_iterates(const Summed& cell) const {
    return cell.sum + settle(cell.weight.first(), cell.weight.second()).account * in_.inverse;
  }

  Settlement<Averaged> settlement() const {
    return {ledger_, shrink_, theta_, l2_, is_even() ? amount() : -1.0};
  }
  double steps() const { return static_cast<double>(std::max<std::int64_t>(t_, 1)); }
  double account(double v, double B) const { return settlement().account(v, B); }
  [[gnu::noinline]] auto settle(double v, std::uint64_t e) const {
    return settlement().settle(v, e);
  }

  Rate rate_;
  Shrink shrink_;
  double given_g_, g_;  // g_ is steered where a number of weights is wanted
  Steering steering_;
  bool steers_ = false;  // at the next truncation
  bool
      fading_;  // the pull of step i is g / i: a penalty on the sum of the losses, not on their mean
  std::int64_t K_;
  double theta_, l2_;
  bool fit_intercept_;
  Ledger ledger_;
  bool shrinks_;           // there are events at all
  bool plain_l1_;          // the fast path: soft threshold by a difference of two sums
  bool relative_;          // rates are relative to the norms of rows
  bool certifies_;         // keeps the sums of the regret certificate
  double eta_, eta_bias_;  // of the current step
  std::int64_t until_event_;
  std::int64_t t_ = 0;  // steps done
  double bias_ = 0.0, bias_sum_ = 0.0;
  Relative norms_;                     // behind relative rates
  double pulls_ = 0.0, radius_ = 0.0;  // of the certificate
  double last_eta_ = 0.0;
  RoundUnit in_;  // the sums of cells
};

}  // namespace thresher
