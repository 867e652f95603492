// Feature discovery for Python.
#include "thresher/discovery/discovery.hpp"
#include "casters.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <span>
#include <tuple>
#include <utility>

#include "arrays.hpp"
#include "thresher/discovery/redrawn.hpp"

namespace bindings {
namespace {

using namespace nb::literals;
using thresher::Discovery;

using Singles = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto spanned(const Array& array) {
  return std::span(array.data(), array.shape(0));
}

const std::int64_t* folds_of(const BorrowedBatch& batch, const Longs& folds) {
  if (static_cast<std::int64_t>(folds.shape(0)) != batch.batch.rows)
    throw std::invalid_argument("folds: one for each row of the batch");
  return folds.data();
}

auto facts_of(thresher::HonestRows&& rows) {
  return std::tuple(owned_array(std::move(rows.p)), owned_array(std::move(rows.lengths)),
                    owned_array(std::move(rows.hashes)));
}

void check_labels(const BorrowedBatch& batch) {
  if (!batch.batch.labels) throw std::invalid_argument("discovery needs labels");
}

}  // namespace

void bind_discovery(nb::module_& m) {
  nb::class_<Discovery>(m, "Discovery", "Evidence of the features of one output.")
      .def(
          "stream",
          [](Discovery& self, const BorrowedBatch& batch, std::uint64_t number,
             const std::optional<Longs>& order, std::int64_t first,
             std::optional<std::int64_t> last) {
            check_labels(batch);
            const thresher::Visit visit = visit_of(batch, order, first, last);
            const BorrowedBatch held = batch;
            return facts_of(
                locked<Unique>(self, [&] { return self.stream(held.batch, visit, number); }));
          },
          "batch"_a, "number"_a, "order"_a = nb::none(), "first"_a = 0, "last"_a = nb::none(),
          "Add the evidence of each row, then learn it. `number` is the number of the batch's\n"
          "first row in the stream. Return the prediction before learning, the number of values "
          "and a\n"
          "hash of each row.")
      .def(
          "learn",
          [](Discovery& self, const BorrowedBatch& batch, const Longs& folds, std::size_t fold,
             const std::optional<Longs>& order, std::int64_t first,
             std::optional<std::int64_t> last) {
            check_labels(batch);
            const thresher::Visit visit = visit_of(batch, order, first, last);
            const std::int64_t* const of_rows = folds_of(batch, folds);
            const BorrowedBatch held = batch;
            GilRelease release;
            const Shared lock(self.mutex);  // folds learn at the same time
            self.learn(held.batch, visit, of_rows, fold);
          },
          "batch"_a, "folds"_a, "fold"_a, "order"_a = nb::none(), "first"_a = 0,
          "last"_a = nb::none(), "Let the model of a fold learn the rows of the other folds.")
      .def(
          "finish",
          [](Discovery& self, std::size_t fold) {
            locked<Unique>(self, [&] { self.finish(fold); });
          },
          "fold"_a, "End the learning of a fold, and release the memory of its model.")
      .def(
          "score",
          [](Discovery& self, const BorrowedBatch& batch, const Longs& folds, std::uint64_t number,
             const std::optional<Longs>& order, std::int64_t first,
             std::optional<std::int64_t> last, const std::optional<Longs>& groups) {
            check_labels(batch);
            const thresher::Visit visit = visit_of(batch, order, first, last);
            const std::int64_t* const of_rows = folds_of(batch, folds);
            const std::int64_t* const numbers = groups ? folds_of(batch, *groups) : nullptr;
            const BorrowedBatch held = batch;
            return facts_of(locked<Unique>(
                self, [&] { return self.score(held.batch, visit, of_rows, numbers, number); }));
          },
          "batch"_a, "folds"_a, "number"_a, "order"_a = nb::none(), "first"_a = 0,
          "last"_a = nb::none(), "groups"_a = nb::none(),
          "Add the evidence of the rows, each with the model of its fold. Rows of one group have\n"
          "the same redraws. Return what `stream` returns.")
      .def(
          "sums",
          [](const Discovery& self) {
            auto sums = locked<Shared>(self, [&] { return self.sums(); });
            nb::dict found;
            found["keys"] = owned_array(std::move(sums.keys));
            found["rows"] = owned_array(std::move(sums.rows));
            found["S"] = owned_array(std::move(sums.S));
            found["realised"] = owned_array(std::move(sums.realised));
            found["predicted"] = owned_array(std::move(sums.predicted));
            found["redrawn_S"] = owned_array(std::move(sums.redrawn_S));
            found["redrawn_D"] = owned_array(std::move(sums.redrawn_D));
            return found;
          },
          "Return the sums of all features that occurred, in the order of their numbers.")
      .def("facts",
           [](const Discovery& self) { return locked<Shared>(self, [&] { return self.facts(); }); })
      .def("bytes",
           [](const Discovery& self) { return locked<Shared>(self, [&] { return self.bytes(); }); })
      .def("state",
           [](const Discovery& self) {
             const auto bytes = locked<Shared>(self, [&] { return self.state(); });
             return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
           })
      .def(
          "restore",
          [](Discovery& self, const nb::bytes& state) {
            const std::span bytes(reinterpret_cast<const std::byte*>(state.c_str()), state.size());
            locked<Unique>(self, [&] { self.restore(bytes); });
          },
          "state"_a);

  m.def(
      "redrawn_z",
      [](const Singles& S, const Singles& D, const Doubles& variance) {
        const auto found = [&] {
          GilRelease release;
          return thresher::discovery::redrawn_z(spanned(S), spanned(D), spanned(variance));
        };
        return owned_array(found());
      },
      "S"_a, "D"_a, "variance"_a,
      "Return |z| of each feature and redraw. D may be empty: the variance is then the same in\n"
      "every redraw.");

  m.def(
      "exceedances",
      [](const Singles& values, const Singles& thresholds) {
        const auto found = [&] {
          GilRelease release;
          return thresher::discovery::exceedances(spanned(values), spanned(thresholds));
        };
        return owned_array(found());
      },
      "values"_a, "thresholds"_a,
      "Return for each threshold the number of values that are at least as large. Thresholds\n"
      "increase.");

  m.def(
      "make_discovery",
      [](std::string task, std::string store, std::string dtype, std::uint64_t width,
         std::size_t redraws, std::uint64_t seed, std::size_t folds, std::string level) {
        return thresher::make_discovery({std::move(task), std::move(store), std::move(dtype),
                                         std::move(level), width, redraws, seed, folds});
      },
      "task"_a, "store"_a, "dtype"_a, "width"_a, "redraws"_a = 20, "seed"_a = 0, "folds"_a = 1,
      "level"_a = "auto",
      "Return a discovery for one output; `folds` 1: a stream. The task is \"classification\" "
      "(labels\n"
      "0 and 1) or \"regression\".");
}

}  // namespace bindings
