// A group of lanes that see the same rows, and whose learning rates differ only by a factor. So all
// lanes of a group have the same pending events, up to one factor per lane.
//
// The numbers of lanes are stored by slot, in the order of the lines of a cell. A slot without a
// lane has parameters that keep it at zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher::lanes {

// The positions of a group's lanes in the lines of a cell.
class Slots {
 public:
  // `stamped`: a cell has a stamp for the group. The stamp takes the last slot of a line. If that
  // would need another line, it is stored with the stamps of the cell.
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
  std::size_t size() const { return size_of_number(number_); }  // slots per line
  std::size_t number() const { return number_; }                // index of that size in a table
  std::size_t lines() const { return lines_; }
  std::size_t count() const { return lines_ * size(); }  // number of slots
  std::size_t padded() const { return (count() + widest - 1) / widest * widest; }
  bool inside() const { return inside_; }
  bool outside() const { return outside_; }
  std::size_t numbers() const { return numbers_; }  // per cell, without a stamp outside
  std::size_t slot(std::size_t lane) const { return lane / weights_ * size() + lane % weights_; }

  // Sets the position of the group's numbers in a cell, and of its stamp among the stamps.
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

// A group of any rule. LineLanes makes a few virtual calls per row, so that its loop over rows is
// compiled once for all rules.
template <class Real>
class Group {
 public:
  virtual ~Group() = default;
  virtual std::unique_ptr<Group> copy() const = 0;

  virtual Slots& slots() = 0;
  virtual const Slots& slots() const = 0;

  // ---- a step, in this order ------------------------------------------------------------------

  // Computes the inner products of all slots with a row, and the predictions; `scale` multiplies
  // the row.
  virtual void open(const RowOfCells<Real>& row, double scale, double* dot, double* p) = 0;
  // Takes the squared norm of the row. Returns a bound: if |g| rates()[slot] is below it, a step
  // with a gradient of norm |g| `norm` leaves all numbers finite.
  virtual double see(double squared_norm, double norm) = 0;
  // Computes for all slots how far a slope of 1 can move the prediction, as Rule::reach.
  virtual void reach(double squared_norm, double* reach) const = 0;
  virtual const double* rates() const = 0;
  // Makes the step of all weights for the slopes g. Not called if all slopes are 0.
  virtual void close(const RowOfCells<Real>& row, const double* g, double scale) = 0;
  // Makes the step of the intercepts and advances the clock. Returns whether a sweep is due: then
  // the caller calls settle for all cells, and end_sweep.
  virtual bool finish(const double* g) = 0;
  virtual void settle(const Cell<Real>& cell) = 0;
  virtual void end_sweep() = 0;

  virtual void next_pass() = 0;

  // ---- reading: changes nothing ---------------------------------------------------------------

  virtual void predict(const RowOfCells<Real>& row, double scale, bool average, double* dot,
                       double* p) const = 0;
  virtual void read(const Cell<Real>& cell, bool average, double* w) const = 0;  // weights by slot
  // Counts the nonzero weights of some cells, by slot; false: it cannot, and read() must be used.
  virtual bool count(const RowOfCells<Real>& cells, bool average, double* counts) const = 0;
  virtual bool dead(const Cell<Real>& cell) const = 0;
  virtual bool valid(const Cell<Real>& cell) const = 0;
  virtual double intercept(std::size_t slot, bool average) const = 0;
  virtual double rate(std::size_t slot) const = 0;
  virtual std::string advice(double safe_rate) const = 0;

  virtual void archive(Saver& io) = 0;
  virtual void archive(Restorer& io) = 0;
  virtual std::uint64_t signature() const = 0;
};

// The group of one rule, from a class of lanes such as TruncatedLanes.
template <class RuleLanes>
class GroupOf final : public Group<typename RuleLanes::Real> {
  using Real = typename RuleLanes::Real;

