// What all bindings share: NumPy arrays for the core, vectors of the core as NumPy arrays, and
// locks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "gil.hpp"
#include "thresher/core/batch.hpp"
#include "thresher/core/learner.hpp"

namespace bindings {

namespace nb = nanobind;

void bind_blocks(nb::module_& m);
void bind_cache(nb::module_& m);
void bind_columns(nb::module_& m);
void bind_discovery(nb::module_& m);
void bind_lanes(nb::module_& m);
void bind_one_row(nb::module_& m);
void bind_readers(nb::module_& m);
void bind_predict(nb::module_& m);
void bind_rounds(nb::class_<thresher::Learner>& learner);
void bind_solvers(nb::module_& m);
void bind_stabilized(nb::module_& m);
void bind_stages_paper(nb::module_& m);
void bind_stages_robust(nb::module_& m);
void bind_targets(nb::module_& m);

using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Keys = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A Batch with the arrays that it borrows.
struct BorrowedBatch {
  thresher::Batch batch;
  nb::object keep[3];
  std::optional<Doubles> labels, weights, units;

  void set_targets(std::optional<Doubles> y, std::optional<Doubles> sample_weight,
                   std::optional<Doubles> loss_units = std::nullopt) {
    const auto rows = static_cast<std::size_t>(batch.rows);
    if (y && y->shape(0) != rows) throw std::invalid_argument("labels: one for each row");
    if (sample_weight && sample_weight->shape(0) != rows)
      throw std::invalid_argument("sample weights: one for each row");
    if (loss_units && loss_units->shape(0) != rows)
      throw std::invalid_argument("units: one for each row");
    labels = std::move(y), weights = std::move(sample_weight), units = std::move(loss_units);
    batch.labels = labels ? labels->data() : nullptr;
    batch.weights = weights ? weights->data() : nullptr;
    batch.units = units ? units->data() : nullptr;
  }
};

// The rows order[first:last]; checks them.
inline thresher::Visit visit_of(const BorrowedBatch& borrowed, const std::optional<Longs>& order,
                                std::int64_t first, std::optional<std::int64_t> last) {
  const std::int64_t rows = borrowed.batch.rows;
  const std::int64_t count = order ? static_cast<std::int64_t>(order->shape(0)) : rows;
  const thresher::Visit visit{order ? order->data() : nullptr, first, last.value_or(count)};
  if (visit.first < 0 || visit.first > visit.last || visit.last > count)
    throw std::invalid_argument("first and last: positions in the order of rows");
  if (order)
    for (std::int64_t i = visit.first; i < visit.last; ++i)
      if (visit.order[i] < 0 || visit.order[i] >= rows)
        throw std::invalid_argument("order: row numbers of the batch");
  return visit;
}

// A NumPy array that owns a vector of the core, or another array with data() and size().
template <class Array>
  requires(!std::is_reference_v<Array>)
auto owned_array(Array&& values) {
  using T = std::remove_cvref_t<decltype(*values.data())>;
  auto* heap = new Array(std::forward<Array>(values));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<Array*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(heap->data(), {heap->size()}, owner);
}

using Shared = std::shared_lock<std::shared_mutex>;
using Unique = std::unique_lock<std::shared_mutex>;

// Calls f() under the learner's lock. Releases the GIL first, so that a waiting thread does not
// hold it.
template <class Lock, class Learner, class F>
auto locked(const Learner& learner, F&& f) {
  GilRelease release;
  std::unique_lock<std::mutex> queue(learner.gate);
  Lock lock(learner.mutex);
  queue.unlock();
  return f();
}

}  // namespace bindings
