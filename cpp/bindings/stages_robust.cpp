// The parts and ranges of the robust rule, for Python.
#include <nanobind/stl/unique_ptr.h>

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/stabilized/robust/pieces.hpp"

namespace bindings {

using namespace nb::literals;
using thresher::PathSums;
using thresher::RobustPart;
using thresher::RobustRange;
using thresher::RowTotals;
using thresher::SizeTable;

namespace {

using Counts = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto span_of(const Array& array) {
  return std::span(array.data(), array.shape(0));
}

template <class First, class... Others>
void check_lengths(const First& first, const Others&... others) {
  if (((others.shape(0) != first.shape(0)) || ...))
    throw std::invalid_argument("arrays: one entry for each key");
}

// f(check_interrupt) without the GIL; check_interrupt() throws on Ctrl-C.
template <class F>
auto interruptible(F&& f) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point checked = Clock::now();
  const RobustPart::CheckInterrupt check_interrupt = [&] {
    const Clock::time_point now = Clock::now();
    if (now - checked < std::chrono::milliseconds(100)) return;
    checked = now;
    GilAcquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  GilRelease release;
  return f(check_interrupt);
}

// Sums of a part: weight, squares and positive.
std::tuple<double, double, double> tuple_of(const RowTotals& rows) {
  return {rows.weight, rows.squares, rows.positive};
}
RowTotals totals_of(const std::tuple<double, double, double>& sums) {
  return {std::get<0>(sums), std::get<1>(sums), std::get<2>(sums)};
}

// Calls f(name, vector) for every field of a state that is in any state, and of newer states.
template <class State, class F>
void each_field(State& state, F&& f) {
  f("keys", state.keys), f("rows", state.rows), f("documents", state.documents);
  f("admitted", state.admitted), f("probability", state.probability);
  f("updates", state.updates), f("purged", state.purged);
  f("Z", state.Z), f("W", state.W), f("squares", state.squares), f("weight", state.weight);
  f("stages", state.stages), f("paths", state.paths);
}
template <class State, class F>
void each_newer_field(State& state, F&& f) {
  f("label_x", state.label_x), f("label_squares", state.label_squares);
  f("label_positive", state.label_positive);
}

nb::dict state_of(const RobustRange& self) {
  RobustRange::State state = self.state();
  nb::dict arrays;
  const auto add = [&](const char* name, auto& values) {
    arrays[name] = nb::cast(owned_array(std::move(values)));
  };
  each_field(state, add), each_newer_field(state, add);
  return arrays;
}

void restore(RobustRange& self, const nb::dict& arrays) {
  RobustRange::State state;
  const auto get = [&]<class T>(const char* name, std::vector<T>& values) {
    using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    Array array;
    if (!arrays.contains(name) || !nb::try_cast(nb::object(arrays[name]), array))
      throw std::invalid_argument(std::string("the state of a range has no array ") + name);
    values.assign(array.data(), array.data() + array.shape(0));
  };
  each_field(state, get);
  if (arrays.contains("label_x")) each_newer_field(state, get);
  self.restore(std::move(state));
}

}  // namespace

void bind_stages_robust(nb::module_& m) {
  nb::class_<PathSums>(m, "PathSums", "The results of paths, summed in the order of the paths.")
      .def(
          "arrays",
          [](PathSums& self) {
            return std::tuple(owned_array(std::move(self.z)), owned_array(std::move(self.w)),
                              owned_array(std::move(self.plus)), owned_array(std::move(self.minus)),
                              owned_array(std::move(self.updates)));
          },
          "Return z, w, plus, minus and updates of each feature that is left. Can be called once.")
      .def_ro("bias", &PathSums::bias)
      .def_ro("loss", &PathSums::loss)
      .def_ro("weight", &PathSums::weight)
      .def_ro("rows", &PathSums::rows);

  nb::class_<RobustPart>(m, "RobustPart", "The rows of a part, and its paths of the robust rule.")
      .def(
          "add",
          [](RobustPart& self, const BorrowedBatch& batch) {
            if (!batch.batch.labels) throw std::invalid_argument("learning needs labels");
            const BorrowedBatch held = batch;
            GilRelease release;
            self.add(held.batch);
          },
          "batch"_a, "Copy a block of rows.")
      .def(
          "end",
          [](RobustPart& self) {
            auto found = self.end();
            std::vector<double> sums;
            for (const auto& sum : found.sums)
              sums.insert(sums.end(), {sum.x, sum.squares, sum.positive});
            return std::tuple(owned_array(std::move(found.keys)),
                              owned_array(std::move(found.rows)),
                              owned_array(std::move(found.documents)),
                              owned_array(std::move(found.squares)), owned_array(std::move(sums)));
          },
          "After the last rows: return the features and, for each, the number of rows of weight\n"
          "above 0 that have it, the number of rows of any weight, the sum of squares, and three\n"
          "sums of its relation to the label.")
      .def_prop_ro("rows", &RobustPart::rows, "Rows of weight above 0.")
      .def_prop_ro("norms", &RobustPart::norms, "Sum of their squared norms times weights.")
      .def_prop_ro(
          "totals", [](const RobustPart& self) { return tuple_of(self.totals()); },
          "Sums of their weights, of the squares of these, and of the weights of positive rows.")
      .def(
          "sizes",
          [](const RobustPart& self, double norm, std::size_t features, std::size_t jobs) {
            return interruptible([&](const RobustPart::CheckInterrupt& check_interrupt) {
              return self.sizes(norm, features, jobs, check_interrupt);
            });
          },
          "norm"_a, "features"_a, "jobs"_a,
          "Measure the losses of models with different numbers of features, by the other half.")
      .def(
          "retain", [](RobustPart& self, Keys keys) { self.retain(span_of(keys)); }, "keys"_a,
          "Remove all features except these, given in increasing order.")
      .def(
          "drop", [](RobustPart& self, Keys keys) { self.drop(span_of(keys)); }, "keys"_a,
          "Remove these features, given in increasing order.")
      .def(
          "features",
          [](const RobustPart& self) {
            return owned_array(std::vector<std::uint64_t>(self.features()));
          },
          "Return the features that are left.")
      .def(
          "halves",
          [](const RobustPart& self, std::int64_t stage, double norm, double bias,
             std::size_t jobs) {
            return interruptible([&](const RobustPart::CheckInterrupt& check_interrupt) {
              return self.halves(stage, norm, bias, jobs, check_interrupt);
            });
          },
          "stage"_a, "norm"_a, "bias"_a, "jobs"_a,
          "Return the evidence of a stage. `norm` is the mean squared norm of the rows of all "
          "parts,\nwith their weights.")
      .def_prop_ro("refit_steps", &RobustPart::refit_steps,
                   "The least number of steps of a path of `whole`.")
      .def(
          "whole",
          [](const RobustPart& self, std::int64_t stage, double norm, std::int64_t passes,
             Doubles start, double bias, double strength, double weight, std::size_t jobs) {
            return interruptible([&](const RobustPart::CheckInterrupt& check_interrupt) {
              return self.whole(stage, norm, passes, span_of(start), bias, {strength, weight}, jobs,
                                check_interrupt);
            });
          },
          "stage"_a, "norm"_a, "passes"_a, "start"_a, "bias"_a, "strength"_a, "weight"_a, "jobs"_a,
          "Learn the weights of the features that are left, from `start` (empty: 0) and a bias.\n"
          "`strength` is that of the l2 (0: none), `weight` the sum of the weights of all rows.");

  nb::class_<SizeTable>(m, "SizeTable", "Losses on the other half, by number of features.")
      .def(nb::init<>())
      .def("add", &SizeTable::add, "other"_a, "Add the losses of other rows.")
      .def_ro("sizes", &SizeTable::sizes)
      .def_prop_ro("means",
                   [](const SizeTable& self) {
                     std::vector<double> means;
                     for (std::size_t a = 0; a < self.sizes.size(); ++a)
                       means.push_back(self.mean(a));
                     return means;
                   })
      .def("error", &SizeTable::error, "a"_a, "b"_a,
           "Standard error of the difference of the means of two sizes, by their positions.")
      .def(
          "chosen",
          [](const SizeTable& self, std::size_t features) {
            const auto chosen = thresher::chosen_size(self, features);
            return std::tuple(chosen.size, chosen.strength);
          },
          "features"_a,
          "Return the number of features to keep, at most `features` (0: there is no signal), and\n"
          "the strength of the l2 of the refit (0: none).")
      .def("__getstate__",
           [](const SizeTable& self) {
             return std::tuple(self.sizes, self.rows, self.weight, self.squares, self.sums,
                               self.square_sums, self.products, self.paths, self.logs);
           })
      .def("__setstate__",
           [](SizeTable& self,
              std::tuple<std::vector<std::int64_t>, double, double, double, std::vector<double>,
                         std::vector<double>, std::vector<double>, double, std::vector<double>>
                  state) {
             auto& [sizes, rows, weight, squares, sums, square_sums, products, paths, logs] = state;
             new (&self) SizeTable{std::move(sizes),
                                   rows,
                                   weight,
                                   squares,
                                   std::move(sums),
                                   std::move(square_sums),
                                   std::move(products),
                                   paths,
                                   std::move(logs)};
           });

  nb::class_<RobustRange>(m, "RobustRange", "Features of the robust rule, and their judgement.")
      .def(nb::init<>())
      .def(
          "count",
          [](RobustRange& self, Keys keys, Longs rows, Longs documents, Doubles squares,
             Doubles sums, std::uint32_t paths) {
            check_lengths(keys, rows, documents, squares);
            if (sums.shape(0) != 3 * keys.shape(0))
              throw std::invalid_argument("sums: three for each key");
            std::vector<thresher::LabelSums> triples;
            for (std::size_t i = 0; i < sums.shape(0); i += 3)
              triples.push_back({sums.data()[i], sums.data()[i + 1], sums.data()[i + 2]});
            self.count(span_of(keys), span_of(rows), span_of(documents), span_of(squares), triples,
                       paths);
          },
          "keys"_a, "rows"_a, "documents"_a, "squares"_a, "sums"_a, "paths"_a,
          "Add the counts of a part with `paths` paths.")
      .def(
          "admit",
          [](RobustRange& self, double least_rows) { return owned_array(self.admit(least_rows)); },
          "least_rows"_a, "Admit features that at least `least_rows` rows have, and return them.")
      .def_prop_ro("left", &RobustRange::left, "Number of features that are left.")
      .def(
          "add",
          [](RobustRange& self, Keys keys, Doubles z, Doubles w, Counts plus, Counts minus,
             Longs updates) {
            check_lengths(keys, z, w, plus, minus, updates);
            self.add({span_of(keys), span_of(z), span_of(w), span_of(plus), span_of(minus),
                      span_of(updates)});
          },
          "keys"_a, "z"_a, "w"_a, "plus"_a, "minus"_a, "updates"_a,
          "Add the results of a part in a stage.")
      .def(
          "add_weights",
          [](RobustRange& self, Keys keys, Doubles w, Longs updates) {
            check_lengths(keys, w, updates);
            self.add({span_of(keys), {}, span_of(w), {}, {}, span_of(updates)});
          },
          "keys"_a, "w"_a, "updates"_a, "Add the results of a part in the refit.")
      .def("judge", &RobustRange::judge, "rows"_a, "keep"_a,
           "Judge all features; `rows` is the number of all rows. Return how many may stay.")
      .def(
          "histogram",
          [](const RobustRange& self, std::uint64_t tied, std::uint64_t prefix, unsigned shift,
             unsigned bits) { return owned_array(self.histogram(tied, prefix, shift, bits)); },
          "tied"_a, "prefix"_a, "shift"_a, "bits"_a,
          "Count the ranks that start with the bits `prefix`, by their next bits. If `tied` is "
          "not\n"
          "0, do so for the complements of the keys that have this rank.")
      .def(
          "purge",
          [](RobustRange& self, std::int64_t stage, std::uint64_t rank, std::uint64_t last) {
            return owned_array(self.purge(stage, rank, last));
          },
          "stage"_a, "rank"_a, "last"_a,
          "Purge the features below a rank, and those of that rank with keys above `last`; return\n"
          "them.")
      .def("set_weights", &RobustRange::set_weights,
           "Set the weights to the means of what was added.")
      .def("weights",
           [](const RobustRange& self) {
             auto found = self.weights();
             return std::tuple(owned_array(std::move(found.keys)),
                               owned_array(std::move(found.values)));
           })
      .def(
          "findings",
          [](const RobustRange& self, const std::tuple<double, double, double>& totals) {
            auto found = self.findings(totals_of(totals));
            return std::tuple(
                owned_array(std::move(found.keys)), owned_array(std::move(found.probability)),
                owned_array(std::move(found.updates)), owned_array(std::move(found.purged)),
                owned_array(self.documents()), owned_array(std::move(found.z)));
          },
          "totals"_a,
          "Return the features seen, and for each its selection probability, number of updates,\n"
          "stage of purge, number of documents, and z of feature and label. `totals` are those of\n"
          "all parts.")
      .def("state", &state_of, "Return the state between two stages: arrays by name.")
      .def("restore", &restore, "state"_a);

  m.def(
      "make_robust_part",
      [](const std::string& dtype, std::uint64_t width, std::map<std::string, double> numbers,
         std::map<std::string, std::string> words, std::size_t first, std::size_t count) {
        return thresher::make_robust_part(dtype, width, {std::move(numbers), std::move(words)},
                                          first, count);
      },
      "dtype"_a, "width"_a, "numbers"_a, "words"_a, "first"_a, "count"_a);
  m.def("robust_target", &thresher::robust_target, "asked"_a, "rows"_a, "judged"_a,
        "The number of features that the robust rule keeps.");
  m.def("log_odds", &thresher::log_odds, "positive"_a, "weight"_a, "rows"_a,
        "The log-odds of a share of positive rows, finite also for rows of one class.");
  m.def("robust_size_after", &thresher::robust_size_after, "features"_a, "target"_a, "rejection"_a,
        "The number of features that stay after a stage.");
}

}  // namespace bindings
