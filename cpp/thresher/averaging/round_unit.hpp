// In a round (averaging/round.hpp) a cell keeps sums over steps divided by `unit`, the number of steps
// before the round: then a cell at the start of a round does not depend on the clock. Outside rounds
// the unit is 1 and changes no bit.
#pragma once

namespace thresher {

struct RoundUnit {
  double unit = 1.0, inverse = 1.0;  // 1 / unit, so that loops do not divide

  void begin(double steps) { unit = steps, inverse = 1.0 / steps; }

  template <class Archive>
  void archive(Archive& io) {
    io(unit), io(inverse);
  }
};

}  // namespace thresher
