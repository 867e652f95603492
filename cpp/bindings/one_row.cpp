// One row at a time, given as a Python dict: learning and predicting without NumPy arrays.
//
// A call takes a few microseconds and keeps the GIL. Where it returns None it has changed nothing,
// and the caller uses the general way: a row of unusual types, a row or a label that is not valid,
// a record that is due, a new class, a changed parameter, or a learner that another thread uses.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"
#include "python_calls.hpp"
#include "row_scores.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/target_scale.hpp"
#include "thresher/io/wanted_names.hpp"
#include "thresher/lanes/lanes.hpp"
#include "thresher/loss/losses.hpp"

namespace bindings {

using namespace nb::literals;

namespace {

using thresher::Batch;
using thresher::Lanes;
using thresher::Learner;
using thresher::Visit;
using thresher::io::NameTable;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A number; false if the object is not a float or an int.
bool number_of(nb::handle object, double& number) {
  if (PyFloat_Check(object.ptr())) {
    number = float_value(object.ptr());
    return true;
  }
  if (!PyLong_Check(object.ptr())) return false;
  number = PyLong_AsDouble(object.ptr());
  if (number != -1.0 || !PyErr_Occurred()) return true;
  PyErr_Clear();
  return false;
}

// The value of a label in a dict; null if it is not there, or cannot be a key.
PyObject* found_in(const nb::dict& dict, nb::handle label) {
  PyObject* const found = PyDict_GetItemWithError(dict.ptr(), label.ptr());
  if (!found && PyErr_Occurred()) PyErr_Clear();
  return found;
}

// Learns and predicts with the learners of an estimator: one learner, or lanes in groups.
class LearnerRow final : public RowScores {
 public:
  using Scale = std::tuple<Table, bool, std::int64_t>;     // states, centred, degree
  using LossOf = std::tuple<std::string, double, double>;  // name, epsilon, quantile
  using Range = std::tuple<double, double>;                // smallest and largest label

  LearnerRow(nb::list learners, std::optional<std::vector<std::int64_t>> lane_of,
             const std::string& dtype, std::optional<int> bits, double decision_at, bool average,
             bool uncut)
      : RowScores(options_of(dtype, bits, false), lane_of ? lane_of->size() : 1, decision_at),
        kept_(learners),
        average_(average),
        uncut_(uncut) {
    if (nb::len(learners) == 0) throw std::invalid_argument("learners: at least one");
    if (!lane_of) {
      learner_ = nb::cast<Learner*>(learners[0]);
      return;
    }
    std::size_t lanes = 0;
    for (nb::handle group : learners) {
      groups_.push_back(nb::cast<thresher::GrowingLanes*>(group));
      const std::size_t count = groups_.back()->count();
      std::vector<std::int64_t>& numbers = numbers_.emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::int64_t>(i);
      lanes += count;
    }
    lane_of_ = std::move(*lane_of);
    for (const std::int64_t lane : lane_of_)
      if (lane < 0 || static_cast<std::size_t>(lane) >= lanes)
        throw std::invalid_argument("lane_of: numbers of lanes");
    if (lanes == 0) throw std::invalid_argument("learners: at least one lane");
  }

  // Standardised targets: `states` as in bind_targets. Also without learning: predictions need it.
  void set_scale(Scale scale) {
    if (std::get<0>(scale).shape(0) != 1 ||
        std::get<0>(scale).shape(1) != thresher::TargetScale::numbers || !learner_)
      throw std::invalid_argument("scale: the state of one clock, and one learner");
    scale_ = std::move(scale);
  }

