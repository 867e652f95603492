// Outputs of the rule one-pass that share rows, scales and look-ups: the loop over rows, and the
// model at its end. One output is a learner; several are the classes of a one-vs-rest model.
//
// Every pass learns a model of its own, from zero weights; only the scales and the statistics of the
// targets go on. The result is the mean of these models. It does not overfit, as more passes with
// the same weights do; but passes must have different orders of the rows.
//
// A cell has, for each output, the weights and sums of the bank (lanes/bank_kernels.hpp); then, for
// each output, the mean of its mixed weight over the rows of the pass; then, for each output, the
// sum of its weights at the end of earlier passes; then s_j, the number of its values, and the time
// of the last row that had the feature. Means and sums are in units of x / s_j.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/lanes.hpp"
#include "thresher/lanes/line_store.hpp"
#include "thresher/one_pass/bank.hpp"
#include "thresher/one_pass/cut.hpp"
#include "thresher/one_pass/feature_weight.hpp"
#include "thresher/one_pass/inputs.hpp"
#include "thresher/one_pass/output.hpp"

namespace thresher::one_pass {

template <class Real>
class OnePassLanes final : public Lanes {
 public:
  // All outputs have the parameters of the first one, and its clock.
  OnePassLanes(bool hashed, std::uint64_t width, const std::vector<LaneSpec>& specs,
               const std::string& level)
      : level_(level == "auto" ? lanes::widest_level() : level),
        bank_(bank_of(static_cast<std::size_t>(specs.at(0).params.number("lanes")))),
        kernels_(lanes::kernels<Real>(level).banks[bank_.size() == most_lanes]),
        cut_(specs[0].params.number("cut")),
        most_nonzeros_(specs[0].params.number("target_nnz", 0.0)),
        clock_(specs[0].clock),
        outputs_(specs.size(),
                 Output(bank_.size(), specs[0].params,
                        lanes::kernels<Real>(level).stacks[bank_.size() == most_lanes])),
        store_(hashed, width, numbers(), 0) {
    for (const LaneSpec& spec : specs) targets_.push_back(spec.target);
    for (auto* constants :
         {&own_, &common_, &top_, &floor_, &newton_, &mixture_, &steps_, &growth_})
      constants->assign(most_lanes, Real(0));
    for (std::size_t k = 0; k < bank_.size(); ++k) {
      (bank_[k].own ? own_ : common_)[k] = 1;
      newton_[k] = bank_[k].newton;
    }
  }

  std::size_t count() const override { return outputs_.size(); }

