// Lanes that share a clock: they see the same rows, at rates of the same shape, so that what they owe is the
// same but for a factor of each lane.
//
// Numbers of lanes are kept slot by slot, as they lie in the lines of a cell. A slot without a lane has
// parameters that keep it at zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "thresher/lanes/kernels.hpp"

namespace thresher::lanes {

class Slots {
 public:
  // `stamped`: a cell has a stamp for the group. It takes the last slot of a line, or, where that would
  // need another line, a place among the stamps of the cell.
  Slots(std::size_t lanes, bool stamped, std::size_t numbers_a_lane) : lanes_(lanes) {
    const std::size_t most = widest / numbers_a_lane;
    const auto lines = [&](std::size_t weights) { return (lanes + weights - 1) / weights; };
    inside_ = stamped && (lanes < most || lines(most - 1) == lines(most));
    number_ = lanes + inside_ <= most ? size_number(lanes + inside_) : size_number(most);
    weights_ = size() - inside_;
    lines_ = lines(weights_);
    numbers_ = lines_ * size() * numbers_a_lane;
    outside_ = stamped && !inside_;
    line_ = size() * numbers_a_lane;
  }

  std::size_t lanes() const { return lanes_; }
  std::size_t size() const { return size_of_number(number_); }  // slots of a line
  std::size_t number() const { return number_; }                // of that size in a table
  std::size_t lines() const { return lines_; }
  std::size_t count() const { return lines_ * size(); }  // of slots
  std::size_t padded() const { return (count() + widest - 1) / widest * widest; }
  bool inside() const { return inside_; }
  bool outside() const { return outside_; }
  std::size_t numbers() const { return numbers_; }  // of a cell, without the stamp outside
  std::size_t slot(std::size_t lane) const { return lane / weights_ * size() + lane % weights_; }

  // Where the group's numbers are in a cell, and its stamp among the stamps.
  void lay(std::size_t at, std::size_t stamp) { at_ = at, stamp_ = stamp; }
  std::size_t line(std::size_t i) const { return at_ + i * line_; }
  std::size_t stamp() const { return stamp_; }
  template <class Real>
  Real* stamp_of(const Cell<Real>& cell, std::size_t i) const {  // of line i
    return inside_ ? cell.numbers + line(i) + size() - 1 : cell.stamps + stamp_;
  }

  // The parameters f(lane) of all lanes, by slot; `otherwise` in empty slots.
  template <class T, class F>
  std::vector<T> spread(T otherwise, F&& f) const {
    std::vector<T> values(padded(), otherwise);
    for (std::size_t lane = 0; lane < lanes_; ++lane) values[slot(lane)] = static_cast<T>(f(lane));
    return values;
  }

 private:
  std::size_t lanes_, number_ = 0, weights_ = 0, lines_ = 0, numbers_ = 0, line_ = 0;
  std::size_t at_ = 0, stamp_ = 0;
  bool inside_ = false, outside_ = false;
};

}  // namespace thresher::lanes
