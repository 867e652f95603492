// Solvers that need the whole matrix, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/solvers/newton_descent.hpp"

namespace bindings {
namespace {

using namespace nb::literals;

// A solver with the columns that it borrows. One thread at a time uses it; waiting threads release
// the GIL.
class BorrowedDescent {
 public:
  BorrowedDescent(const BorrowedBatch& columns, const Doubles& labels,
                  const std::optional<Doubles>& weights, const std::string& loss, double epsilon,
                  double l1, const std::string& step)
      : columns_(columns),
        solver_(columns.batch, {labels.data(), labels.shape(0)},
                weights ? std::span(weights->data(), weights->shape(0)) : std::span<const double>(),
                thresher::Loss(loss, epsilon, 0.5), l1, step) {}

  template <class F>
  auto use(F&& f) {
    GilRelease release;
    std::lock_guard lock(mutex_);
    return f(solver_);
  }

 private:
  BorrowedBatch columns_;
  std::mutex mutex_;
  thresher::NewtonDescent solver_;
};

}  // namespace

void bind_solvers(nb::module_& m) {
  nb::class_<BorrowedDescent>(m, "CoordinateDescent",
                              "Coordinate descent on one output, step by step.")
      .def(nb::init<const BorrowedBatch&, const Doubles&, const std::optional<Doubles>&,
                    const std::string&, double, double, const std::string&>(),
           "columns"_a, "labels"_a, "weights"_a.none(), "loss"_a, "epsilon"_a, "l1"_a, "step"_a,
           "Columns of X as a batch: the CSC arrays, with the number of rows as its columns.")
      .def(
          "steps",
          [](BorrowedDescent& self, Longs draws) {
            return self.use(
                [&](auto& solver) { return solver.steps({draws.data(), draws.shape(0)}); });
          },
          "draws"_a,
          "Make one step for each draw, -1 for the intercept. Return the largest violation of a\n"
          "coordinate when it was drawn.")
      .def(
          "refresh", [](BorrowedDescent& self) { self.use([](auto& s) { s.refresh(); }); },
          "Compute the predictions again from the weights.")
      .def("objective",
           [](BorrowedDescent& self) { return self.use([](auto& s) { return s.objective(); }); })
      .def(
          "largest_gradient",
          [](BorrowedDescent& self) {
            return self.use([](auto& s) { return s.largest_gradient(); });
          },
          "Return the largest slope of the mean loss along a feature.")
      .def(
          "violation",
          [](BorrowedDescent& self, bool with_intercept) {
            return self.use([&](auto& s) { return s.violation(with_intercept); });
          },
          "with_intercept"_a, "Return how much the optimality conditions are violated.")
      .def(
          "steepest",
          [](BorrowedDescent& self) { return self.use([](auto& s) { return s.steepest(); }); },
          "Return the feature with the largest mean square, and this mean square.")
      .def("weights",
           [](BorrowedDescent& self) {
             return owned_array(self.use([](auto& s) { return std::vector<double>(s.weights()); }));
           })
      .def(
          "predictions",
          [](BorrowedDescent& self) {
            return owned_array(
                self.use([](auto& s) { return std::vector<double>(s.predictions()); }));
          },
          "Return z = X w + b, as updated by the steps.")
      .def("intercept",
           [](BorrowedDescent& self) { return self.use([](auto& s) { return s.intercept(); }); })
      .def(
          "state",
          [](BorrowedDescent& self) {
            const auto bytes = self.use([](auto& s) { return s.state(); });
            return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          "Return weights, intercept, and predictions as updated by the steps.")
      .def(
          "restore",
          [](BorrowedDescent& self, const nb::bytes& state) {
            const std::span bytes(reinterpret_cast<const std::byte*>(state.c_str()), state.size());
            self.use([&](auto& s) { s.restore(bytes); });
          },
          "state"_a)
      .def(
          "begin",
          [](BorrowedDescent& self, bool with_intercept) {
            return self.use([&](auto& s) { return s.begin(with_intercept); });
          },
          "with_intercept"_a,
          "Start Newton steps from zero weights and the best intercept; return the objective.")
      .def(
          "improve",
          [](BorrowedDescent& self, double goal) {
            return self.use([&](auto& s) { return s.improve(goal); });
          },
          "goal"_a,
          "Make Newton steps on a working set; return the duality gap. The goal is the gap to\n"
          "reach.")
      .def(
          "gap", [](BorrowedDescent& self) { return self.use([](auto& s) { return s.gap(); }); },
          "Return the duality gap, as of the last begin or improve.")
      .def(
          "value",
          [](BorrowedDescent& self) { return self.use([](auto& s) { return s.value(); }); },
          "Return the objective, as of the last begin or improve.")
      .def("nonzeros",
           [](BorrowedDescent& self) { return self.use([](auto& s) { return s.nonzeros(); }); })
      .def(
          "newton_state",
          [](BorrowedDescent& self) {
            const auto bytes = self.use([](auto& s) { return s.newton_state(); });
            return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          "Return the state between two calls of improve.")
      .def(
          "restore_newton",
          [](BorrowedDescent& self, const nb::bytes& state, bool with_intercept) {
            const std::span bytes(reinterpret_cast<const std::byte*>(state.c_str()), state.size());
            self.use([&](auto& s) { s.restore_newton(bytes, with_intercept); });
          },
          "state"_a, "with_intercept"_a);
}

}  // namespace bindings