 public:
  explicit GroupOf(RuleLanes lanes) : lanes_(std::move(lanes)) {}
  std::unique_ptr<Group<Real>> copy() const override { return std::make_unique<GroupOf>(lanes_); }

  Slots& slots() override { return lanes_.slots(); }
  const Slots& slots() const override { return lanes_.slots(); }

  void open(const RowOfCells<Real>& row, double scale, double* dot, double* p) override {
    lanes_.open(row, dot);
    lanes_.predict(dot, scale, false, p);
  }
  double see(double squared_norm, double norm) override {
    lanes_.see(squared_norm);
    return RuleLanes::largest / (lanes_.pace() * norm);
  }
  void reach(double squared_norm, double* reach) const override {
    for (std::size_t lane = 0; lane < slots().lanes(); ++lane)
      reach[slots().slot(lane)] = lanes_.reach(lane, squared_norm);
  }
  const double* rates() const override { return lanes_.rates(); }
  void close(const RowOfCells<Real>& row, const double* g, double scale) override {
    lanes_.close(row, g, scale);
  }
  bool finish(const double* g) override {
    lanes_.finish(g);
    return lanes_.sweep_due();
  }
  void settle(const Cell<Real>& cell) override { lanes_.settle(cell); }
  void end_sweep() override { lanes_.begin_again(); }
  void next_pass() override { lanes_.next_pass(); }

  void predict(const RowOfCells<Real>& row, double scale, bool average, double* dot,
               double* p) const override {
    lanes_.look(row, average, dot);
    lanes_.predict(dot, scale, average, p);
  }
  void read(const Cell<Real>& cell, bool average, double* w) const override {
    lanes_.read(cell, average, w);
  }
  bool count(const RowOfCells<Real>& cells, bool average, double* counts) const override {
    if constexpr (requires { lanes_.count(cells, average, counts); })
      return lanes_.count(cells, average, counts);
    else return false;
  }
  bool dead(const Cell<Real>& cell) const override { return lanes_.dead(cell); }
  bool valid(const Cell<Real>& cell) const override { return lanes_.valid(cell); }
  double intercept(std::size_t slot, bool average) const override {
    return lanes_.intercept(slot, average);
  }
  double rate(std::size_t slot) const override { return lanes_.rate(slot); }
  std::string advice(double safe_rate) const override { return lanes_.advice(safe_rate); }

  void archive(Saver& io) override { lanes_.archive(io); }
  void archive(Restorer& io) override { lanes_.archive(io); }
  std::uint64_t signature() const override { return signature_of<RuleLanes>(); }

 private:
  RuleLanes lanes_;
};

// How lanes of a rule share lines; part of the rule's registration (core/registry.hpp).
struct LineRule {
  bool (*joins)(const Params&);          // whether a lane with these parameters can share a line
  std::string (*common)(const Params&);  // equal for all lanes of a group
  std::size_t lanes_per_part;            // in a dense store: four lines, for any number type
  template <class Real>
  using Make = std::unique_ptr<Group<Real>> (*)(const std::vector<const Params*>& lanes,
                                                const Table<Real>& table);
  Make<float> make_float32;
  Make<double> make_float64;

  template <class Real>
  Make<Real> make() const {
    if constexpr (sizeof(Real) == 4) return make_float32;
    else return make_float64;
  }
};

template <class RuleLanes>
std::unique_ptr<Group<typename RuleLanes::Real>> make_group(
    const std::vector<const Params*>& lanes, const Table<typename RuleLanes::Real>& table) {
  return std::make_unique<GroupOf<RuleLanes>>(RuleLanes(lanes, table));
}

template <template <class> class RuleLanes>
inline constexpr LineRule in_lines{RuleLanes<double>::joins, RuleLanes<double>::common,
                                   RuleLanes<double>::lanes_per_part, make_group<RuleLanes<float>>,
                                   make_group<RuleLanes<double>>};

}  // namespace thresher::lanes
