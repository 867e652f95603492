// What a rule is. A rule owns the state of one coordinate, its Cell (zero bytes mean: never seen),
// and the clock all cells share. The learner (learner.hpp) takes it through a row so:
//
//   open(row, k, cell)        the cell of the row's k-th feature goes into the rule's staging arrays
//   forward(row, x, n)        pays what is owed, and returns the inner product with x
//   prediction(dot)           the raw prediction p
//   backward(row, g, x, n)    the step, for the loss gradient g * x; a non-finite return is divergence
//   close(row, k)             the new cell of the k-th feature
//   finish(g)                 the intercept steps, the clock ticks
//
// open, forward and close are the inner loops: open and close run once a coordinate between two
// memory accesses and are inlined there; forward and backward are plain loops over arrays, which
// compilers turn into SIMD. Where g = 0 only finish is called: no cell changes.
//
// `weight` and `average` read a cell as it stands now, with everything paid, and write nothing: who
// looks never changes what is seen (DESIGN 2, R-6.15).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

namespace thresher {

// The parameters of a rule, by the names of the Python table (src/thresher/rules.py).
class Params {
 public:
  Params(std::map<std::string, double> numbers, std::map<std::string, std::string> words)
      : numbers_(std::move(numbers)), words_(std::move(words)) {}

  double number(const std::string& name) const { return at(numbers_, name); }
  const std::string& word(const std::string& name) const { return at(words_, name); }
  bool flag(const std::string& name) const { return number(name) != 0.0; }
  double number(const std::string& name, double otherwise) const {
    return numbers_.contains(name) ? number(name) : otherwise;
  }

 private:
  template <class Value>
  static const Value& at(const std::map<std::string, Value>& values, const std::string& name) {
    const auto found = values.find(name);
    if (found == values.end()) throw std::invalid_argument("the parameter '" + name + "' is missing");
    return found->second;
  }

  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> words_;
};

template <class R>
concept Rule = requires(R rule, const R& fixed, typename R::Row& row, const typename R::Cell& cell,
                        const typename R::Real* x, std::size_t n, double number) {
  { row.resize(n) };
  { fixed.open(row, n, cell) };
  { rule.forward(row, x, n) } -> std::same_as<double>;
  { fixed.prediction(number) } -> std::same_as<double>;
  { rule.backward(row, number, x, n) } -> std::same_as<double>;
  { fixed.close(row, n) } -> std::same_as<typename R::Cell>;
  { rule.finish(number) };
  { rule.next_pass() };
  { fixed.weight(cell) } -> std::same_as<double>;
  { fixed.average(cell) } -> std::same_as<double>;
  { fixed.intercept() } -> std::same_as<double>;
  { fixed.average_intercept() } -> std::same_as<double>;
  { fixed.dead(cell) } -> std::same_as<bool>;    // the cell may be forgotten
  { fixed.sweep_due() } -> std::same_as<bool>;   // at steps fixed by the clock alone
  { fixed.settled(cell) } -> std::same_as<typename R::Cell>;
  { rule.begin_again() };                        // after a sweep: nothing is owed
  { fixed.rate() } -> std::same_as<double>;      // of the step before, for the history
  { fixed.advice(number) } -> std::same_as<std::string>;
};

}  // namespace thresher