  // Lets learn() work.
  void set_learning(const nb::dict& params, std::optional<nb::dict> targets,
                    std::optional<nb::dict> factors, Range range, double low, LossOf loss,
                    NameTable& names, nb::object kept_names, std::size_t most_names,
                    bool only_unit_weights) {
    if (!groups_.empty() && !targets) throw std::invalid_argument("targets: the lanes of classes");
    params_ = params, targets_ = std::move(targets), factors_ = std::move(factors);
    range_ = range, low_ = low;
    loss_.emplace(std::get<0>(loss), std::get<1>(loss), std::get<2>(loss));
    learning_ = options_, learning_.named = true;
    recent_.assign(std::size_t{1} << 13, 0);
    recent_[0] = 1;  // marks slot 0 as empty, as 0 marks the others: neither is a key of its slot
    names_ = &names, kept_names_ = std::move(kept_names), most_names_ = most_names;
    only_unit_weights_ = only_unit_weights;
  }

  // Returns the loss of predicting zero for the row, or None.
  nb::object learn(nb::dict attributes, nb::handle given, nb::handle label, nb::handle weight) {
    double w = 0.0, target = 0.0;
    if (!names_ || names_->names().size() > most_names_ || is_changed(attributes) ||
        !number_of(weight, w) || !target_of(label, w, target))
      return nb::none();
    if (!(w >= 0.0 && std::isfinite(w)) || (only_unit_weights_ && w != 1.0)) return nb::none();
    DictRow& row = row_of_call();
    if (!row.read(given, learning_)) return nb::none();
    const nb::object zero = learn_batch(row.batch(), target, w);
    if (!zero.is_none()) keep_names(row);
    return zero;
  }

  // The same for a row of a matrix; its features have no names.
  nb::object learn_numbered(nb::dict attributes, const BorrowedBatch& row, nb::handle label) {
    double w = 1.0, target = 0.0;
    if (!names_ || row.batch.rows != 1 || is_changed(attributes) || !target_of(label, w, target))
      return nb::none();
    if (!(w >= 0.0 && std::isfinite(w)) || (only_unit_weights_ && w != 1.0)) return nb::none();
    return learn_batch(row.batch, target, w);
  }

  // For the garbage collector: a parameter may refer to the estimator that has this object.
  template <class Visit>
  int traverse(Visit&& visit) const {
    for (PyObject* const object : {kept_.ptr(), params_.ptr(), targets_ ? targets_->ptr() : nullptr,
                                   factors_ ? factors_->ptr() : nullptr, kept_names_.ptr()})
      if (const int result = object ? visit(object) : 0) return result;
    return 0;
  }
  void clear() {
    names_ = nullptr;
    params_.reset(), targets_.reset(), factors_.reset(), kept_names_.reset();
  }

 protected:
  bool score(const DictRow& row, double* out) const override {
    const Batch batch = row.batch();
    const Visit visit{nullptr, 0, 1};
    try {
      return learner_ ? score_alone(batch, visit, out) : score_lanes(batch, visit, out);
    } catch (const thresher::DataError&) {
      return false;
    }
  }

 private:
  // Learns one row; returns the loss of predicting zero, or None if it was not learned.
  nb::object learn_batch(Batch batch, double target, double weight) {
    batch.weights = &weight;
    double zero = 0.0;
    try {
      if (!(learner_ ? learn_alone(batch, target, zero)
                     : learn_lanes(batch, static_cast<std::int32_t>(target), zero)))
        return nb::none();
    } catch (const thresher::DataError&) {
      return nb::none();
    }
    return nb::float_(zero);
  }

  void keep_names(const DictRow& row) {
    for (std::size_t k = 0; k < row.count(); ++k) {
      std::uint64_t& recent = recent_[row.key(k) % recent_.size()];
      if (recent == row.key(k)) continue;  // faster than a lookup in the table
      recent = row.key(k);
      names_->add(row.key(k), row.name(k));
    }
  }

  bool is_changed(const nb::dict& attributes) const {
    PyObject *name = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(params_.ptr(), &at, &name, &value))
      if (PyDict_GetItemWithError(attributes.ptr(), name) != value) {
        if (PyErr_Occurred()) PyErr_Clear();
        return true;
      }
    return false;
  }