  void learn(const Batch& batch, const Visit& visit, const Told& told, double* before) override {
    Rows<Real> rows(batch, visit, store_.width());
    work_.next_keys = nullptr;
    for (; rows.next(); before += before ? count() : 0) {
      const std::int64_t row = rows.row();
      if (!told.sees(row, clock_)) {
        if (before) std::fill_n(before, count(), std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const double label = batch.labels ? rows.label() : 0.0;
      check_target(row, label, rows.weight());
      outputs_[0].target().check_size(row, label, rows.weight());
      learn_row(rows, batch, told, before);
    }
  }
  void next_pass() override {
    for (std::size_t o = 0; o < count(); ++o) {
      const FeatureWeight<Real> weight = weight_of(o);
      store_.each_cell([&](const lanes::Cell<Real>& cell) {
        cell.numbers[total_at(o)] += static_cast<Real>(weight.of_pass(cell.numbers));
        std::fill_n(cell.numbers + at(o), 2 * bank_.size(), Real(0));
        cell.numbers[mean_at(o)] = 0;
      });
      outputs_[o].next_pass(gain_since(last_step_));
    }
    const double none = 0.0;
    store_.each_cell([&](const lanes::Cell<Real>& cell) {
      std::memcpy(cell.numbers + last_at(), &none, sizeof none);
    });
    longest_ = std::max(longest_, time_);
    time_ = last_step_ = 0.0;
    ++passes_;
    const std::lock_guard lock(reading_);
    least_.clear();
  }
  void widen(std::uint64_t width) override { store_.widen(width); }

  // ---- reading -------------------------------------------------------------------------------

  void predict(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
               bool /*average*/, double* out) const override {
    predict_with(least_energies(), batch, visit, lanes, out);
  }
  void predict_uncut(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
                     bool /*average*/, double* out) const override {
    predict_with(std::vector<double>(count(), -1.0), batch, visit, lanes, out);
  }
  SparseWeights weights(std::size_t output, bool /*average*/) const override {
    const double least = least_energies()[output];
    const FeatureWeight<Real> weight = weight_of(output);
    std::vector<std::pair<std::uint64_t, double>> found;
    found.reserve(static_cast<std::size_t>(nonzeros(false)[output]));
    store_.each([&](std::uint64_t key, const lanes::Cell<Real>& cell) {
      if (const double w = weight.kept(cell.numbers, least); w != 0.0) found.emplace_back(key, w);
    });
    return sorted_weights(std::move(found));
  }
  std::vector<std::int64_t> nonzeros(bool /*average*/) const override {
    const std::lock_guard lock(reading_);
    find_least();
    return kept_;
  }
  double intercept(std::size_t output, bool /*average*/) const override {
    return outputs_[output].intercept(gain_since(last_step_), pass_share());
  }
  Tally tally(std::size_t output) const override { return outputs_[output].tally(); }
  double rate(std::size_t /*output*/) const override { return 0.0; }  // each lane has its own
  std::string divergence(std::size_t /*output*/) const override { return ""; }
  std::size_t bytes() const override { return store_.bytes(); }
  std::string layout(std::size_t /*output*/) const override {
    return level_ + " bank of " + std::to_string(bank_.size());
  }

  std::map<std::string, double> facts() const {
    std::map<std::string, double> found{{"averages", outputs_[0].averages()},
                                        {"unit", outputs_[0].target().unit()}};
    for (std::size_t k = 0; k < bank_.size(); ++k)
      found["mixture_" + std::to_string(k)] = outputs_[0].stack()[k];
    return found;
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature()), save(inputs_.rows()), save(time_), save(last_step_), save(longest_),
        save(passes_);
    for (const Output& output : outputs_) const_cast<Output&>(output).archive(save);  // only reads
    std::uint64_t cells = 0;
    store_.each([&](std::uint64_t, const lanes::Cell<Real>&) { ++cells; });
    save(cells);
    store_.each([&](std::uint64_t key, const lanes::Cell<Real>& cell) {
      save(key), save(std::vector<Real>(cell.numbers, cell.numbers + numbers()));
    });
    return save.take();
  }
  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0, cells = 0;
    restore(saved);
    if (saved != signature())
      throw std::invalid_argument("the state is of lanes of another rule, number type or layout");
    RowMeans row_means;
    double time = 0.0, last_step = 0.0, longest = 0.0;
    std::int64_t passes = 0;
    restore(row_means), restore(time), restore(last_step), restore(longest), restore(passes);
    std::vector<Output> outputs = outputs_;
    for (Output& output : outputs) output.archive(restore);
    lanes::LineStore<Real> store = store_.empty();
    restore(cells);
    for (; cells > 0; --cells) {
      std::uint64_t key = 0;
      std::vector<Real> values;
      restore(key), restore(values);
      if (values.size() != numbers())
        throw std::invalid_argument("the state of the lanes is damaged");
      std::copy(values.begin(), values.end(), store.put(key).numbers);
    }
    if (!restore.finished())
      throw std::invalid_argument("the state of the lanes has bytes left over");
    inputs_.set_rows(row_means);
    time_ = time, last_step_ = last_step, longest_ = longest, passes_ = passes;
    outputs_ = std::move(outputs);
    store_ = std::move(store);
    const std::lock_guard lock(reading_);
    least_.clear();
  }

 private:
  // ---- the layout of a cell ------------------------------------------------------------------

  std::size_t at(std::size_t output) const { return output * 2 * bank_.size(); }
  std::size_t mean_at(std::size_t output) const { return count() * 2 * bank_.size() + output; }
  std::size_t total_at(std::size_t output) const { return mean_at(output) + count(); }
  std::size_t scale_at() const { return count() * (2 * bank_.size() + 2); }
  std::size_t count_at() const { return scale_at() + 1; }
  std::size_t last_at() const { return scale_at() + 2; }  // a double
  std::size_t numbers() const { return last_at() + (sizeof(Real) == 4 ? 2 : 1); }

  // ---- a row ---------------------------------------------------------------------------------

