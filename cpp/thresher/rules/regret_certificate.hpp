// The sums of the regret certificate of truncated gradient:
//
//   pull sum        sum over truncations i of g_i ||w_{i+1}||_1
//   squared radius  the largest ||x||^2
//
// A truncation changes all weights, while a cell is only written when a row has its feature.
// Between two writes a weight v adds K g ((|v| - a) + (|v| - 2a) + ...) until it reaches zero, a =
// eta K g. This has a closed form, pulls(), and is added when the cell is next written. The
// closed form needs truncation without ceiling, l2 and averages, at a constant rate; otherwise no
// certificate is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace thresher {

class RegretCertificate {
 public:
  explicit RegretCertificate(bool kept) : kept_(kept) {}

  bool kept() const { return kept_; }

  void see(double squared_norm) {
    if (kept_) radius_ = std::max(radius_, squared_norm);
  }
  void charge(double pulls) { pulls_ += pulls; }

  // The sum that a weight v adds in `events` truncations: each subtracts a from |v|, and then adds
  // `strength` times |v|.
  static double pulls(double strength, double v, double a, std::uint64_t events) {
    const double size = std::fabs(v);
    if (size == 0.0 || a == 0.0) return 0.0;
    const double n = std::min(static_cast<double>(events), std::ceil(size / a) - 1.0);
    return strength * n * (size - 0.5 * (n + 1.0) * a);
  }

  // `pending`: the pulls that were not added yet by charge().
  std::map<std::string, double> facts(double pending, double gravity_sum) const {
    if (!kept_) return {};
    return {
        {"pull_sum", pulls_ + pending}, {"gravity_sum", gravity_sum}, {"squared_radius", radius_}};
  }

  template <class Archive>
  void archive(Archive& io) {
    io(pulls_), io(radius_);
  }

 private:
  bool kept_;
  double pulls_ = 0.0, radius_ = 0.0;
};

}  // namespace thresher
