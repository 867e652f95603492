// In a round (averaging/round.hpp) a cell keeps sums over steps divided by `steps`, the number of
// steps before the round: then a cell at the start of a round does not depend on the clock. Outside
// rounds `steps` is 1 and changes no bit.
#pragma once

namespace thresher {

struct RoundUnit {
  double steps = 1.0, inverse = 1.0;  // and 1 / steps, so that loops do not divide

  void begin(double steps_before) { steps = steps_before, inverse = 1.0 / steps; }

  template <class Archive>
  void archive(Archive& io) {
    io(steps), io(inverse);
  }
};

}  // namespace thresher
