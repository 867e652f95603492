// The module: batches, learners and losses for Python. It borrows arrays, releases the GIL, and
// maps errors; it computes nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/registry.hpp"
#include "thresher/core/row_mean.hpp"
#include "thresher/core/value_range.hpp"
#include "thresher/loss/losses.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace bindings;
using thresher::Batch;
using thresher::Centrable;
using thresher::Learner;
using thresher::Pausable;
using thresher::StartsFromWeights;
using thresher::Steerable;
using thresher::Visit;
using thresher::Widenable;

template <class Variant, class T>
bool take(const AnyVector& array, Variant& into) {
  if (array.dtype() != nb::dtype<T>()) return false;
  into = static_cast<const T*>(array.data());
  return true;
}

std::unique_ptr<BorrowedBatch> sparse_batch(AnyVector starts, AnyVector keys, AnyVector values,
                                            std::int64_t columns, std::optional<Doubles> labels,
                                            std::optional<Doubles> weights) {
  auto borrowed = std::make_unique<BorrowedBatch>();
  Batch& batch = borrowed->batch;
  if (columns < 0) throw std::invalid_argument("columns: 0 (any key) or more");
  if (starts.shape(0) == 0) throw std::invalid_argument("starts: one more than rows");
  batch.rows = static_cast<std::int64_t>(starts.shape(0)) - 1;
  batch.columns = columns;
  if (!take<Batch::Starts, std::int32_t>(starts, batch.starts) &&
      !take<Batch::Starts, std::int64_t>(starts, batch.starts))
    throw std::invalid_argument("starts: int32 or int64");
  if (!take<Batch::Keys, std::int32_t>(keys, batch.keys) &&
      !take<Batch::Keys, std::int64_t>(keys, batch.keys))
    throw std::invalid_argument("keys: int32 or int64");
  if (!take<Batch::Values, float>(values, batch.values) &&
      !take<Batch::Values, double>(values, batch.values))
    throw std::invalid_argument("values: float32 or float64");
  if (keys.shape(0) != values.shape(0))
    throw std::invalid_argument("keys and values: the same length");
  std::visit(
      [&](auto start) {
        if constexpr (!std::is_same_v<decltype(start), std::monostate>) {
          std::int64_t before = 0;
          for (std::int64_t row = 0; row <= batch.rows; ++row) {
            if (start[row] < before)
              throw thresher::DataError(std::max<std::int64_t>(row - 1, 0),
                                        "row starts must not decrease and begin at 0 or above");
            before = start[row];
          }
          if (static_cast<std::size_t>(before) > keys.shape(0))
            throw thresher::DataError(batch.rows - 1, "row starts reach beyond the keys");
        }
      },
      batch.starts);
  borrowed->keep[0] = nb::cast(starts), borrowed->keep[1] = nb::cast(keys),
  borrowed->keep[2] = nb::cast(values);
  borrowed->set_targets(std::move(labels), std::move(weights));
  return borrowed;
}

std::unique_ptr<BorrowedBatch> dense_batch(AnyMatrix rows, std::optional<Doubles> labels,
                                           std::optional<Doubles> weights) {
  auto borrowed = std::make_unique<BorrowedBatch>();
  Batch& batch = borrowed->batch;
  batch.rows = static_cast<std::int64_t>(rows.shape(0));
  batch.columns = static_cast<std::int64_t>(rows.shape(1));
  if (rows.dtype() == nb::dtype<float>()) batch.values = static_cast<const float*>(rows.data());
  else if (rows.dtype() == nb::dtype<double>())
    batch.values = static_cast<const double*>(rows.data());
  else throw std::invalid_argument("rows: float32 or float64");
  borrowed->keep[0] = nb::cast(rows);
  borrowed->set_targets(std::move(labels), std::move(weights));
  return borrowed;
}

template <class F>
auto reading(const Learner& learner, F&& f) {
  return locked<Shared>(learner, f);
}
// For short reads: keeps the GIL if no thread is learning, because getting it back takes longer.
template <class F>
auto reading_briefly(const Learner& learner, F&& f) {
  {
    std::shared_lock<std::shared_mutex> lock(learner.mutex, std::try_to_lock);
    if (lock.owns_lock()) return f();
  }
  return reading(learner, f);
}
template <class F>
auto changing(Learner& learner, F&& f) {
  return locked<Unique>(learner, f);
}

}  // namespace

// NB_MODULE defines the function that Python calls; ours, at the end, calls it.
#define PyInit__core PyInit__core_in_main_interpreter