  // Records are made after 128, 256, 512 ... rows, by the general way.
  static bool is_record_due(std::int64_t learned) {
    const auto rows = static_cast<std::uint64_t>(learned);
    return rows + 1 >= std::max<std::uint64_t>(128, std::uint64_t{1} << std::bit_width(rows));
  }

  // Sets the target, or the lane of the class, and multiplies the weight by that of its class.
  bool target_of(nb::handle label, double& weight, double& target) const {
    if (!targets_)
      return number_of(label, target) && std::isfinite(target) && std::get<0>(range_) <= target &&
             target <= std::get<1>(range_);
    PyObject* const found = found_in(*targets_, label);
    if (!found || !number_of(found, target)) return false;
    if (!factors_) return true;
    double factor = 0.0;
    PyObject* const of_class = found_in(*factors_, label);
    if (!of_class || !number_of(of_class, factor)) return false;
    weight *= factor;
    return true;
  }

  bool learn_alone(Batch& batch, double target, double& zero) {
    const std::unique_lock lock(learner_->mutex, std::try_to_lock);
    if (!lock.owns_lock() || is_record_due(learner_->tally().rows())) return false;
    double unit = 1.0;
    std::optional<thresher::TargetScale> scale;
    if (scale_) {
      const auto& [states, centred, degree] = *scale_;
      if (std::fabs(target) > thresher::TargetScale::largest) return false;
      scale.emplace(states.data(), centred);
      scale->count(target, *batch.weights);
      target = scale->standardised(target), unit = scale->unit(degree);
      batch.units = &unit;
    }
    batch.labels = &target;
    zero = unit * (*loss_)(0.0, target).loss();
    learner_->learn(batch, Visit{nullptr, 0, 1});
    if (scale) {
      double* out = std::get<0>(*scale_).data();
      for (const double number : scale->state()) *out++ = number;
    }
    return true;
  }

  bool learn_lanes(const Batch& batch, std::int32_t lane, double& zero) {
    std::vector<std::unique_lock<std::shared_mutex>> locks;
    for (Lanes* const group : groups_)
      if (!locks.emplace_back(group->mutex, std::try_to_lock).owns_lock()) return false;
    if (is_record_due(groups_[0]->tally(0).rows())) return false;
    const std::int64_t starts[2] = {0, 1};
    thresher::Told told;
    told.starts = starts, told.classes = &lane, told.low = low_;
    const double others = (*loss_)(0.0, low_).loss(), own = (*loss_)(0.0, 1.0).loss();
    zero = others + (own - others) / static_cast<double>(outputs_);
    for (Lanes* const group : groups_) group->learn(batch, Visit{nullptr, 0, 1}, told, nullptr);
    for (const Lanes* const group : groups_)
      for (std::size_t i = 0; i < group->count(); ++i)
        if (std::string why = group->divergence(i); !why.empty()) throw thresher::Divergence(why);
    return true;
  }

  bool score_alone(const Batch& batch, const Visit& visit, double* out) const {
    const std::shared_lock lock(learner_->mutex, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    if (uncut_) learner_->predict_uncut(batch, visit, average_, out);
    else learner_->predict(batch, visit, average_, out);
    if (!scale_) return true;
    const double* const state = std::get<0>(*scale_).data();
    out[0] = state[1] + state[2] * out[0];  // mean, sd
    return true;
  }

  bool score_lanes(const Batch& batch, const Visit& visit, double* out) const {
    thread_local std::vector<double> found;
    found.clear();
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Lanes& group = *groups_[i];
      const std::shared_lock lock(group.mutex, std::try_to_lock);
      if (!lock.owns_lock() || group.count() != numbers_[i].size()) return false;
      const std::size_t at = found.size();
      found.resize(at + numbers_[i].size());
      if (uncut_) group.predict_uncut(batch, visit, numbers_[i], average_, found.data() + at);
      else group.predict(batch, visit, numbers_[i], average_, found.data() + at);
    }
    for (std::size_t k = 0; k < outputs_; ++k)
      out[k] = found[static_cast<std::size_t>(lane_of_[k])];
    return true;
  }

