// Soft-thresholded margin perceptron: S. Xie et al., "Efficient and Numerically Stable Sparse
// Learning", ECML PKDD 2010, Algorithm 1 (R-9).
//
//   if y w.x <= tau:   w_j <- S(w_j + eta y x_j, lambda)   for every x_j that is not 0
//
//   tau     margin: the loss is max(0, tau - y w.x); a row with y w.x > tau makes no update
//   lambda  l1, not multiplied by eta
//   S       soft threshold
//
// With `Everywhere` an update shrinks every weight, not only those of its row: it is an
// event in the ledger, and a weight applies it when it is next used. So a step costs only the
// nonzeros of x.
//
// The rule keeps the sums of its certificates. With v_j = w_j + eta y x_j, an
// update has eps = the sum over j of lambda |v_j| if |v_j| >= lambda, else v_j^2, and
//
//   ||w||^2 <= sum over updates of eta^2 ||x||^2 + 2 eta y w.x - eps
//
// The intercept is a coordinate with x = 1 and lambda = 0.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "thresher/core/cell.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/rules/rule.hpp"
#include "thresher/shrinkage/ledger.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real_, bool Everywhere>
class MarginPerceptron {
 public:
  using Real = Real_;
  using Stamp = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  using Cell =
      std::conditional_t<Everywhere, Pair<Real, Stamp>, Single<Real>>;  // w_j, event applied

  struct Row {
    std::vector<Real> w;
    void resize(std::size_t count) {
      if (w.size() < count) w.resize(count);
    }
  };

  explicit MarginPerceptron(const Params& params)
      : eta_(params.number("eta0")),
        lambda_(static_cast<Real>(params.number("l1"))),
        fit_intercept_(params.flag("fit_intercept")),
        ledger_(false, false, static_cast<std::size_t>(params.number("sweep_events", 1 << 20)), 0) {
  }

  // ---- one row -------------------------------------------------------------------------------

  template <class Use>
  void with_opener(Row& row, Use&& use) const {
    use([w_row = row.w.data(), Q = ledger_.Qs(), Q_now = ledger_.Q()](
            std::size_t k, const Four<Cell>& cells, const Pack<Real>& x)
            __attribute__((always_inline)) {
              Pack<Real> w;
              if constexpr (Everywhere)
                w = soft(half<0>(cells), Pack<Real>::of([&](std::size_t i) {
                           return static_cast<Real>(Q_now - Q[cells[i].second()]);
                         }));
              else w = whole(cells);
              w.store(w_row + k);
              return w * x;
            });
  }

  double prediction(const Row&, double dot) {
    p_ = dot + bias_;
    return p_;
  }

  void see(double squared_norm, double) {
    row_norm_ = squared_norm + (fit_intercept_ ? 1.0 : 0.0);
    radius_ = std::max(radius_, row_norm_);
  }

  double reach(double squared_norm) const {
    return eta_ * (squared_norm + (fit_intercept_ ? 1.0 : 0.0));
  }

  bool fits(double gradient) const { return std::fabs(gradient) * eta_ < 1e30; }

  template <class Use>
  void with_closer(const Row& row, double g, Use&& use) {
    sums_ = {};
    const auto step = Pack<Real>::all(static_cast<Real>(-eta_ * g));
    const auto lambda = Pack<Real>::all(lambda_);
    [[maybe_unused]] const auto stamps = Pack<Stamp>::all(static_cast<Stamp>(ledger_.now()));
    use([=, w_row = row.w.data(), sums = &sums_](std::size_t k, const Pack<Real>& x,
                                                 Four<Cell>& cells) __attribute__((always_inline)) {
      const Pack<Real> w = Pack<Real>::load(w_row + k), v = w + step * x;
      if constexpr (Everywhere) {  // the event of this update shrinks v, as all weights
        zip(v, stamps, cells);
      } else {  // x = 0 after the end of the row, and for stored zeros: no change
        const Pack<Real> result = where(x, soft(v, lambda), w);
        sums->born += where(result, Pack<Real>::all(1), Pack<Real>::all(0)) -
                      where(w, Pack<Real>::all(1), Pack<Real>::all(0));
        spread(result, cells);
      }
      const Pack<Real> size = absolute(v);
      sums->eps += where(x, size * smaller(size, lambda), Pack<Real>::all(0));
    });
  }

