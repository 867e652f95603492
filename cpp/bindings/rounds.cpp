// Training in rounds for Python: the results of several learners are averaged.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace bindings {

namespace {

using thresher::Learner;
using thresher::RoundLearner;

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

// Calls f(rounds) under the learner's lock. Throws if the rule cannot be averaged.
template <class F>
auto reading(const Learner& learner, F&& f) {
  const auto& rounds = thresher::require<RoundLearner>(learner);
  return locked<Shared>(learner, [&] { return f(rounds); });
}
template <class F>
auto changing(Learner& learner, F&& f) {
  auto& rounds = thresher::require<RoundLearner>(learner);
  return locked<Unique>(learner, [&] { return f(rounds); });
}

}  // namespace

void bind_rounds(nb::class_<Learner>& learner) {
  learner
      .def_prop_ro(
          "numbers_per_feature",
          [](const Learner& self) {
            const auto* rounds = dynamic_cast<const RoundLearner*>(&self);
            return rounds ? rounds->numbers_per_feature() : 0;
          },
          "How many numbers per feature are averaged; 0 if the rule cannot be averaged.")
      .def(
          "clock",
          [](const Learner& self) {
            return bytes_of(reading(self, [](const RoundLearner& r) { return r.clock(); }));
          },
          "Return all numbers that do not belong to a feature, without pending events.")
      .def(
          "set_clock",
          [](Learner& self, const nb::bytes& clock) {
            const auto bytes = span_of(clock);
            changing(self, [&](RoundLearner& r) { r.set_clock(bytes); });
          },
          "clock"_a, "Continue from a clock; weights stay as at the start of a round.")
      .def(
          "begin_round",
          [](Learner& self) { changing(self, [](RoundLearner& r) { r.begin_round(); }); },
          "Count updates from now on, and remember the weights that they change.")
      .def(
          "end_round",
          [](Learner& self) {
            auto found = changing(self, [](RoundLearner& r) { return r.end_round(); });
            return std::tuple(owned_array(std::move(found.keys)),
                              owned_array(std::move(found.updates)),
                              owned_array(std::move(found.numbers)));
          },
          "Return the updated features in increasing order, their numbers of updates, and their\n"
          "averaged numbers, feature by feature. Reset all weights to the start of the round.")
      .def(
          "pending",
          [](const Learner& self) {
            return bytes_of(reading(self, [](const RoundLearner& r) { return r.pending(); }));
          },
          "Return the events of the last round, to apply to weights without an update.")
      .def(
          "apply_pending",
          [](const Learner& self, const nb::bytes& pending, const Doubles& numbers) {
            const auto bytes = span_of(pending);
            const auto given = span_of(numbers);
            std::vector<double> changed(given.begin(), given.end());
            reading(self, [&](const RoundLearner& r) { r.apply_pending(bytes, changed); });
            return owned_array(std::move(changed));
          },
          "pending"_a, "numbers"_a,
          "Return the numbers of features without an update at the end of a round. If `pending` "
          "is\n"
          "empty, only round them to the dtype.")
      .def(
          "set_numbers",
          [](Learner& self, const Keys& keys, const Doubles& numbers) {
            const auto where = span_of(keys);
            const auto what = span_of(numbers);
            changing(self, [&](RoundLearner& r) { r.set_numbers(where, what); });
          },
          "keys"_a, "numbers"_a, "Set the averaged numbers of features; call it between rounds.")
      .def(
          "nonzeros_at",
          [](const Learner& self, const nb::bytes& clock, const Doubles& numbers, bool average) {
            const auto bytes = span_of(clock);
            const auto what = span_of(numbers);
            return reading(
                self, [&](const RoundLearner& r) { return r.nonzeros_at(bytes, what, average); });
          },
          "clock"_a, "numbers"_a, "average"_a,
          "Count the features with these numbers whose weight is not zero at a clock.")
      .def(
          "intercept_numbers",
          [](const Learner& self) {
            return owned_array(
                reading(self, [](const RoundLearner& r) { return r.intercept_numbers(); }));
          },
          "Return the averaged numbers of the intercept.")
      .def(
          "set_intercept_numbers",
          [](Learner& self, const Doubles& numbers) {
            const auto what = span_of(numbers);
            changing(self, [&](RoundLearner& r) { r.set_intercept_numbers(what); });
          },
          "numbers"_a, "Set the averaged numbers of the intercept.")
      .def(
          "finish_rounds",
          [](Learner& self, const Keys& keys, const Doubles& numbers, std::int64_t rows,
             double weight, double loss) {
            const auto where = span_of(keys);
            const auto what = span_of(numbers);
            const thresher::Tally tally(rows, weight, loss, 1.0);
            changing(self, [&](RoundLearner& r) { r.finish_rounds(where, what, tally); });
          },
          "keys"_a, "numbers"_a, "rows"_a, "weight"_a, "loss"_a,
          "Set the whole model after the last round; then train without rounds.");
}

}  // namespace bindings