  nb::object kept_;  // owns the learners
  Learner* learner_ = nullptr;
  std::vector<Lanes*> groups_;
  std::vector<std::vector<std::int64_t>> numbers_;  // of the lanes of each group
  std::vector<std::int64_t> lane_of_;               // of each output
  bool average_, uncut_;
  std::optional<Scale> scale_;

  nb::dict params_;                            // as they were when learning began
  std::optional<nb::dict> targets_, factors_;  // by label; none: labels are numbers
  Range range_{0.0, 0.0};
  double low_ = -1.0;  // target of other classes
  std::optional<thresher::Loss> loss_;
  DictRowOptions learning_;            // the options of rows to learn: with names
  std::vector<std::uint64_t> recent_;  // the last key with a name, per value of its lower bits
  NameTable* names_ = nullptr;         // null: it does not learn
  nb::object kept_names_;
  std::size_t most_names_ = 0;
  bool only_unit_weights_ = false;  // others need the general way
};

int traverse_row(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<LearnerRow>(self)->traverse(
      [&](PyObject* object) { return visit(object, arg); });
}
int clear_row(PyObject* self) {
  nb::inst_ptr<LearnerRow>(self)->clear();
  return 0;
}
PyType_Slot row_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_row)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear_row)},
                           {0, nullptr}};

}  // namespace

void bind_one_row(nb::module_& m) {
  bind_model_row(m);
  nb::class_<LearnerRow, RowScores>(m, "LearnerRow", nb::type_slots(row_slots),
                                    "Learns and predicts one row with the learners of a model.")
      .def(nb::init<nb::list, std::optional<std::vector<std::int64_t>>, const std::string&,
                    std::optional<int>, double, bool, bool>(),
           "learners"_a, "lane_of"_a.none(), "dtype"_a, "bits"_a.none(), "decision_at"_a,
           "average"_a, "uncut"_a)
      .def("set_scale", &LearnerRow::set_scale, "scale"_a,
           "Set the states of standardised targets, whether they are centred, and the degree.")
      .def(
          "set_learning",
          [](LearnerRow& self, const nb::dict& params, std::optional<nb::dict> targets,
             std::optional<nb::dict> factors, LearnerRow::Range range, double low,
             LearnerRow::LossOf loss, nb::object names, std::size_t most_names,
             bool only_unit_weights) {
            self.set_learning(params, std::move(targets), std::move(factors), range, low,
                              std::move(loss), nb::cast<NameTable&>(names), names, most_names,
                              only_unit_weights);
          },
          "params"_a, "targets"_a.none(), "factors"_a.none(), "range"_a, "low"_a, "loss"_a,
          "names"_a, "most_names"_a, "only_unit_weights"_a,
          "Let it learn. targets: the target, or the lane, of each label; None: labels are "
          "numbers.\n"
          "factors: the weight of each label's class. names: receives names, up to `most_names`.")
      .def("learn_numbered", &LearnerRow::learn_numbered, "attributes"_a, "row"_a, "label"_a.none(),
           nb::sig("def learn_numbered(self, attributes: dict[str, typing.Any], row: Batch, "
                   "label: object) -> float | None"),
           "Do the same for a batch of one row.")
      .def(
          "learn", &LearnerRow::learn, "attributes"_a, "row"_a.none(), "label"_a.none(),
          "weight"_a.none(),
          nb::sig("def learn(self, attributes: dict[str, typing.Any], row: object, label: object, "
                  "weight: object) -> float | None"),
          "Learn a row. Return the loss of predicting zero for it. None: nothing was learned; use\n"
          "the general way. `attributes`: of the estimator, whose parameters must not have "
          "changed.");
}

}  // namespace bindings