  void finish(double g) {
    if (g == 0.0) return;
    if (fit_intercept_) bias_ -= eta_ * g;
    const double eps = sums_.eps.total();
    ++updates_;
    bound_ += eta_ * eta_ * row_norm_ * g * g - 2.0 * eta_ * g * p_ - eps;
    least_eps_ = std::min(least_eps_, eps);
    nonzeros_ += static_cast<std::int64_t>(sums_.born.total());
    if constexpr (Everywhere) ledger_.record(static_cast<double>(lambda_), 1.0);
    else pausing_ = nonzeros_ >= pause_at_;
  }

  void next_pass() {}

  // This row made an update: a certificate needs the number of different rows that did.
  void count_updated_row(std::int64_t row) {
    const auto word = static_cast<std::size_t>(row / 64);
    if (word >= updated_.size()) updated_.resize(word + 1);
    const std::uint64_t bit = std::uint64_t{1} << (row % 64);
    updated_rows_ += !(updated_[word] & bit);
    updated_[word] |= bit;
  }

  // Learning pauses after a row whose last update leaves at least this many nonzero weights.
  void pause_at(std::int64_t nonzeros) { pause_at_ = nonzeros; }
  void begin_row() { pausing_ = false; }
  bool pausing() const { return pausing_; }

  // ---- reading -------------------------------------------------------------------------------

  double weight(const Cell& cell) const {
    if constexpr (Everywhere)
      return soft(cell.first(), static_cast<Real>(ledger_.Q() - ledger_.Q(cell.second())));
    else return cell.value();
  }
  double average(const Cell& cell) const { return weight(cell); }
  double intercept() const { return bias_; }
  double average_intercept() const { return bias_; }
  double rate() const { return eta_; }
  std::string advice(double) const { return "the values of the rows are too large; scale them"; }

  std::map<std::string, double> facts() const {
    return {{"nonzeros", static_cast<double>(nonzeros_)},
            {"updates", static_cast<double>(updates_)},
            {"culprits", static_cast<double>(updated_rows_)},
            {"norm_bound", bound_},
            {"least_shrinkage", updates_ ? least_eps_ : 0.0},
            {"squared_radius", radius_}};
  }

  bool valid(const Cell& cell) const {
    if constexpr (Everywhere) return cell.second() <= ledger_.now();
    return true;
  }
  bool dead(const Cell& cell) const { return weight(cell) == 0.0; }
  bool sweep_due() const { return ledger_.full(); }
  Cell settled(const Cell& cell) const {
    if constexpr (Everywhere) return Cell(static_cast<Real>(weight(cell)), 0);
    else return cell;
  }
  void reset_ledger() { ledger_.reset(); }

  // ---- rounds: {w} -----------------------------------------------------------------------------

  static constexpr std::size_t numbers_per_feature = 1;
  using Numbers = std::array<double, 1>;
  using InterceptNumbers = std::array<double, 1>;

  bool changes_without_update() const { return Everywhere; }
  Numbers numbers_of(const Cell& cell) const { return {weight(cell)}; }
  Cell cell_at_start(const Numbers& numbers) const {
    const Real w = static_cast<Real>(numbers[0]);
    if constexpr (Everywhere) return Cell(w, 0);
    else return Cell(w);
  }
  Cell cell_now(const Numbers& numbers) const { return cell_at_start(numbers); }
  InterceptNumbers intercept_numbers() const { return {bias_}; }
  void set_intercept_numbers(const InterceptNumbers& numbers) { bias_ = numbers[0]; }
  void set_nonzeros(std::int64_t nonzeros) { nonzeros_ = nonzeros; }

  template <class Archive>
  void archive(Archive& io) {
    ledger_.archive(io);
    io(bias_), io(updates_), io(updated_rows_), io(bound_), io(least_eps_), io(radius_);
    io(nonzeros_), io(pause_at_), io(pausing_), io(updated_);
  }

 private:
  struct Sums {  // of one update
    Pack<Real> eps = Pack<Real>::all(0), born = Pack<Real>::all(0);
  };

  double eta_;
  Real lambda_;
  bool fit_intercept_;
  Ledger ledger_;
  double bias_ = 0.0;
  double p_ = 0.0, row_norm_ = 0.0;  // of the current row
  Sums sums_;
  std::int64_t updates_ = 0, updated_rows_ = 0, nonzeros_ = 0;
  std::int64_t pause_at_ = std::numeric_limits<std::int64_t>::max();
  bool pausing_ = false;
  double bound_ = 0.0, least_eps_ = std::numeric_limits<double>::infinity(), radius_ = 0.0;
  std::vector<std::uint64_t> updated_;  // a bit for each row
};

}  // namespace thresher
