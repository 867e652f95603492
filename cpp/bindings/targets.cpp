// Standardised targets of regressions, targets of two classes, and runs of classes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/core/class_runs.hpp"
#include "thresher/core/target_scale.hpp"
#include "thresher/core/two_values.hpp"

namespace bindings {

using namespace nb::literals;

namespace {

using Seen = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

bool is_shape(const Table& table, std::size_t rows, std::size_t columns) {
  return table.shape(0) == rows && table.shape(1) == columns;
}

template <class Code>
auto runs_of(const nb::ndarray<const Code, nb::ndim<1>, nb::c_contig, nb::device::cpu>& codes,
             std::size_t classes) {
  thresher::ClassRuns made(codes.data(), codes.shape(0), classes);
  return nb::make_tuple(owned_array(std::move(made.counts)), owned_array(std::move(made.longest)),
                        owned_array(std::move(made.begins)), made.runs, made.begun, made.length);
}

template <class Label>
using Labels = nb::ndarray<const Label, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Label>
std::optional<std::tuple<Label, Label, std::int64_t>> two_values_of(const Labels<Label>& labels) {
  const thresher::TwoValues<Label> found(labels.data(), labels.shape(0));
  if (!found.only) return std::nullopt;
  return std::tuple(found.low, found.high, found.largest);
}

template <class Label>
std::optional<nb::ndarray<nb::numpy, double, nb::ndim<1>>> two_targets_of(
    const Labels<Label>& labels, Label first, Label second, double low) {
  std::vector<double> made(labels.shape(0));
  if (!thresher::two_targets(labels.data(), made.size(), first, second, low, made.data()))
    return std::nullopt;
  return owned_array(std::move(made));
}

}  // namespace

void bind_targets(nb::module_& m) {
  m.def(
      "standardise",
      [](Table states, Table labels, Table sds, Table units, Doubles targets,
         std::optional<Doubles> weights, std::optional<Longs> order, std::int64_t first,
         std::int64_t last, std::optional<Seen> seen, bool centred, bool counts,
         std::int64_t degree) {
        BorrowedBatch rows;
        rows.batch.rows = static_cast<std::int64_t>(targets.shape(0));
        rows.set_targets(targets, weights);
        const std::size_t clocks = states.shape(0), n = targets.shape(0);
        if (states.shape(1) != thresher::TargetScale::numbers || !is_shape(labels, n, clocks) ||
            !is_shape(sds, n, clocks) || !is_shape(units, n, clocks) ||
            (seen && (seen->shape(0) != n || seen->shape(1) != clocks)))
          throw std::invalid_argument("tables must be rows x clocks");
        const thresher::Visit visit = visit_of(rows, order, first, last);
        const thresher::StandardisedTargets made{static_cast<std::int64_t>(clocks),
                                                 centred,
                                                 counts,
                                                 degree,
                                                 states.data(),
                                                 labels.data(),
                                                 sds.data(),
                                                 units.data()};
        GilRelease release;
        return made.fill(rows.batch, visit, seen ? seen->data() : nullptr);
      },
      "states"_a, "labels"_a, "sds"_a, "units"_a, "targets"_a, "weights"_a.none(), "order"_a.none(),
      "first"_a, "last"_a, "seen"_a.none(), "centred"_a, "counts"_a, "degree"_a,
      "Standardise the targets of order[first:last] by running means and standard deviations.\n\n"
      "states: for each clock weight, mean, sd, rows, and sd after 1000 rows; they are changed.\n"
      "labels, sds, units: rows x clocks; receive y' = (y - mean) / sd, sd, and sd^degree.\n"
      "Return the position after the last row done.");
  constexpr auto values_doc =
      "Return the smallest and the largest value, and how often the largest one occurs.\n\n"
      "None: there are other values, NaN, or no values.";
  m.def("two_values", two_values_of<std::int64_t>, "values"_a.noconvert(), values_doc);
  m.def("two_values", two_values_of<double>, "values"_a.noconvert(), values_doc);
  constexpr auto two_doc =
      "Return 1 for each label that is `second`, and `low` for each that is `first`.\n\n"
      "None: there are other labels.";
  m.def("two_targets", two_targets_of<std::int64_t>, "labels"_a.noconvert(), "first"_a, "second"_a,
        "low"_a, two_doc);
  m.def("two_targets", two_targets_of<double>, "labels"_a.noconvert(), "first"_a, "second"_a,
        "low"_a, two_doc);
  constexpr auto runs_doc =
      "Return the runs of equal codes, which are below `classes`.\n\n"
      "For each code its rows, its longest run, and where that begins; the number of runs; the\n"
      "lengths of the first and of the last run.";
  m.def("class_runs", runs_of<std::uint8_t>, "codes"_a.noconvert(), "classes"_a, runs_doc);
  m.def("class_runs", runs_of<std::int64_t>, "codes"_a, "classes"_a, runs_doc);
}

}  // namespace bindings
