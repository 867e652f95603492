// Steering: setting the penalty for a wanted number of nonzero weights (target_nnz).
//
// To steer, a rule reads all its weights, which costs more than many steps. So it steers eight
// times while the number of steps doubles, at steps that depend on the number of steps alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace thresher {

class Steering {
 public:
  explicit Steering(double target) : target_(target) {}

  bool wanted() const { return target_ > 0; }
  double target() const { return target_; }

  bool due(std::int64_t t) const {
    if (!wanted() || t < 64) return false;
    const auto steps = static_cast<std::uint64_t>(t);
    return steps % (std::bit_floor(steps) / 8) == 0;
  }

 private:
  double target_;  // 0: no steering
};

// The gravity of truncated gradient. It rises while there are more nonzero weights than wanted, and
// falls while there are fewer, within a factor of ten of the given gravity: a larger change would
// shrink the important weights as much as the others. If too many weights are left, reading the
// model drops the smallest; so the goal here is a quarter more than wanted.
//
// The weights are counted just after a truncation: before it, every feature seen since the last one
// can have a nonzero weight.
class SteeredGravity {
 public:
  SteeredGravity(double gravity, double target)
      : given_(gravity), gravity_(gravity), steering_(target) {}

  double now() const { return gravity_; }
  bool wanted() const { return steering_.wanted(); }

  void count_step(std::int64_t t) { due_ = due_ || steering_.due(t); }
  bool due() const { return due_; }  // at the next truncation

  void steer(double nonzeros) {
    due_ = false;
    const double ratio = (nonzeros + 1.0) / (1.25 * steering_.target() + 1.0);
    gravity_ =
        std::clamp(gravity_ * std::clamp(std::sqrt(ratio), 0.7, 1.5), given_ / 10, given_ * 10);
  }

  template <class Archive>
  void archive(Archive& io) {
    io(gravity_), io(due_);
  }

 private:
  double given_, gravity_;
  Steering steering_;
  bool due_ = false;
};

// The l1 of a rule whose weight is nonzero if its number z has |z| > l1. To leave n nonzero
// weights, l1 is set to the (n + 1)-th largest |z|, but never below the given l1.
template <class Real>
class SteeredThreshold {
 public:
  SteeredThreshold(Real least, double target) : least_(least), l1_(least), steering_(target) {}

  Real now() const { return l1_; }
  bool wanted() const { return steering_.wanted(); }
  bool due(std::int64_t t) const { return steering_.due(t); }

  // `sizes`: |z| of all features.
  void steer(std::vector<Real> sizes) {
    l1_ = least_;
    if (static_cast<double>(sizes.size()) <= steering_.target()) return;
    const auto first_too_many = sizes.begin() + static_cast<std::ptrdiff_t>(steering_.target());
    std::nth_element(sizes.begin(), first_too_many, sizes.end(), std::greater<Real>());
    l1_ = std::max(least_, *first_too_many);
  }

  template <class Archive>
  void archive(Archive& io) {
    io(l1_);
  }

 private:
  Real least_, l1_;
  Steering steering_;
};

}  // namespace thresher
