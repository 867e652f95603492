// Predictions for one row by the weights of a model.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"
#include "row_scores.hpp"

namespace bindings {

using namespace nb::literals;

namespace {

// Scores by the weights of a model: a table from features to (output, weight).
class ModelRow final : public RowScores {
 public:
  ModelRow(Longs indptr, Keys indices, Doubles weights, Doubles intercepts, bool scales_rows,
           double decision_at, std::optional<int> bits,
           const std::map<std::string, std::uint64_t>& numbered)
      : RowScores(options_of("float64", bits, false, numbered), intercepts.shape(0), decision_at),
        intercepts_(intercepts.data(), intercepts.data() + intercepts.shape(0)),
        scales_rows_(scales_rows) {
    if (indptr.shape(0) != outputs_ + 1 || indices.shape(0) != weights.shape(0) || indptr(0) != 0 ||
        indptr(outputs_) != static_cast<std::int64_t>(indices.shape(0)))
      throw std::invalid_argument("indptr, indices and weights must be those of a model");
    struct Entry {
      std::uint64_t key;
      Weight weight;
    };
    std::vector<Entry> entries;
    for (std::size_t output = 0; output < outputs_; ++output) {
      if (indptr(output) > indptr(output + 1))
        throw std::invalid_argument("indptr must not decrease");
      for (auto i = static_cast<std::size_t>(indptr(output));
           i < static_cast<std::size_t>(indptr(output + 1)); ++i)
        entries.push_back({indices(i), {output, weights(i)}});
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.key < b.key; });
    slots_.resize(std::bit_ceil(2 * entries.size() + 2));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Slot& slot = slots_[find(entries[i].key)];
      if (slot.begin == slot.end) slot = {entries[i].key, i, i};
      ++slot.end;
      weights_.push_back(entries[i].weight);
    }
  }

 protected:
  bool score(const DictRow& row, double* out) const override {
    std::size_t nonzeros = 0;
    for (std::size_t k = 0; k < row.count(); ++k) {
      const double x = row.value(k);
      if (!std::isfinite(x * x)) return false;
      nonzeros += x != 0.0;
      const Slot& slot = slots_[find(row.key(k))];
      for (std::size_t i = slot.begin; i < slot.end; ++i)
        out[weights_[i].output] += weights_[i].weight * x;
    }
    const double scale =
        scales_rows_ && nonzeros ? 1.0 / std::sqrt(static_cast<double>(nonzeros)) : 1.0;
    for (std::size_t o = 0; o < outputs_; ++o) out[o] = scale * out[o] + intercepts_[o];
    return true;
  }

 private:
  struct Weight {
    std::size_t output;
    double weight;
  };
  struct Slot {
    std::uint64_t key = 0;
    std::size_t begin = 0, end = 0;  // of its weights; equal: the slot is empty
  };

  std::size_t find(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (key * 0x9E3779B97F4A7C15u >> 24) & mask;
    while (slots_[at].begin != slots_[at].end && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  std::vector<double> intercepts_;
  bool scales_rows_;
  std::vector<Slot> slots_;
  std::vector<Weight> weights_;
};

}  // namespace

void bind_model_row(nb::module_& m) {
  nb::class_<RowScores>(m, "RowScores", "Predicts for one row, given as a dict.")
      .def("one", &RowScores::one, "row"_a.none(),
           nb::sig("def one(self, row: object) -> float | None"),
           "Return the decision value of the first output; None: use the general way.")
      .def("all", &RowScores::all, "row"_a.none(),
           nb::sig("def all(self, row: object) -> list[float] | None"),
           "Return the decision values of all outputs; None: use the general way.")
      .def("best", &RowScores::best, "row"_a.none(),
           nb::sig("def best(self, row: object) -> int | None"),
           "Return the output of the largest decision value; None: use the general way.");
  nb::class_<ModelRow, RowScores>(m, "ModelRow", "Predicts for one row by the weights of a model.")
      .def(nb::init<Longs, Keys, Doubles, Doubles, bool, double, std::optional<int>,
                    const std::map<std::string, std::uint64_t>&>(),
           "indptr"_a, "indices"_a, "weights"_a, "intercepts"_a, "scales_rows"_a, "decision_at"_a,
           "bits"_a.none(), "numbered"_a);
}

}  // namespace bindings
