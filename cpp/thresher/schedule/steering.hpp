// When gravity is set anew for a wanted number of nonzero weights: eight times while the number of steps
// doubles, at steps fixed by the clock alone. Looking at all weights costs more than many steps, so the
// looks become rare.
#pragma once

#include <bit>
#include <cstdint>

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
  double target_;  // 0: none
};

}  // namespace thresher