  void learn_row(Rows<Real>& rows, const Batch& batch, const Told& told, double* before) {
    inputs_.begin(rows);
    store_.reserve(rows.count(), [](const lanes::Cell<Real>&) { return false; });
    const lanes::RowOfCells<Real> row = told.seen ? lanes::cells_of(rows, store_, work_)
                                                  : lanes::cells_and_next(rows, store_, work_);
    rows.check_next_row();
    mixed_.resize(4 * row.n);
    inverses_.resize(row.n * bank_.size());
    const double given = rows.weight(), weight = inputs_.share(given), now = time_;
    // A weight is that many rows, in steps of 1, 1, 2, 4, ...
    double left = weight, size = std::min(weight, 1.0);
    for (bool first = true; first || left > 0.0; first = false) {
      const double h = std::min(size, left);
      left -= h;
      if (!first) size *= 2.0;
      see(row, h, now, first);
      for (std::size_t o = 0; o < count(); ++o) {
        Output& output = outputs_[o];
        const double y = told.label(batch, rows.row(), clock_, targets_[o]);
        const double averaged = open(row, o, now, first && h > 0);
        if (first && before) before[o] = output.raw_prediction();
        if (first) output.judge(y, h, weight, given, averaged, now);
        else output.see_again(y, h);
        if (h > 0) step(row, o, h);
      }
    }
    if (weight > 0) last_step_ = now, time_ = now + weight;
  }

  // Counts the row in the scales, and sets its inputs and the constants of the lanes.
  void see(const lanes::RowOfCells<Real>& row, double h, double now, bool first) {
    inputs_.see(row, scale_at(), h, now, first);
    const RowMeans& rows = inputs_.rows();
    if (!(rows.weight > 0)) return;
    for (std::size_t k = 0; k < bank_.size(); ++k) {
      const double G = rows.G(bank_[k].own), a = bank_[k].a;
      top_[k] = static_cast<Real>(bank_[k].newton ? 1.0 : a / G);
      floor_[k] = static_cast<Real>(bank_[k].newton ? a * G * G : beta * beta);
    }
  }

  // Predicts; returns the inner product of the averaged weights, if they are updated.
  double open(const lanes::RowOfCells<Real>& row, std::size_t o, double now, bool averages) {
    Output& output = outputs_[o];
    for (std::size_t k = 0; k < bank_.size(); ++k)
      mixture_[k] = static_cast<Real>(output.stack()[k]);
    double dot[most_lanes], averaged = 0.0;
    kernels_.open(row, at(o), bank(), mixture_.data(), mixed_.data(), dot);
    if (averages) {
      averaged = average(row, mean_at(o));
      output.average_intercept(now > 0 ? gain(1.0 - last_step_ / now) : 1.0);
    }
    output.predict(dot);
    return averaged;
  }

  // Updates the means of the mixed weights; returns their inner product with the row.
  double average(const lanes::RowOfCells<Real>& given, std::size_t place) {
    const lanes::RowOfCells<Real> row = given;
    Real* const means = row.first.numbers + place;
    const Real *const u = inputs_.u(), *const gains = inputs_.gains(), *const mixed = mixed_.data();
    double sums[2] = {};
    for (std::size_t k = 0; k < row.n; ++k) {
      Real& mean = means[row.numbers[k] * row.stride];
      const Real* const four = mixed + 4 * k;
      const Real now = (four[0] + four[1]) + (four[2] + four[3]);
      mean += gains[k] * (now - mean);
      sums[k % 2] += static_cast<double>(mean * u[k]);
    }
    return sums[0] + sums[1];
  }

  void step(const lanes::RowOfCells<Real>& row, std::size_t o, double h) {
    double q[most_lanes];
    outputs_[o].grow(h, growth_.data());
    kernels_.reach(row, at(o), bank(), growth_.data(), inverses_.data(), q);
    outputs_[o].step(h, q, inputs_.rows(), steps_.data(), growth_.data());
    kernels_.close(row, at(o), bank(), steps_.data(), growth_.data(), inverses_.data());
  }

  lanes::Bank<Real> bank() const {
    return {own_.data(),    common_.data(), top_.data(),     floor_.data(),
            newton_.data(), inputs_.u(),    inputs_.ratios()};
  }

