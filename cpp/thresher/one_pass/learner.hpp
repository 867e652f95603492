// Outputs of the rule one-pass that share rows, scales and look-ups: the loop over rows, and the
// model at its end. One output is a learner; several are the classes of a one-vs-rest model.
//
// A cell has, for each output, the weights and sums of the bank (lanes/bank_kernels.hpp); then, for
// each output, the mean of its mixed weight, in units of x / s_j; then s_j, the number of its values,
// and the time of the last row that had the feature.
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
#include "thresher/core/pack.hpp"
#include "thresher/core/row_step.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/lanes/lanes.hpp"
#include "thresher/lanes/line_store.hpp"
#include "thresher/one_pass/bank.hpp"
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
                 Output(bank_.size(), specs[0].params, lanes::kernels<Real>(level).losses)),
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
    for (; rows.next(); before += before ? count() : 0) {
      const std::int64_t row = rows.row();
      if (!told.sees(row, clock_)) {
        if (before) std::fill_n(before, count(), std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      check_target(row, batch.labels ? rows.label() : 0.0, rows.weight());
      learn_row(rows, batch, told, before);
    }
  }
  void next_pass() override {}
  void widen(std::uint64_t width) override { store_.widen(width); }

  // ---- reading -------------------------------------------------------------------------------

  void predict(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
               bool /*average*/, double* out) const override {
    const std::vector<double> least = least_energies(lanes);
    Rows<Real> rows(batch, visit, store_.width());
    typename lanes::LineStore<Real>::Work work;
    for (; rows.next(); out += lanes.size()) {
      const lanes::RowOfCells<Real> row = found(rows, store_, work);
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        const auto output = static_cast<std::size_t>(lanes[i]);
        double p = intercept(output, false);
        for (std::size_t k = 0; k < row.n; ++k)
          p += kept_weight(row.cell(k), output, least[i]) * static_cast<double>(row.x[k]);
        if (!std::isfinite(p)) rows.check_values();
        out[i] = p;
      }
    }
  }
  SparseWeights weights(std::size_t output, bool /*average*/) const override {
    const double least = least_energy(output);
    std::vector<std::pair<std::uint64_t, double>> found;
    store_.each([&](std::uint64_t key, const lanes::Cell<Real>& cell) {
      if (const double w = kept_weight(cell, output, least); w != 0.0) found.emplace_back(key, w);
    });
    return sorted_weights(std::move(found));
  }
  std::vector<std::int64_t> nonzeros(bool /*average*/) const override {
    std::vector<std::int64_t> found(count());
    for (std::size_t output = 0; output < count(); ++output) {
      const double least = least_energy(output);
      store_.each([&](std::uint64_t, const lanes::Cell<Real>& cell) {
        found[output] += kept_weight(cell, output, least) != 0.0;
      });
    }
    return found;
  }
  double intercept(std::size_t output, bool /*average*/) const override {
    return outputs_[output].intercept(gain_since(last_step_));
  }
  Tally tally(std::size_t output) const override { return outputs_[output].tally(); }
  double rate(std::size_t /*output*/) const override { return 0.0; }  // each lane has its own
  std::string divergence(std::size_t /*output*/) const override { return ""; }
  std::size_t bytes() const override { return store_.bytes(); }
  std::string layout(std::size_t /*output*/) const override {
    return level_ + " bank of " + std::to_string(bank_.size());
  }

  std::map<std::string, double> facts() const {
    std::map<std::string, double> found{{"averages", outputs_[0].averages()}};
    for (std::size_t k = 0; k < bank_.size(); ++k)
      found["mixture_" + std::to_string(k)] = outputs_[0].stack()[k];
    return found;
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature()), save(rows_), save(last_step_);
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
    double last_step = 0.0;
    restore(row_means), restore(last_step);
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
    rows_ = row_means, last_step_ = last_step, outputs_ = std::move(outputs);
    store_ = std::move(store);
    const std::lock_guard lock(reading_);
    least_.clear();
  }

 private:
  // ---- the layout of a cell ------------------------------------------------------------------

  std::size_t at(std::size_t output) const { return output * 2 * bank_.size(); }
  std::size_t weight_at(std::size_t output, std::size_t k) const {  // lines of 4, or of 8 and 4
    return at(output) + (k < 8 ? k : k + 8);
  }
  std::size_t mean_at(std::size_t output) const { return count() * 2 * bank_.size() + output; }
  std::size_t scale_at() const { return count() * (2 * bank_.size() + 1); }
  std::size_t count_at() const { return scale_at() + 1; }
  std::size_t last_at() const { return scale_at() + 2; }  // a double
  std::size_t numbers() const { return last_at() + sizeof(double) / sizeof(Real); }

  static double last_of(const Real* from) {
    double last;
    std::memcpy(&last, from, sizeof last);
    return last;
  }

  // ---- a row ---------------------------------------------------------------------------------

  template <class Store>  // a const store adds no new features
  static lanes::RowOfCells<Real> found(Rows<Real>& rows, Store& store,
                                       typename lanes::LineStore<Real>::Work& work) {
    lanes::RowOfCells<Real> row;
    rows.with_keys([&](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const std::size_t n = rows.count();
      const auto [later, fetched] = rows.template ahead<Key>(n);
      row = store.find(keys, rows.values(), n, later, fetched, work);
    });
    return row;
  }

  // The sum of |x|, and the number of values that are not 0. Throws if it is not finite.
  static std::pair<double, double> sizes(const Rows<Real>& rows) {
    double sum = 0.0, values = 0.0;
    for (std::size_t k = 0; k < rows.count(); ++k) {
      const double size = std::fabs(static_cast<double>(rows.values()[k]));
      sum += size, values += size > 0;
    }
    if (!std::isfinite(sum)) {
      rows.check_values();
      throw DataError(rows.row(), "the sum of its values overflows");
    }
    return {sum, values};
  }

  void learn_row(Rows<Real>& rows, const Batch& batch, const Told& told, double* before) {
    const auto [sum, values] = sizes(rows);
    store_.reserve(rows.count(), [](const lanes::Cell<Real>&) { return false; });
    const lanes::RowOfCells<Real> row = found(rows, store_, work_);
    rows.check_next_row();
    for (auto* numbers : {&u_, &ratio_, &gains_, &scales_, &seen_}) numbers->resize(row.n);
    mixed_.resize(4 * row.n);
    inverses_.resize(row.n * bank_.size());
    const double weight = rows.weight(), now = rows_.weight;
    // A weight is that many rows, in steps of 1, 1, 2, 4, ...
    double left = weight, size = std::min(weight, 1.0);
    for (bool first = true; first || left > 0.0; first = false) {
      const double h = std::min(size, left);
      left -= h;
      if (!first) size *= 2.0;
      see(row, h, sum, values, now, first);
      for (std::size_t o = 0; o < count(); ++o) {
        Output& output = outputs_[o];
        const double y = told.label(batch, rows.row(), targets_[o]);
        const double averaged = open(row, o, now, first && h > 0);
        if (first && before) before[o] = output.raw_prediction();
        if (first) output.judge(y, h, weight, averaged, now);
        else output.see_again(y, h);
        if (h > 0) step(row, o, h);
      }
    }
    if (weight > 0) last_step_ = now;
  }

  // Counts the row in the scales, and sets its inputs. In the first step of a row, also the share
  // that each feature's mean keeps.
  void see(const lanes::RowOfCells<Real>& row, double h, double sum, double values, double now,
           bool first) {
    if (h * values > 0) {
      rows_.values += h * values;
      rows_.size += h * (sum - values * rows_.size) / rows_.values;
    }
    const auto [own, common] = set_inputs(row, static_cast<Real>(h), now, first);
    rows_.weight += h;
    rows_.squares_own += h * own, rows_.squares_common += h * common;
    if (!(rows_.weight > 0)) return;
    for (std::size_t k = 0; k < bank_.size(); ++k) {
      const double G = rows_.G(bank_[k].own), a = bank_[k].a;
      top_[k] = static_cast<Real>(bank_[k].newton ? 1.0 : a / G);
      floor_[k] = static_cast<Real>(bank_[k].newton ? a * G * G : beta * beta);
    }
  }

  // Returns sum u^2 for the own and for the common scaling. Three loops, so that the arithmetic is
  // done in vectors: read the cells, compute, write the cells.
  std::pair<double, double> set_inputs(const lanes::RowOfCells<Real>& given, Real h, double now,
                                       bool first) {
    const lanes::RowOfCells<Real> row = given;
    const std::size_t place = scale_at(), n = row.n;  // then the count, then the last time
    Real* const cells = row.first.numbers;
    Real *const s = scales_.data(), *const seen = seen_.data(), *const gain = gains_.data();
    const double rate = now > 0 ? 1.0 / now : 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      prefetch(cells + row.later[k] * row.stride, place);
      const Real* const numbers = cells + row.numbers[k] * row.stride + place;
      s[k] = numbers[0], seen[k] = numbers[1];
      if (first) gain[k] = static_cast<Real>(1.0 - last_of(numbers + 2) * rate);
    }
    compute(row.x, n, h, static_cast<Real>(1.0 / rows_.common()), s, seen, u_.data(),
            ratio_.data());
    if (first) set_gains(gain, n);
    if (h > 0)
      for (std::size_t k = 0; k < n; ++k) {
        Real* const numbers = cells + row.numbers[k] * row.stride + place;
        numbers[0] = s[k], numbers[1] = seen[k];
        if (first) std::memcpy(numbers + 2, &now, sizeof now);
      }
    double own = 0.0, common = 0.0;
    for (std::size_t k = 0; k < n; k += pack_size) {
      const Pack<Real> u = values_at(u_.data(), k, n), v = u * values_at(ratio_.data(), k, n);
      own += (u * u).total(), common += (v * v).total();
    }
    return {own, common};
  }
  static void compute(const Real* __restrict x, std::size_t n, Real h, Real inverse,
                      Real* __restrict scales, Real* __restrict seens, Real* __restrict u,
                      Real* __restrict ratios) {
    for (std::size_t k = 0; k < n; ++k) {
      const Real size = std::fabs(x[k]), weight = size > 0 ? h : Real(0);
      const Real seen = seens[k] + weight;
      const Real s = scales[k] + weight * (size - scales[k]) / (seen > 0 ? seen : Real(1));
      const Real scale = s > 0 ? s : Real(1);
      scales[k] = s, seens[k] = seen;
      u[k] = x[k] / scale, ratios[k] = scale * inverse;
    }
  }
  // Iterates are averaged with weights t^15. If a mean was made at the part 1 - g of the time, it
  // keeps the share (1 - g)^16; this sets the rest, without cancellation.
  static void set_gains(Real* gains, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) gains[k] = gain(gains[k]);
  }
  template <class T>
  [[gnu::always_inline]] static T gain(T g) {
    for (int i = 0; i < 4; ++i) g *= T(2) - g;
    return g;
  }
  double gain_since(double last) const {
    return rows_.weight > 0 ? gain(1.0 - last / rows_.weight) : 1.0;
  }

  // Fetches the first numbers of a cell and its scale.
  [[gnu::always_inline]] static void prefetch(const Real* cell, std::size_t numbers) {
    __builtin_prefetch(cell, 1);
    __builtin_prefetch(cell + numbers, 1);
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
    const Real *const u = u_.data(), *const gains = gains_.data(), *const mixed = mixed_.data();
    double sum = 0.0;
    for (std::size_t k = 0; k < row.n; ++k) {
      Real& mean = means[row.numbers[k] * row.stride];
      const Real* const four = mixed + 4 * k;
      const Real now = (four[0] + four[1]) + (four[2] + four[3]);
      mean += gains[k] * (now - mean);
      sum += static_cast<double>(mean * u[k]);
    }
    return sum;
  }

  void step(const lanes::RowOfCells<Real>& row, std::size_t o, double h) {
    double q[most_lanes];
    outputs_[o].grow(h, growth_.data());
    kernels_.reach(row, at(o), bank(), growth_.data(), inverses_.data(), q);
    outputs_[o].step(h, q, rows_, steps_.data(), growth_.data());
    kernels_.close(row, at(o), bank(), steps_.data(), growth_.data(), inverses_.data());
  }

  lanes::Bank<Real> bank() const {
    return {own_.data(),    common_.data(), top_.data(),  floor_.data(),
            newton_.data(), u_.data(),      ratio_.data()};
  }

  // ---- the model -----------------------------------------------------------------------------

  // The weight in units of x / s_j and of standardised targets.
  double scaled_weight(const lanes::Cell<Real>& cell, std::size_t o) const {
    const Output& output = outputs_[o];
    const double s = cell.numbers[scale_at()], ratio = s / rows_.common();
    double w = 0.0;
    for (std::size_t k = 0; k < bank_.size(); ++k)
      w += output.stack()[k] * static_cast<double>(cell.numbers[weight_at(o, k)]) *
           (bank_[k].own ? 1.0 : ratio);
    if (!output.averages()) return w;
    const double mean = cell.numbers[mean_at(o)];
    return mean + gain_since(last_of(cell.numbers + last_at())) * (w - mean);
  }
  // Its energy is w^2 sum x^2, with the square of the mean for the mean of the squares.
  double energy(const lanes::Cell<Real>& cell, double w) const {
    return w * w * static_cast<double>(cell.numbers[count_at()]);
  }
  // The weight in units of x and y; 0 if its energy is not above `least`.
  double kept_weight(const lanes::Cell<Real>& cell, std::size_t o, double least) const {
    const double s = cell.numbers[scale_at()];
    if (!(s > 1e-300)) return 0.0;
    const double w = scaled_weight(cell, o);
    return energy(cell, w) > least ? outputs_[o].target().unit() * w / s : 0.0;
  }

  // The energy up to which features are cut: those of least energy, as long as their sum is at most
  // `cut` of the energy of all features or of the predictions; and all but `target_nnz`.
  double least_energy(std::size_t o) const {
    const std::lock_guard lock(reading_);
    if (least_of_ != rows_.weight || least_.empty()) {
      least_.assign(count(), -1.0);
      least_of_ = rows_.weight;
    }
    if (least_[o] < 0.0) least_[o] = find_least_energy(o);
    return least_[o];
  }
  double find_least_energy(std::size_t o) const {
    std::vector<double> energies;
    store_.each([&](std::uint64_t, const lanes::Cell<Real>& cell) {
      if (const double e = energy(cell, scaled_weight(cell, o)); e > 0.0) energies.push_back(e);
    });
    std::sort(energies.begin(), energies.end());
    double all = 0.0, sum = 0.0;
    for (const double e : energies) all += e;
    const double budget = cut_ * std::min(all, outputs_[o].spread());
    std::size_t cut = 0;
    while (cut < energies.size() && sum + energies[cut] <= budget) sum += energies[cut++];
    while (cut > 0 && cut < energies.size() && energies[cut] == energies[cut - 1]) --cut;
    if (most_nonzeros_ > 0 && static_cast<double>(energies.size() - cut) > most_nonzeros_)
      cut = energies.size() - static_cast<std::size_t>(most_nonzeros_);
    return cut > 0 ? energies[cut - 1] : 0.0;
  }
  std::vector<double> least_energies(std::span<const std::int64_t> lanes) const {
    std::vector<double> found;
    for (const std::int64_t lane : lanes)
      found.push_back(least_energy(static_cast<std::size_t>(lane)));
    return found;
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
  RowMeans rows_;
  double last_step_ = 0.0;  // the time of the last row, when it came

  std::vector<Real> own_, common_, top_, floor_, newton_, mixture_, steps_, growth_;  // per lane
  std::vector<Real> u_, ratio_, gains_, scales_, seen_, mixed_, inverses_;            // of the row
  typename lanes::LineStore<Real>::Work work_;

  mutable std::mutex reading_;
  mutable std::vector<double> least_;  // least energies after the rows so far; -1: not known
  mutable double least_of_ = -1.0;
};

}  // namespace thresher::one_pass
