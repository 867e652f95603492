// In a round (averaging/round.hpp) sums over steps are kept in units of the steps before it, so that cells begin it the
// same whatever the clock is. Alone, a unit is 1 and changes no bit.
#pragma once

namespace thresher {

struct RoundUnit {
  double unit = 1.0, part = 1.0;  // and 1 / unit: loops over rows and coordinates do not divide

  void begin(double steps) { unit = steps, part = 1.0 / steps; }

  template <class Archive>
  void archive(Archive& io) {
    io(unit), io(part);
  }
};

}  // namespace thresher
