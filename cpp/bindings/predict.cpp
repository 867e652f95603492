// Predictions of many rows by the weights of a model.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/core/error.hpp"
#include "thresher/predict/scorer.hpp"

namespace bindings {

using namespace nb::literals;

namespace {

using thresher::Batch;
using thresher::predict::Array;
using thresher::predict::Scorer;
using Scores = nb::ndarray<nb::numpy, double, nb::ndim<2>>;
using Strided = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

constexpr std::size_t brief = 4096;  // values that take less time than to get the GIL back

// Calls f(out) with memory for the scores, without the GIL if the work is long.
template <class F>
Scores scored(const Scorer& self, std::size_t rows, std::size_t work, F&& f) {
  std::unique_ptr<double[]> memory(new double[rows * self.outputs()]);
  {
    std::optional<GilRelease> release;
    if (work > brief) release.emplace();
    f(memory.get());
  }
  double* const out = memory.release();
  nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  return Scores(out, {rows, self.outputs()}, owner);
}

template <class Variant, class... T>
bool take(const AnyVector& array, Variant& into) {
  const auto try_one = [&]<class U>(std::type_identity<U>) {
    if (array.dtype() != nb::dtype<U>()) return false;
    into = static_cast<const U*>(array.data());
    return true;
  };
  return (try_one(std::type_identity<T>{}) || ...);
}

// A batch of CSR rows; the starts are checked, so that no row reaches beyond the keys.
Batch batch_of(const AnyVector& starts, const AnyVector& keys, const AnyVector& values) {
  Batch batch;
  if (starts.shape(0) == 0) throw std::invalid_argument("starts: one more than rows");
  batch.rows = static_cast<std::int64_t>(starts.shape(0)) - 1;
  if (!take<Batch::Starts, std::int32_t, std::int64_t>(starts, batch.starts))
    throw std::invalid_argument("starts: int32 or int64");
  if (!take<Batch::Keys, std::int32_t, std::int64_t>(keys, batch.keys))
    throw std::invalid_argument("keys: int32 or int64");
  if (!take<Batch::Values, float, double>(values, batch.values))
    throw std::invalid_argument("values: float32 or float64");
  if (keys.shape(0) != values.shape(0))
    throw std::invalid_argument("keys and values: the same length");
  thresher::predict::check_starts(batch, keys.shape(0));
  return batch;
}

}  // namespace

void bind_predict(nb::module_& m) {
  nb::class_<Scorer>(m, "Scorer", "Predicts rows by the weights of a model.")
      .def(
          "__init__",
          [](Scorer* self, Longs starts, Keys keys, Doubles weights, Doubles intercepts,
             std::uint64_t width, const std::string& level) {
            new (self) Scorer({starts.data(), starts.shape(0)}, {keys.data(), keys.shape(0)},
                              {weights.data(), weights.shape(0)},
                              {intercepts.data(), intercepts.shape(0)}, width, level);
          },
          "starts"_a, "keys"_a, "weights"_a, "intercepts"_a, "width"_a, "level"_a = "auto")
      .def_prop_ro("is_table", &Scorer::is_table, "Whether it has a table of all weights.")
      .def_prop_ro("bytes", &Scorer::bytes, "Its memory, in bytes.")
      .def(
          "sparse",
          [](const Scorer& self, AnyVector starts, AnyVector keys, AnyVector values,
             std::size_t threads, bool ignores) {
            const Batch batch = batch_of(starts, keys, values);
            return scored(self, static_cast<std::size_t>(batch.rows), keys.shape(0),
                          [&](double* out) { self.score(batch, ignores, threads, out); });
          },
          "starts"_a, "keys"_a, "values"_a, "threads"_a = 1, "ignores"_a = false,
          "Return the raw predictions of CSR rows, one column for each output. ignores: features\n"
          "that the model does not have are no error.")
      .def(
          "batch",
          [](const Scorer& self, const BorrowedBatch& borrowed, std::size_t threads, bool ignores) {
            const BorrowedBatch held = borrowed;
            const Batch& batch = held.batch;
            if (std::holds_alternative<std::monostate>(batch.keys))
              throw std::invalid_argument("the batch must have CSR rows");
            return scored(self, static_cast<std::size_t>(batch.rows), brief + 1,
                          [&](double* out) { self.score(batch, ignores, threads, out); });
          },
          "batch"_a, "threads"_a = 1, "ignores"_a = false, "Do the same for a batch of CSR rows.")
      .def(
          "dense",
          [](const Scorer& self, Strided rows, std::size_t threads) {
            Array array{{},
                        static_cast<std::int64_t>(rows.shape(0)),
                        static_cast<std::int64_t>(rows.shape(1)),
                        rows.stride(0),
                        rows.stride(1)};
            if (array.columns <= 1 || array.rows == 0) array.column_stride = 1;
            else if (array.rows == 1) array.row_stride = 1;
            if ((array.row_stride != 1 && array.column_stride != 1) || array.row_stride < 0 ||
                array.column_stride < 0)
              throw std::invalid_argument("rows: in C order or in Fortran order");
            if (rows.dtype() == nb::dtype<float>())
              array.values = static_cast<const float*>(rows.data());
            else if (rows.dtype() == nb::dtype<double>())
              array.values = static_cast<const double*>(rows.data());
            else throw std::invalid_argument("rows: float32 or float64");
            return scored(self, rows.shape(0), rows.shape(0) * rows.shape(1),
                          [&](double* out) { self.score(array, threads, out); });
          },
          "rows"_a, "threads"_a = 1,
          "Return the raw predictions of the rows of an array in C order or in Fortran order.");
}

}  // namespace bindings
