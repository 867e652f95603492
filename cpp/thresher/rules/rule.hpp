// What a rule is. A rule owns the state of one coordinate, its Cell (zero bytes mean: never seen),
// and the clock all cells share. The learner (core/rule_learner.hpp) takes it through a row so:
//
//   with_opener(row, use)     calls use(open). open(k, cells, x) takes the cells of four features, k to
//                             k + 3, and their values: it pays what is owed, keeps in `row` what the
//                             step will need, and returns the four terms of the inner product.
//                             Behind the end of the row the last cell is repeated, with x = 0
//   prediction(row, dot)      the raw prediction p
//   with_closer(row, g, use)  calls use(close). close(k, x, cells) makes the step for the loss gradient
//                             g * x: the four new cells
//   finish(g)                 the intercept steps, the clock ticks
//
// open and close are made once a row, for what the rule has to do in that row and no more, and are
// inlined between the memory accesses of the store. Where g = 0 only finish is called: no cell changes.
//
// Some rules do more: `facts()` are numbers for certificates, `blame(row)` is told of each row that made
// an update, `pausing()` asks the learner to return after this row, `steer(each)` sets gravity for a wanted
// number of nonzero weights when `steering_due()`, looking at each cell, and `planted` and `centred_at` make
// cells to begin with. A rule that `certifies()` is charged with the `pulls` of a cell when it is written:
// it charges itself in with_closer, and the learner does at a sweep; facts(owed) adds those still owed.
//
// What a rule gives to be averaged with others is told in averaging/round.hpp.
//
// `weight` and `average` read a cell as it stands now, with everything paid, and write nothing: who
// looks never changes what is seen.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "thresher/core/pack.hpp"

namespace thresher {

// The parameters of a rule, by the names of the Python table (src/thresher/rules.py).
class Params {
 public:
  Params(std::map<std::string, double> numbers, std::map<std::string, std::string> words)
      : numbers_(std::move(numbers)), words_(std::move(words)) {}

  bool operator==(const Params&) const = default;

  double number(const std::string& name) const { return at(numbers_, name); }
  const std::string& word(const std::string& name) const { return at(words_, name); }
  bool flag(const std::string& name) const { return number(name) != 0.0; }

  // The same with other numbers.
  Params with(const std::map<std::string, double>& others) const {
    Params changed = *this;
    for (const auto& [name, value] : others) changed.numbers_[name] = value;
    return changed;
  }
  double number(const std::string& name, double otherwise) const {
    return numbers_.contains(name) ? number(name) : otherwise;
  }

 private:
  template <class Value>
  static const Value& at(const std::map<std::string, Value>& values, const std::string& name) {
    const auto found = values.find(name);
    if (found == values.end())
      throw std::invalid_argument("the parameter '" + name + "' is missing");
    return found->second;
  }

  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> words_;
};

template <class R>
concept Rule = requires(R rule, const R& fixed, typename R::Row& row, const typename R::Cell& cell,
                        std::size_t n, double number) {
  { row.resize(n) };
  {
    fixed.with_opener(row, [](const auto&) {})
  };
  { rule.prediction(row, number) } -> std::same_as<double>;
  {
    rule.with_closer(row, number, [](const auto&) {})
  };
  { rule.see(number, number) };  // the squared norm of the row and its weight, before the step
  { rule.finish(number) };
  {
    fixed.fits(number)
  } -> std::same_as<bool>;  // a gradient of this norm leaves all numbers of a cell finite
  { rule.next_pass() };
  { fixed.weight(cell) } -> std::same_as<double>;
  { fixed.average(cell) } -> std::same_as<double>;
  { fixed.intercept() } -> std::same_as<double>;
  { fixed.average_intercept() } -> std::same_as<double>;
  { fixed.valid(cell) } -> std::same_as<bool>;  // may follow from the clock; for restoring
  { fixed.dead(cell) } -> std::same_as<bool>;   // the cell may be forgotten
  { fixed.sweep_due() } -> std::same_as<bool>;  // at steps fixed by the clock alone
  { fixed.settled(cell) } -> std::same_as<typename R::Cell>;
  { rule.begin_again() };                             // after a sweep: nothing is owed
  { R::shares } -> std::convertible_to<std::size_t>;  // numbers a feature, see averaging/round.hpp
  { fixed.rate() } -> std::same_as<double>;           // of the last step
  { fixed.advice(number) } -> std::same_as<std::string>;
};

}  // namespace thresher
