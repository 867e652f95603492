// Learning in rounds whose results are combined with those of others.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace bindings {

namespace {

using thresher::Learner;

std::span<const std::byte> span_of(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()};
}
nb::bytes bytes_of(const std::vector<std::byte>& bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
std::span<const double> span_of(const Doubles& numbers) {
  return {numbers.data(), numbers.shape(0)};
}
std::span<const std::uint64_t> span_of(const Keys& keys) { return {keys.data(), keys.shape(0)}; }

}  // namespace

void bind_rounds(nb::class_<Learner>& learner) {
  learner
      .def_prop_ro(
          "shares", [](const Learner& self) { return self.shares(); },
          "Numbers of a feature that are combined; 0 where the rule cannot be averaged.")
      .def(
          "clock",
          [](const Learner& self) {
            return bytes_of(locked<Shared>(self, [&] { return self.clock(); }));
          },
          "Return the numbers that are not of a feature; nothing is owed.")
      .def(
          "set_clock",
          [](Learner& self, const nb::bytes& clock) {
            const auto bytes = span_of(clock);
            locked<Unique>(self, [&] { self.set_clock(bytes); });
          },
          "clock"_a, "Go on from a clock, with weights as they are at the beginning of a round.")
      .def(
          "begin_round", [](Learner& self) { locked<Unique>(self, [&] { self.begin_round(); }); },
          "Count updates from here on, and keep what they change.")
      .def(
          "end_round",
          [](Learner& self) {
            auto found = locked<Unique>(self, [&] { return self.end_round(); });
            return std::tuple(owned_array(std::move(found.keys)),
                              owned_array(std::move(found.updates)),
                              owned_array(std::move(found.numbers)));
          },
          "Return the features that were updated, in increasing order, how often, and their\n"
          "numbers, one feature after the other; and put all weights back.")
      .def(
          "debt",
          [](const Learner& self) {
            return bytes_of(locked<Shared>(self, [&] { return self.debt(); }));
          },
          "Return what decides how weights without an update changed in the last round.")
      .def(
          "faded",
          [](const Learner& self, const nb::bytes& debt, const Doubles& numbers) {
            if (numbers.shape(0) % std::max<std::size_t>(self.shares(), 1) != 0)
              throw std::invalid_argument("numbers: as many for each feature");
            const auto bytes = span_of(debt);
            const auto given = span_of(numbers);
            std::vector<double> changed(given.begin(), given.end());
            locked<Shared>(self, [&] { self.fade(bytes, changed); });
            return owned_array(std::move(changed));
          },
          "debt"_a, "numbers"_a,
          "Return what numbers have become by the end of a round without an update; of an empty\n"
          "debt, as weights keep them.")
      .def(
          "adopt",
          [](Learner& self, const Keys& keys, const Doubles& numbers) {
            const auto where = span_of(keys);
            const auto what = span_of(numbers);
            locked<Unique>(self, [&] { self.adopt(where, what); });
          },
          "keys"_a, "numbers"_a, "Between rounds: take the combined numbers of features.")
      .def(
          "nonzeros_at",
          [](const Learner& self, const nb::bytes& clock, const Doubles& numbers, bool average) {
            const auto bytes = span_of(clock);
            const auto what = span_of(numbers);
            return locked<Shared>(self, [&] { return self.nonzeros_at(bytes, what, average); });
          },
          "clock"_a, "numbers"_a, "average"_a,
          "Count the features whose weight is not zero at a clock, of those with these numbers.")
      .def(
          "bias_share",
          [](const Learner& self) {
            return owned_array(locked<Shared>(self, [&] { return self.bias_share(); }));
          },
          "Return the numbers of the intercept that are combined.")
      .def(
          "adopt_bias",
          [](Learner& self, const Doubles& numbers) {
            const auto what = span_of(numbers);
            locked<Unique>(self, [&] { self.adopt_bias(what); });
          },
          "numbers"_a, "Take the combined numbers of the intercept.")
      .def(
          "settle_down",
          [](Learner& self, const Keys& keys, const Doubles& numbers, std::int64_t rows,
             double weight, double loss) {
            const auto where = span_of(keys);
            const auto what = span_of(numbers);
            const thresher::Tally tally(rows, weight, loss, 1.0);
            locked<Unique>(self, [&] { self.settle_down(where, what, tally); });
          },
          "keys"_a, "numbers"_a, "rows"_a, "weight"_a, "loss"_a,
          "After the last round: take the whole model, and go on alone from the clock.");
}

}  // namespace bindings
