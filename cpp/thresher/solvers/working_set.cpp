#include "thresher/solvers/working_set.hpp"

#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

double WorkingSet::weigh(std::span<const double> h, std::span<const double> v, double total,
                         std::span<const double> least) {
  double largest = 0.0;
  for (std::size_t at = 0; at < size(); ++at) {
    double square = 0.0, sum = 0.0, slope = 0.0;
    for (std::size_t k = starts[at]; k < starts[at + 1]; ++k) {
      hx[k] = h[rows[k]] * x[k];
      sum += hx[k], square += hx[k] * x[k], slope += v[rows[k]] * x[k];
    }
    sums[at] = sum;
    if (total > 0) square -= sum * sum / total;
    curvature[at] = std::max(square, least[features[at]]);
    largest = std::max(largest, std::fabs(slope));
  }
  return largest;
}

double WorkingSet::solve_dense(std::span<const double> r, double shift, double total, double l1,
                               double still) {
  constexpr int most_scans = 2000;  // a scan costs a square of the number of columns
  const std::size_t m = moves.size();
  std::vector<double> H(m * m), g(m), dense(r.size(), 0.0);
  for (std::size_t a = 0; a < m; ++a) {
    const std::size_t at = moves[a];
    g[a] = dot(at, r.data()) + shift * sums[at];
    for (std::size_t k = starts[at]; k < starts[at + 1]; ++k) dense[rows[k]] = hx[k];
    for (std::size_t c = 0; c < a; ++c) {
      double entry = dot(moves[c], dense.data());
      if (total > 0) entry -= sums[at] * sums[moves[c]] / total;
      H[a * m + c] = H[c * m + a] = entry;
    }
    H[a * m + a] = curvature[at];
    for (std::size_t k = starts[at]; k < starts[at + 1]; ++k) dense[rows[k]] = 0.0;
  }
  for (int scan = 0; scan < most_scans; ++scan) {
    double lowered = 0.0;
    for (std::size_t a = 0; a < m; ++a) {
      const std::size_t at = moves[a];
      const double before = w[at] + d[at], h = H[a * m + a];
      const double change = soft(before - g[a] / h, l1 / h) - before;
      if (change == 0.0) continue;
      d[at] += change;
      if (total > 0) shift -= change * sums[at] / total;
      for (std::size_t c = 0; c < m; ++c) g[c] += change * H[a * m + c];
      lowered += 0.5 * h * change * change;
    }
    if (lowered <= still) break;
  }
  return shift;
}

}  // namespace thresher