NB_MODULE(_core, m) {
#ifdef NDEBUG
  // Objects that exist when Python ends, as in a daemon thread, are no errors of the user.
  nb::set_leak_warnings(false);
#endif
  m.doc() = "The native core: batches of rows, and learners that learn from them row by row.";

  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, "not enough memory");
    }
  });
  nb::exception<thresher::DataError>(m, "DataError", PyExc_ValueError);
  nb::exception<thresher::Divergence>(m, "DivergenceError", PyExc_ArithmeticError);

  nb::class_<BorrowedBatch>(m, "Batch", "Rows borrowed from NumPy arrays, which do not change.")
      .def_prop_ro("rows", [](const BorrowedBatch& b) { return b.batch.rows; })
      .def_prop_ro("columns", [](const BorrowedBatch& b) { return b.batch.columns; })
      .def("set_targets", &BorrowedBatch::set_targets, "labels"_a.none(),
           "weights"_a.none() = nb::none(), "units"_a.none() = nb::none(),
           "Replace the labels and weights of the rows, and the units of their losses.")
      .def(
          "value_range",
          [](const BorrowedBatch& b, std::int64_t count, std::int64_t step) {
            const std::int64_t last = b.batch.rows - 1;
            if (count < 0 || step < 1 || (count > 0 && (last < 0 || count - 1 > last / step)))
              throw std::invalid_argument("count and step: rows of the batch");
            const auto found = thresher::value_range(b.batch, count, step);
            return std::pair(found.least, found.most);
          },
          "count"_a, "step"_a = 1,
          "Return the least and the largest absolute value of rows 0, step, 2 step and so on.\n\n"
          "Values of 0 and NaN do not count; without others it is (inf, 0).")
      .def(
          "copy", [](const BorrowedBatch& b) { return std::make_unique<BorrowedBatch>(b); },
          "Return a batch of the same rows, which are not copied, with targets of its own.");
  m.def("sparse_batch", &sparse_batch, "starts"_a, "keys"_a, "values"_a, "columns"_a,
        "labels"_a.none() = nb::none(), "weights"_a.none() = nb::none(), "Borrow CSR rows.");
  m.def("dense_batch", &dense_batch, "rows"_a, "labels"_a.none() = nb::none(),
        "weights"_a.none() = nb::none(),
        "Borrow the rows of a C-contiguous array; zeros are skipped.");

  m.def(
      "mean_row",
      [](const BorrowedBatch& batch) {
        std::vector<double> mean;
        {
          GilRelease release;
          mean = thresher::mean_row(batch.batch);
        }
        return owned_array(std::move(mean));
      },
      "batch"_a, "Return the mean of the rows.");

  nb::class_<Learner> learner(
      m, "Learner", "One model in training, with one rule and one store. Threads may share it.");
  learner
      .def(
          "learn",
          [](Learner& self, const BorrowedBatch& batch, std::optional<Longs> order,
             std::int64_t first, std::optional<std::int64_t> last) {
            if (!batch.batch.labels) throw std::invalid_argument("learning needs labels");
            const Visit visit = visit_of(batch, order, first, last);
            const BorrowedBatch held = batch;  // another thread may replace the targets
            return changing(self, [&] { return self.learn(held.batch, visit); });
          },
          "batch"_a, "order"_a.none() = nb::none(), "first"_a = 0, "last"_a.none() = nb::none(),
          "Learn the rows of order[first:last], in that order, until the rule pauses. A row makes\n"
          "as many steps as its weight says. Return the number of rows learned.")
      .def(
          "next_pass", [](Learner& self) { changing(self, [&] { self.next_pass(); }); },
          "Decay the rate, as after a pass over the data.")
      .def(
          "widen",
          [](Learner& self, std::uint64_t width) {
            changing(self, [&] { thresher::require<Widenable>(self).widen(width); });
          },
          "width"_a, "Accept feature numbers below a larger width from now on.")
      .def(
          "predict",
          [](const Learner& self, const BorrowedBatch& batch, bool average) {
            const BorrowedBatch held = batch;
            std::vector<double> out(static_cast<std::size_t>(held.batch.rows));
            reading(self, [&] {
              self.predict(held.batch, Visit{nullptr, 0, held.batch.rows}, average, out.data());
            });
            return owned_array(std::move(out));
          },
          "batch"_a, "average"_a = false, "Return raw predictions.")
      .def(
          "weights",
          [](const Learner& self, bool average) {
            auto found = reading(self, [&] { return self.weights(average); });
            return std::pair(owned_array(std::move(found.keys)),
                             owned_array(std::move(found.values)));
          },
          "average"_a = false,
          "Return the keys of nonzero weights, in increasing order, and the weights.")
      .def(
          "nonzeros",
          [](const Learner& self, bool average) {
            return reading(self, [&] { return self.nonzeros(average); });
          },
          "average"_a = false)
      .def(
          "intercept",
          [](const Learner& self, bool average) {
            return reading_briefly(self, [&] { return self.intercept(average); });
          },
          "average"_a = false)
      .def_prop_ro(
          "steps",
          [](const Learner& self) {
            return reading_briefly(self, [&] { return self.tally().rows(); });
          },
          "Number of rows learned, in all passes.")
      .def_prop_ro(
          "loss_sum",
          [](const Learner& self) {
            return reading_briefly(self, [&] { return self.tally().loss(); });
          },
          "Sum of the progressive losses times sample weights.")
      .def_prop_ro("weight_sum",
                   [](const Learner& self) {
                     return reading_briefly(self, [&] { return self.tally().weight(); });
                   })
      .def_prop_ro(
          "rate",
          [](const Learner& self) { return reading_briefly(self, [&] { return self.rate(); }); },
          "Learning rate of the last step.")
      .def_prop_ro(
          "store_bytes",
          [](const Learner& self) { return reading_briefly(self, [&] { return self.bytes(); }); },
          "Memory of the store, in bytes.")
      .def(
          "facts", [](const Learner& self) { return reading(self, [&] { return self.facts(); }); },
          "Return numbers that only this rule keeps, by name.")
      .def(
          "steer",
          [](Learner& self) {
            changing(self, [&] { thresher::require<Steerable>(self).steer(); });
          },
          "Set the penalty now for the wanted number of nonzero weights.")
      .def(
          "pause_at",
          [](Learner& self, std::int64_t nonzeros) {
            changing(self, [&] { thresher::require<Pausable>(self).pause_at(nonzeros); });
          },
          "nonzeros"_a,
          "Let learning pause after a step that leaves at least this many nonzero weights.")
      .def_prop_ro(
          "paused",
          [](const Learner& self) {
            const auto* pausable = dynamic_cast<const Pausable*>(&self);
            return pausable && reading_briefly(self, [&] { return pausable->paused(); });
          },
          "Whether learning paused after the last step.")
      .def("state",
           [](const Learner& self) {
             const auto bytes = reading(self, [&] { return self.state(); });
             return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
           })
      .def(
          "restore",
          [](Learner& self, const nb::bytes& state) {
            const std::span bytes(reinterpret_cast<const std::byte*>(state.c_str()), state.size());
            changing(self, [&] { self.restore(bytes); });
          },
          "state"_a)
      .def(
          "start_from",
          [](Learner& self, Keys keys, Doubles values, double intercept) {
            if (keys.shape(0) != values.shape(0))
              throw std::invalid_argument("one value for each key");
            changing(self, [&] {
              thresher::require<StartsFromWeights>(self).start_from(
                  {keys.data(), keys.shape(0)}, {values.data(), values.shape(0)}, intercept);
            });
          },
          "keys"_a, "values"_a, "intercept"_a, "Start from these weights, before the first step.")
      .def(
          "center",
          [](Learner& self, Keys keys, Doubles means) {
            if (keys.shape(0) != means.shape(0))
              throw std::invalid_argument("one mean for each key");
            changing(self, [&] {
              thresher::require<Centrable>(self).center({keys.data(), keys.shape(0)},
                                                        {means.data(), means.shape(0)});
            });
          },
          "keys"_a, "means"_a, "Set the mean of the rows, before the first step.");
  bindings::bind_rounds(learner);

  m.def(
      "make_learner",
      [](const std::string& rule, const std::string& store, const std::string& dtype,
         std::uint64_t width, std::map<std::string, double> numbers,
         std::map<std::string, std::string> words) {
        return thresher::make_learner(rule, store, dtype, width,
                                      {std::move(numbers), std::move(words)});
      },
      "rule"_a, "store"_a, "dtype"_a, "width"_a, "numbers"_a, "words"_a);
  m.def("rule_names", &thresher::rule_names, "The names of all rules, sorted.");

  m.def(
      "loss_values",
      [](const std::string& loss, double epsilon, double quantile, Doubles predictions,
         Doubles labels) {
        if (predictions.shape(0) != labels.shape(0))
          throw std::invalid_argument("one label for each prediction");
        const thresher::Loss f(loss, epsilon, quantile);
        std::vector<double> values(predictions.shape(0)), slopes(predictions.shape(0));
        for (std::size_t i = 0; i < values.size(); ++i) {
          const thresher::Outcome outcome = f(predictions.data()[i], labels.data()[i]);
          values[i] = outcome.loss(), slopes[i] = outcome.slope;
        }
        return std::pair(owned_array(std::move(values)), owned_array(std::move(slopes)));
      },
      "loss"_a, "epsilon"_a, "quantile"_a, "predictions"_a, "labels"_a,
      "Return values and slopes of a loss at raw predictions.");

  bindings::bind_blocks(m);
  bindings::bind_cache(m);
  bindings::bind_columns(m);
  bindings::bind_discovery(m);
  bindings::bind_lanes(m);
  bindings::bind_one_row(m);
  bindings::bind_predict(m);
  bindings::bind_readers(m);
  bindings::bind_solvers(m);
  bindings::bind_stabilized(m);
  bindings::bind_stages_paper(m);
  bindings::bind_stages_robust(m);
  bindings::bind_targets(m);
}

#undef PyInit__core

// nanobind keeps the types of one interpreter. An import in a second one would replace them, and the
// first one could not use its objects any more. The main interpreter has the number 0.
extern "C" NB_EXPORT PyObject* PyInit__core() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "thresher can be imported in the main interpreter only, not in a "
                    "subinterpreter");
    return nullptr;
  }
  return PyInit__core_in_main_interpreter();
}
