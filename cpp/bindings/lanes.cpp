// Lanes: many models trained in one pass over the rows.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/core/error.hpp"
#include "thresher/lanes/labels.hpp"
#include "thresher/lanes/lanes.hpp"
#include "thresher/lanes/scores.hpp"

namespace bindings {

using namespace nb::literals;
using Lanes = thresher::GrowingLanes;
using thresher::Told;

namespace {

using Seen = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Scaled = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::ndarray<nb::numpy, double, nb::ndim<2>> owned_matrix(std::vector<double>&& values,
                                                         const thresher::Visit& visit,
                                                         std::size_t columns) {
  auto* heap = new std::vector<double>(std::move(values));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::ndarray<nb::numpy, double, nb::ndim<2>>(
      heap->data(), {static_cast<std::size_t>(visit.last - visit.first), columns}, owner);
}

using Numbers = std::vector<std::map<std::string, double>>;
using Words = std::vector<std::map<std::string, std::string>>;

std::vector<thresher::LaneSpec> specs_of(const Numbers& numbers, const Words& words,
                                         const std::vector<std::int64_t>& clocks,
                                         const std::vector<std::int64_t>& targets) {
  if (words.size() != numbers.size() || clocks.size() != numbers.size() ||
      targets.size() != numbers.size())
    throw std::invalid_argument(
        "numbers, words, clocks and targets must have one item for each lane");
  std::vector<thresher::LaneSpec> specs;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    specs.push_back({{numbers[i], words[i]}, clocks[i], targets[i]});
  return specs;
}

Told told_of(const BorrowedBatch& batch, const std::optional<Seen>& seen,
             const std::optional<std::pair<Longs, Ints>>& classes, double low,
             const std::optional<std::pair<Scaled, Scaled>>& scaled = std::nullopt) {
  Told told;
  told.low = low;
  const auto rows = static_cast<std::size_t>(batch.batch.rows);
  if (seen) {
    if (seen->shape(0) != rows)
      throw std::invalid_argument("seen must have one row for each row of the batch");
    told.seen = seen->data(), told.clocks = static_cast<std::int64_t>(seen->shape(1));
  }
  if (scaled) {
    const auto& [labels, units] = *scaled;
    const std::size_t clocks = labels.shape(1);
    if (labels.shape(0) != rows || units.shape(0) != rows || units.shape(1) != clocks ||
        (seen && seen->shape(1) != clocks))
      throw std::invalid_argument("scaled must be labels and units, each rows x clocks");
    told.labels = labels.data(), told.units = units.data();
    told.clocks = static_cast<std::int64_t>(clocks);
  }
  if (classes) {
    const auto& [starts, numbers] = *classes;
    if (starts.shape(0) != rows + 1 || starts(0) < 0 ||
        static_cast<std::size_t>(starts(rows)) > numbers.shape(0))
      throw std::invalid_argument(
          "classes must be (starts, numbers), with one more start than rows");
    for (std::size_t row = 0; row < rows; ++row)
      if (starts(row) > starts(row + 1))
        throw std::invalid_argument("classes: starts must not decrease");
    told.starts = starts.data(), told.classes = numbers.data();
  }
  return told;
}

template <class F>
auto reading(const Lanes& lanes, F&& f) {
  return locked<Shared>(lanes, f);
}
template <class F>
auto changing(Lanes& lanes, F&& f) {
  return locked<Unique>(lanes, f);
}

// Returns f(lane) of all lanes as an array.
template <class F>
auto each_lane(const Lanes& self, F&& f) {
  using T = decltype(f(std::size_t{0}));
  std::vector<T> found;
  reading(self, [&] {
    found.resize(self.count());
    for (std::size_t lane = 0; lane < found.size(); ++lane) found[lane] = f(lane);
  });
  return owned_array(std::move(found));
}

std::size_t checked(const Lanes& self, std::int64_t lane) {
  if (lane < 0 || lane >= static_cast<std::int64_t>(self.count()))
    throw std::invalid_argument("lane must be below the number of lanes");
  return static_cast<std::size_t>(lane);
}

}  // namespace

void bind_lanes(nb::module_& m) {
  nb::class_<Lanes>(m, "Lanes", "Many models, one per lane, trained on the same rows.")
      .def("__len__", &Lanes::count)
      .def(
          "learn",
          [](Lanes& self, const BorrowedBatch& batch, std::optional<Longs> order,
             std::int64_t first, std::optional<std::int64_t> last, std::optional<Seen> seen,
             std::optional<std::pair<Longs, Ints>> classes, double low, bool before,
             std::optional<std::pair<Scaled, Scaled>> scaled)
              -> std::optional<nb::ndarray<nb::numpy, double, nb::ndim<2>>> {
            if (!batch.batch.labels && !classes)
              throw std::invalid_argument("learning needs labels");
            const thresher::Visit visit = visit_of(batch, order, first, last);
            const Told told = told_of(batch, seen, classes, low, scaled);
            const BorrowedBatch held = batch;  // another thread may replace the targets
            std::vector<double> out;
            std::size_t count = 0;
            changing(self, [&] {  // count under the lock: another thread may add lanes
              count = self.count();
              if (before) out.resize(static_cast<std::size_t>(visit.last - visit.first) * count);
              self.learn(held.batch, visit, told, before ? out.data() : nullptr);
            });
            if (!before) return std::nullopt;
            return owned_matrix(std::move(out), visit, count);
          },
          "batch"_a, "order"_a.none() = nb::none(), "first"_a = 0, "last"_a.none() = nb::none(),
          "seen"_a.none() = nb::none(), "classes"_a.none() = nb::none(), "low"_a = -1.0,
          "before"_a = false, "scaled"_a.none() = nb::none(),
          "Learn in each lane the rows of order[first:last] that its clock sees. A row makes as\n"
          "many steps as its weight says.\n\n"
          "seen: uint8 array of rows x clocks, 1 if the clock sees the row; None: all rows.\n"
          "classes: (starts, numbers), the classes of each row. If the target of a lane is a "
          "class,\n"
          "its label is 1 for rows of that class, otherwise `low`. before: return the predictions\n"
          "before the steps, rows x lanes; NaN if the clock does not see the row. scaled: "
          "(labels,\n"
          "units), standardised targets of each clock and the units of their losses, rows x "
          "clocks.")
      .def(
          "next_pass", [](Lanes& self) { changing(self, [&] { self.next_pass(); }); },
          "Decay the rates, as after a pass over the data.")
      .def(
          "widen",
          [](Lanes& self, std::uint64_t width) { changing(self, [&] { self.widen(width); }); },
          "width"_a, "Accept feature numbers below a larger width from now on.")
      .def(
          "predict",
          [](const Lanes& self, const BorrowedBatch& batch, std::optional<Longs> lanes,
             std::optional<Longs> order, bool average, bool finite) {
            const thresher::Visit visit = visit_of(batch, order, 0, std::nullopt);
            const BorrowedBatch held = batch;
            std::vector<std::int64_t> wanted;
            std::vector<double> out;
            reading(self, [&] {
              if (lanes) wanted.assign(lanes->data(), lanes->data() + lanes->shape(0));
              else
                for (std::size_t i = 0; i < self.count(); ++i)
                  wanted.push_back(static_cast<std::int64_t>(i));
              for (const std::int64_t lane : wanted) checked(self, lane);
              out.resize(static_cast<std::size_t>(visit.last - visit.first) * wanted.size());
              self.predict(held.batch, visit, wanted, average, out.data());
            });
            if (finite)
              for (std::size_t i = 0; i < out.size(); ++i)
                if (!std::isfinite(out[i]))
                  throw thresher::DataError(
                      visit.row(visit.first + static_cast<std::int64_t>(i / wanted.size())),
                      "the prediction overflows");
            return owned_matrix(std::move(out), visit, wanted.size());
          },
          "batch"_a, "lanes"_a.none() = nb::none(), "order"_a.none() = nb::none(),
          "average"_a = false, "finite"_a = true,
          "Return raw predictions of these lanes (None: all) for these rows (None: all), rows x "
          "lanes.\n"
          "Raise an error if one is not finite, unless `finite` is False.")
      .def(
          "score",
          [](const Lanes& self, const BorrowedBatch& batch, Longs lanes, Longs order, Doubles truth,
             const std::string& kind, double middle, std::size_t outputs, bool average) {
            const thresher::Visit visit = visit_of(batch, order, 0, std::nullopt);
            if (truth.shape(0) != order.shape(0))
              throw std::invalid_argument("truth must have one number for each row");
            const BorrowedBatch held = batch;
            const std::span wanted(lanes.data(), lanes.shape(0));
            std::vector<double> sums(wanted.size() / std::max<std::size_t>(outputs, 1));
            reading(self, [&] {
              for (const std::int64_t lane : wanted) checked(self, lane);
              thresher::score_lanes(self, held.batch, visit, wanted, average,
                                    {kind, middle, truth.data(), outputs}, sums.data());
            });
            return owned_array(std::move(sums));
          },
          "batch"_a, "lanes"_a, "order"_a, "truth"_a, "kind"_a, "middle"_a = 0.0, "outputs"_a = 1,
          "average"_a = false,
          "Return sums over these rows for models of `outputs` adjacent lanes; NaN if a prediction "
          "is\n"
          "not finite. kind: 'hits', 'log losses' (of probabilities clipped as in scikit-learn),\n"
          "'squares' or 'absolutes'. truth: 1 or -1, or a value, or the number of the model's "
          "lane.\n"
          "A raw prediction of at least `middle` is a hit of 1.")
      .def(
          "weights",
          [](const Lanes& self, std::int64_t lane, bool average) {
            const std::size_t i = checked(self, lane);
            auto found = reading(self, [&] { return self.weights(i, average); });
            return std::pair(owned_array(std::move(found.keys)),
                             owned_array(std::move(found.values)));
          },
          "lane"_a, "average"_a = false,
          "Return the keys of a lane's nonzero weights, in increasing order, and the weights.")
      .def(
          "nonzeros",
          [](const Lanes& self, bool average) {
            return owned_array(reading(self, [&] { return self.nonzeros(average); }));
          },
          "average"_a = false)
      .def(
          "intercepts",
          [](const Lanes& self, bool average) {
            return each_lane(self, [&](std::size_t i) { return self.intercept(i, average); });
          },
          "average"_a = false)
      .def(
          "steps",
          [](const Lanes& self) {
            return each_lane(self, [&](std::size_t i) { return self.tally(i).rows(); });
          },
          "Return for each lane the number of rows learned, in all passes.")
      .def(
          "loss_sums",
          [](const Lanes& self) {
            return each_lane(self, [&](std::size_t i) { return self.tally(i).loss(); });
          },
          "Return for each lane the sum of its progressive losses times sample weights.")
      .def("weight_sums",
           [](const Lanes& self) {
             return each_lane(self, [&](std::size_t i) { return self.tally(i).weight(); });
           })
      .def("rates",
           [](const Lanes& self) {
             return each_lane(self, [&](std::size_t i) { return self.rate(i); });
           })
      .def_prop_ro(
          "divergences",
          [](const Lanes& self) {
            std::vector<std::string> found;
            reading(self, [&] {
              found.resize(self.count());
              for (std::size_t i = 0; i < found.size(); ++i) found[i] = self.divergence(i);
            });
            return found;
          },
          "Why each lane stopped; empty if it did not stop.")
      .def_prop_ro(
          "layouts",
          [](const Lanes& self) {
            std::vector<std::string> found;
            reading(self, [&] {
              for (std::size_t i = 0; i < self.count(); ++i) found.push_back(self.layout(i));
            });
            return found;
          },
          "How each lane is computed: a text per lane.")
      .def_prop_ro(
          "store_bytes",
          [](const Lanes& self) { return reading(self, [&] { return self.bytes(); }); },
          "Memory of the store, in bytes.")
      .def(
          "add",
          [](Lanes& self, const Numbers& numbers, const Words& words,
             const std::vector<std::int64_t>& clocks, const std::vector<std::int64_t>& targets) {
            auto specs = specs_of(numbers, words, clocks, targets);
            changing(self, [&] { self.add(std::move(specs)); });
          },
          "numbers"_a, "words"_a, "clocks"_a, "targets"_a, "Add lanes that start now.")
      .def("state",
           [](const Lanes& self) {
             const auto bytes = reading(self, [&] { return self.state(); });
             return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
           })
      .def(
          "restore",
          [](Lanes& self, const nb::bytes& state) {
            const std::span bytes(reinterpret_cast<const std::byte*>(state.c_str()), state.size());
            changing(self, [&] { self.restore(bytes); });
          },
          "state"_a);

  using thresher::LabelLists;
  nb::class_<LabelLists, Lanes>(m, "LabelLists",
                                "A lane for each of many classes; only nonzero weights are stored.")
      .def(
          "plant_intercepts",
          [](LabelLists& self, Doubles intercepts) {
            changing(self, [&] {
              if (intercepts.shape(0) != self.count())
                throw std::invalid_argument("intercepts must have one number for each lane");
              self.plant_intercepts({intercepts.data(), intercepts.shape(0)});
            });
          },
          "intercepts"_a, "Set the initial intercepts.")
      .def(
          "class_weights",
          [](const LabelLists& self) {
            auto found = reading(self, [&] { return self.class_weights(); });
            return std::tuple(owned_array(std::move(found.classes)),
                              owned_array(std::move(found.keys)),
                              owned_array(std::move(found.values)));
          },
          "Return the classes, keys and values of nonzero weights, ordered by class and key.")
      .def(
          "grow",
          [](LabelLists& self, std::size_t count) { changing(self, [&] { self.grow(count); }); },
          "count"_a, "Add lanes until there are `count`; new lanes start now.");

  m.def(
      "make_labels",
      [](const std::string& rule, const std::string& dtype, std::uint64_t width,
         const std::map<std::string, double>& numbers,
         const std::map<std::string, std::string>& words, std::size_t count) {
        return thresher::make_labels(rule, dtype, width, {numbers, words}, count);
      },
      "rule"_a, "dtype"_a, "width"_a, "numbers"_a, "words"_a, "count"_a,
      "Make a lane for each of `count` classes. All share parameters and clock. width 0: any key.");

  m.def(
      "make_lanes",
      [](const std::string& rule, const std::string& store, const std::string& dtype,
         std::uint64_t width, const Numbers& numbers, const Words& words,
         const std::vector<std::int64_t>& clocks, const std::vector<std::int64_t>& targets,
         const std::string& level) {
        return thresher::make_lanes(rule, store, dtype, width,
                                    specs_of(numbers, words, clocks, targets), level);
      },
      "rule"_a, "store"_a, "dtype"_a, "width"_a, "numbers"_a, "words"_a, "clocks"_a, "targets"_a,
      "level"_a = "auto",
      "Make lanes of one rule. Each has parameters, a clock (a column of `seen`) and a target: a\n"
      "class number, or -1 for the label itself. level: the widest vectors to use.");
}

}  // namespace bindings
