// The stabilized rule for Python: stages on threads, with checks for Ctrl-C between them.
#include "casters.hpp"
#include "thresher/stabilized/learner.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/unique_ptr.h>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "arrays.hpp"
#include "thresher/core/random.hpp"

namespace bindings {

using namespace nb::literals;
using thresher::StabilizedLearner;
using thresher::Stage;

namespace {

// Calls f in its destructor.
template <class F>
struct Finally {
  explicit Finally(F f) : f_(std::move(f)) {}
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;
  ~Finally() { f_(); }

 private:
  F f_;
};

nb::bytes bytes_of(const StabilizedLearner::State& state) {
  return nb::bytes(reinterpret_cast<const char*>(state.data()), state.size());
}

void learn(StabilizedLearner& self, const BorrowedBatch& batch, std::int64_t passes, double tol,
           std::size_t jobs, const nb::callable& on_stage,
           const std::optional<nb::callable>& between_stages,
           const std::optional<nb::bytes>& resume) {
  if (!batch.batch.labels) throw std::invalid_argument("learning needs labels");
  const BorrowedBatch held = batch;
  using Clock = std::chrono::steady_clock;
  Clock::time_point called = Clock::now();
  bool just_called = false;
  Clock::time_point between = called;
  StabilizedLearner::Callbacks callbacks;
  callbacks.go_on = [&](const Stage& stage) {
    const std::int64_t number = stage.number;
    const bool marked = number > 0 && (number < 64 || (number & (number - 1)) == 0);
    const Clock::time_point now = Clock::now();
    just_called = marked || now - called >= std::chrono::milliseconds(100);
    if (!just_called) return true;
    called = now;
    GilAcquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!marked && !between_stages) return true;
    return nb::cast<bool>(on_stage(marked ? stage : Stage{}));
  };
  callbacks.between_stages = [&](const std::function<StabilizedLearner::State()>& state) {
    if (!between_stages) return;
    const Clock::time_point now = Clock::now();
    if (!just_called && now - between < std::chrono::milliseconds(100)) return;
    between = now;
    GilAcquire acquire;
    const auto in_callback = std::make_shared<bool>(true);
    const auto get = [in_callback, &state] {
      if (!*in_callback)
        throw std::invalid_argument("state() can only be called within the callback");
      return bytes_of(state());
    };
    const Finally ends([&] { *in_callback = false; });
    (*between_stages)(nb::cpp_function(get));
  };
  std::span<const std::byte> from;
  if (resume) from = {reinterpret_cast<const std::byte*>(resume->c_str()), resume->size()};
  locked<Unique>(self, [&] { self.learn(held.batch, passes, tol, jobs, callbacks, from); });
}

}  // namespace

void bind_stabilized(nb::module_& m) {
  nb::class_<Stage>(m, "Stage", "The state of the stabilized rule at the end of a stage.")
      .def_ro("number", &Stage::number)
      .def_ro("rows", &Stage::rows)
      .def_ro("gravity", &Stage::gravity)
      .def_ro("beta", &Stage::beta)
      .def_ro("d", &Stage::d)
      .def_ro("stable", &Stage::stable)
      .def_ro("burst", &Stage::K)
      .def_ro("loss_sum", &Stage::loss_sum)
      .def_ro("weight_sum", &Stage::weight_sum);

  nb::class_<StabilizedLearner>(m, "StabilizedLearner", "Several paths that learn in stages.")
      .def("learn", &learn, "batch"_a, "passes"_a, "tol"_a, "jobs"_a, "on_stage"_a,
           "between_stages"_a = nb::none(), "resume"_a = nb::none(),
           "Make stages until every path has made `passes` passes. on_stage(stage) is called at\n"
           "stages 1 to 64, 128, 256, ...; learning ends when it returns False.\n"
           "between_stages(state) is called between stages: a call with the same rows and\n"
           "arguments, with the bytes of state() as `resume`, continues with the same bits. With\n"
           "between_stages, on_stage also gets a stage of number 0 every 0.1 s, also within a\n"
           "stage: it may raise an error.")
      .def("weights",
           [](const StabilizedLearner& self) {
             auto found = locked<Shared>(self, [&] { return self.weights(); });
             return std::tuple(owned_array(std::move(found.keys)),
                               owned_array(std::move(found.values)));
           })
      .def("intercept",
           [](const StabilizedLearner& self) {
             return locked<Shared>(self, [&] { return self.intercept(); });
           })
      .def(
          "findings",
          [](const StabilizedLearner& self) {
            auto found = locked<Shared>(self, [&] { return self.findings(); });
            return std::tuple(
                owned_array(std::move(found.keys)), owned_array(std::move(found.probability)),
                owned_array(std::move(found.updates)), owned_array(std::move(found.purged)));
          },
          "Return the features seen, and for each its selection probability, number of updates\n"
          "and stage of purge.")
      .def(
          "label_z",
          [](const StabilizedLearner& self) {
            return owned_array(locked<Shared>(self, [&] { return self.findings().z; }));
          },
          "Return z of feature and label for each feature of `findings`; empty if the variant "
          "does\n"
          "not record it, NaN if the state is of version 0.1.0.")
      .def(
          "has_signal",
          [](const StabilizedLearner& self) {
            return locked<Shared>(self, [&] { return self.has_signal(); });
          },
          "Return False if no model was better than the intercept alone.")
      .def("state",
           [](const StabilizedLearner& self) {
             return bytes_of(locked<Shared>(self, [&] { return self.state(); }));
           })
      .def(
          "restore",
          [](StabilizedLearner& self, const nb::bytes& state) {
            const std::span bytes(reinterpret_cast<const std::byte*>(state.c_str()), state.size());
            locked<Unique>(self, [&] { self.restore(bytes); });
          },
          "state"_a);

  m.def(
      "make_stabilized",
      [](const std::string& variant, const std::string& dtype, std::uint64_t width,
         std::map<std::string, double> numbers, std::map<std::string, std::string> words) {
        return thresher::make_stabilized(variant, dtype, width,
                                         {std::move(numbers), std::move(words)});
      },
      "variant"_a, "dtype"_a, "width"_a, "numbers"_a, "words"_a);

  m.def(
      "path_order",
      [](std::uint64_t seed, std::uint64_t path, std::uint64_t pass, std::int64_t rows) {
        return owned_array(thresher::permutation(seed, path, pass, rows));
      },
      "seed"_a, "path"_a, "number"_a, "rows"_a,
      "The order of the rows for a path of the stabilized rule.");
}

}  // namespace bindings
