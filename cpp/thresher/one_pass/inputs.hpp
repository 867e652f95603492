// The inputs of the lanes: the values of a row in two scalings, which all outputs share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "thresher/core/error.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/core/row_step.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/kernels.hpp"

namespace thresher::one_pass {

// Running means over rows, shared by all outputs.
struct RowMeans {
  double weight = 0.0;                             // of the rows so far
  double rows = 0.0, given = 0.0;                  // their number, and weight before share()
  double values = 0.0, size = 0.0;                 // number of nonzeros, and the mean of |x|
  double squares_common = 0.0, squares_own = 0.0;  // sums over rows of sum u^2

  double common() const { return size > 0 ? size : 1.0; }
  double G(bool own) const {
    const double mean = (own ? squares_own : squares_common) / weight;
    return mean > 0 ? std::sqrt(mean) : 1.0;
  }
};

// Iterates are averaged with weights t^15. A mean that was made at the part 1 - g of the time keeps the
// share (1 - g)^16; this is the rest, without cancellation.
template <class T>
[[gnu::always_inline]] inline T gain(T g) {
  for (int i = 0; i < 4; ++i) g *= T(2) - g;
  return g;
}

// The time of the last row that had a feature; a double in a cell.
template <class Real>
double last_of(const Real* from) {
  double last;
  std::memcpy(&last, from, sizeof last);
  return last;
}

template <class Real>
class Inputs {
 public:
  const RowMeans& rows() const { return rows_; }
  void set_rows(const RowMeans& rows) { rows_ = rows; }

  // 1 / s; rows of the least numbers of a type would make it infinite.
  double inverse_of_common() const {
    return std::min(1.0 / rows_.common(), static_cast<double>(std::numeric_limits<Real>::max()));
  }

  const Real* u() const { return u_.data(); }            // x / s_j
  const Real* ratios() const { return ratios_.data(); }  // s_j / s
  const Real* gains() const { return gains_.data(); }    // of the means of the mixed weights

  // The weight with which a row is learned. If the mean weight is above 100, it is divided, so that
  // the mean is 100: with larger weights the lanes would fit each row exactly.
  double share(double weight) {
    if (!(weight > 0)) return weight;
    rows_.rows += 1.0, rows_.given += weight;
    return weight / std::max(1.0, rows_.given / rows_.rows / 100.0);
  }

  // A new row. Throws if a value is not finite.
  void begin(const Rows<Real>& rows) {
    const Real* const x = rows.values();
    const std::size_t n = rows.count();
    double sums[4] = {};  // four chains, to hide the latency of additions
    std::size_t values = 0, k = 0;
    for (; k + 4 <= n; k += 4)
      for (std::size_t i = 0; i < 4; ++i) sums[i] += static_cast<double>(std::fabs(x[k + i]));
    for (; k < n; ++k) sums[0] += static_cast<double>(std::fabs(x[k]));
    for (k = 0; k < n; ++k) values += x[k] != 0;
    sum_ = (sums[0] + sums[1]) + (sums[2] + sums[3]), values_ = static_cast<double>(values);
    if (!std::isfinite(sum_)) {
      rows.check_values();
      throw DataError(rows.row(), "the sum of its values overflows");
    }
    for (auto* numbers : {&u_, &ratios_, &gains_, &scales_, &seen_}) numbers->resize(rows.count());
  }

  // Counts the row with weight h in the scales, and sets its inputs; in the first step of a row,
  // also the gains. A cell has s_j, the number of values and the last time at `place`.
  void see(const lanes::RowOfCells<Real>& row, std::size_t place, double h, double now,
           bool first) {
    if (h * values_ > 0) {
      rows_.values += h * values_;
      rows_.size += h * (sum_ - values_ * rows_.size) / rows_.values;
    }
    const auto [own, common] = set(row, place, static_cast<Real>(h), now, first);
    rows_.weight += h;
    rows_.squares_own += h * own, rows_.squares_common += h * common;
  }

 private:
  // A mean of more values would drift in float32, because its steps are rounded.
  static constexpr Real most_counted = 1 << 20;

  // Returns sum u^2 for the own and for the common scaling. Three loops, so that the arithmetic is
  // done in vectors: read the cells, compute, write the cells.
  std::pair<double, double> set(const lanes::RowOfCells<Real>& given, std::size_t place, Real h,
                                double now, bool first) {
    const lanes::RowOfCells<Real> row = given;
    const std::size_t n = row.n;
    Real* const cells = row.first.numbers;
    Real *const s = scales_.data(), *const seen = seen_.data(), *const gains = gains_.data();
    const double rate = now > 0 ? 1.0 / now : 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      const Real* const later = cells + row.later[k] * row.stride;
      __builtin_prefetch(later, 1);
      __builtin_prefetch(later + place, 1);
      const Real* const numbers = cells + row.numbers[k] * row.stride + place;
      s[k] = numbers[0], seen[k] = numbers[1];
      if (first) gains[k] = static_cast<Real>(1.0 - last_of(numbers + 2) * rate);
    }
    compute(row.x, n, h, static_cast<Real>(inverse_of_common()), s, seen, u_.data(),
            ratios_.data());
    if (first)
      for (std::size_t k = 0; k < n; ++k) gains[k] = gain(gains[k]);
    if (h > 0)
      for (std::size_t k = 0; k < n; ++k) {
        Real* const numbers = cells + row.numbers[k] * row.stride + place;
        numbers[0] = s[k], numbers[1] = seen[k];
        if (first) std::memcpy(numbers + 2, &now, sizeof now);
      }
    double own = 0.0, common = 0.0;
    for (std::size_t from = 0; from < n; from += 4096) {
      const std::size_t to = std::min<std::size_t>(n, from + 4096);
      Pack<Real> owns = Pack<Real>::all(0), commons = owns;
      for (std::size_t k = from; k < to; k += pack_size) {
        const Pack<Real> u = values_at(u_.data(), k, to), v = u * values_at(ratios_.data(), k, to);
        owns += u * u, commons += v * v;
      }
      own += owns.total(), common += commons.total();
    }
    return {own, common};
  }

  static void compute(const Real* __restrict x, std::size_t n, Real h, Real inverse,
                      Real* __restrict scales, Real* __restrict counts, Real* __restrict u,
                      Real* __restrict ratios) {
    for (std::size_t k = 0; k < n; ++k) {
      const Real size = std::fabs(x[k]), weight = size > 0 ? h : Real(0);
      const Real seen = counts[k] + weight;
      const Real rows = seen < most_counted ? seen : most_counted;
      const Real part = weight < rows ? weight / rows : size > 0 ? Real(1) : Real(0);
      const Real s = scales[k] + part * (size - scales[k]);
      const Real scale = s > 0 ? s : Real(1);
      scales[k] = s, counts[k] = seen;
      u[k] = x[k] / scale, ratios[k] = scale * inverse;
    }
  }

  RowMeans rows_;
  double sum_ = 0.0, values_ = 0.0;                       // of |x|, and of values that are not 0
  std::vector<Real> u_, ratios_, gains_, scales_, seen_;  // of the row
};

}  // namespace thresher::one_pass