  // Raw predictions by the weights whose energy is above `least` of their output.
  void predict_with(const std::vector<double>& least, const Batch& batch, const Visit& visit,
                    std::span<const std::int64_t> lanes, double* out) const {
    Rows<Real> rows(batch, visit, store_.width());
    typename lanes::LineStore<Real>::Work work;
    std::vector<FeatureWeight<Real>> weights;
    for (const std::int64_t lane : lanes)
      weights.push_back(weight_of(static_cast<std::size_t>(lane)));
    for (; rows.next(); out += lanes.size()) {
      const lanes::RowOfCells<Real> row = lanes::cells_of(rows, store_, work);
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        const auto output = static_cast<std::size_t>(lanes[i]);
        double p = intercept(output, false);
        for (std::size_t k = 0; k < row.n; ++k)
          p += weights[i].kept(row.cell(k).numbers, least[output]) * static_cast<double>(row.x[k]);
        if (!std::isfinite(p)) rows.check_values();
        out[i] = p;
      }
    }
  }

  double gain_since(double last) const { return time_ > 0 ? gain(1.0 - last / time_) : 1.0; }

  // ---- the model -----------------------------------------------------------------------------

  // How much the model of this pass counts: a pass that has not ended counts less.
  double pass_share() const { return passes_ == 0 ? 1.0 : std::min(1.0, time_ / longest_); }

  FeatureWeight<Real> weight_of(std::size_t o) const {
    const Output& output = outputs_[o];
    FeatureWeight<Real> weight{};
    weight.places = {at(o), mean_at(o), total_at(o), scale_at(), count_at(), last_at()};
    for (std::size_t k = 0; k < bank_.size(); ++k)
      weight.mixture[k] = output.stack()[k], weight.own[k] = bank_[k].own;
    weight.lanes = bank_.size(), weight.averages = output.averages(), weight.time = time_;
    weight.inverse_of_common = inputs_.inverse_of_common(), weight.unit = output.target().unit();
    weight.passes = static_cast<double>(passes_), weight.share = pass_share();
    return weight;
  }

  // The energy up to which features of each output are cut; computed once for the rows so far.
  std::vector<double> least_energies() const {
    const std::lock_guard lock(reading_);
    find_least();
    return least_;
  }
  // Computes `least_` and `kept_`; `reading_` must be locked.
  void find_least() const {
    if (least_of_ == inputs_.rows().weight && !least_.empty()) return;
    std::vector<std::vector<double>> energies(count()), useless(count());
    std::vector<FeatureWeight<Real>> weights;
    for (std::size_t o = 0; o < count(); ++o) {
      weights.push_back(weight_of(o));
      energies[o].reserve(store_.hashed_cells());
    }
    store_.each_cell([&](const lanes::Cell<Real>& cell) {
      for (std::size_t o = 0; o < count(); ++o) {
        const double w = weights[o].scaled(cell.numbers), e = weights[o].energy(cell.numbers, w);
        if (!(e > 0.0)) continue;
        energies[o].push_back(e);
        if (weights[o].usable(cell.numbers, w) == 0.0) useless[o].push_back(e);
      }
    });
    least_.resize(count()), kept_.assign(count(), 0);
    for (std::size_t o = 0; o < count(); ++o) {
      const std::size_t all = energies[o].size();
      least_[o] = least_energy(energies[o], cut_, outputs_[o].spread(), most_nonzeros_);
      kept_[o] = static_cast<std::int64_t>(all) - cut_count(energies[o], least_[o]);
      for (const double e : useless[o]) kept_[o] -= e > least_[o];
    }
    least_of_ = inputs_.rows().weight;
  }

  std::uint64_t signature() const {
    return signature_of<OnePassLanes>() ^ (bank_.size() * 4096 + count());
  }

  std::string level_;
  std::span<const Lane> bank_;
  lanes::BankKernels<Real> kernels_;
  double cut_, most_nonzeros_;  // 0: any number
  std::int64_t clock_;
  std::vector<std::int64_t> targets_;
  std::vector<Output> outputs_;
  lanes::LineStore<Real> store_;
  Inputs<Real> inputs_;
  double time_ = 0.0,
         last_step_ = 0.0;   // weight of the rows of this pass: now, and at the last row
  double longest_ = 0.0;     // weight of the rows of the longest pass
  std::int64_t passes_ = 0;  // passes that have ended

  std::vector<Real> own_, common_, top_, floor_, newton_, mixture_, steps_, growth_;  // per lane
  std::vector<Real> mixed_, inverses_;                                                // of the row
  typename lanes::LineStore<Real>::Work work_;

  mutable std::mutex reading_;
  mutable std::vector<double> least_;  // least energies after the rows so far; empty: not known
  mutable std::vector<std::int64_t> kept_;  // number of weights whose energy is above it
  mutable double least_of_ = -1.0;
};

}  // namespace thresher::one_pass
