// LabelLists: losses, intercepts and loss sums of many classes, with one store for all weights.
//
// For each feature of a row, x * w is added to the scores of the classes in its list. Then every
// class whose loss has a nonzero slope makes a step on the row's features. Hinge, squared hinge and
// margin losses have slope 0 if the margin is large enough. If intercepts start at the log-odds of
// the classes, nearly all classes of a row have slope 0, and each costs only one comparison.
// Logistic and squared losses always have a nonzero slope: each row makes a step in all classes,
// rows x nonzeros x classes in total, and every (feature, class) pair seen gets a weight.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/repeats.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/label_store.hpp"
#include "thresher/lanes/labels.hpp"
#include "thresher/loss/losses.hpp"
#include "thresher/loss/safe_rate.hpp"
#include "thresher/stores/dense.hpp"
#include "thresher/stores/hashed.hpp"

namespace thresher {

// Names the states of lists, as in earlier versions.
template <class Real, template <class> class Table>
class StoredLabelLists {};

template <class Real>
class LabelListsOf final : public LabelLists {
  using Store = LabelStore<Real>;
  using Ref = typename Store::Ref;

 public:
  LabelListsOf(bool dense, std::uint64_t width, const Params& params, std::size_t count)
      : params_(params),
        loss_(params.word("loss"), params.number("epsilon"), params.number("quantile")),
        enough_(loss_.idle_above()),
        fit_intercept_(params.flag("fit_intercept")),
        dense_(dense),
        store_(dense, width, params) {
    grow(count);
  }

  std::size_t count() const override { return bias_.size(); }

  void grow(std::size_t count) override {
    if (count < bias_.size()) throw std::invalid_argument("classes cannot be removed");
    if (count > Lists<Real>::most)
      throw std::invalid_argument("at most " + std::to_string(Lists<Real>::most) + " classes");
    bias_.resize(count), losses_.resize(count);
    spans_.resize(count, Span{rows_, 0, weight_, 0.0});
    stops_.resize(count);
    scores_.resize(count), own_.resize(count), slot_.resize(count);
  }

  void add(std::vector<LaneSpec> specs) override {
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (!(specs[i].params == params_) || specs[i].clock != 0 ||
          specs[i].target != static_cast<std::int64_t>(count() + i))
        throw std::invalid_argument(
            "added lanes must have the same parameters and clock, and the next classes as targets");
    grow(count() + specs.size());
  }

  void learn(const Batch& batch, const Visit& visit, const Told& told, double* before) override {
    if (!told.starts) throw std::invalid_argument("learning needs the classes of the rows");
    if (told.seen && told.clocks < 1)
      throw std::invalid_argument("seen needs a column for each clock");
    const auto asked = static_cast<std::size_t>(visit.last - visit.first);
    if (before) std::fill_n(before, asked * count(), std::numeric_limits<double>::quiet_NaN());
    seen_.clear();
    std::vector<std::int64_t> positions;
    for (std::int64_t p = visit.first; told.seen && p < visit.last; ++p)
      if (told.sees(visit.row(p), 0)) seen_.push_back(visit.row(p)), positions.push_back(p);
    const Visit own{seen_.data(), 0, static_cast<std::int64_t>(seen_.size())};
    Rows<Real> rows(batch, told.seen ? own : visit, store_.width());
    advice_.clear();
    for (std::size_t i = 0; rows.next(); ++i) {
      const std::size_t at = told.seen ? static_cast<std::size_t>(positions[i] - visit.first) : i;
      learn_row(batch, rows, told, before ? before + at * count() : nullptr);
    }
  }

  void next_pass() override { store_.clock().next_pass(); }
  void widen(std::uint64_t width) override { store_.widen(width); }

  void predict(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes, bool,
               double* out) const override {
    Rows<Real> rows(batch, visit, store_.width());
    std::vector<double> scores(count());
    typename Store::Reading reading;
    while (rows.next()) {
      store_.look_up(rows, reading);
      std::fill(scores.begin(), scores.end(), 0.0);
      store_.add_scores(rows, reading, scores.data(), [](std::size_t) {});
      const double scale = row_scale(loss_, rows);
      rows.check_values();  // includes features without weights
      for (const std::int64_t lane : lanes) {
        const auto c = static_cast<std::size_t>(lane);
        *out++ = scale * scores[c] + bias_[c];
      }
    }
  }

  SparseWeights weights(std::size_t lane, bool) const override {
    std::vector<std::pair<std::uint64_t, double>> found;
    each([&](std::uint64_t key, std::uint32_t label, double w) {
      if (label == lane) found.emplace_back(key, w);
    });
    return sorted_weights(std::move(found));
  }

  // A counting sort by class of features sorted by key.
  ClassWeights class_weights() const override {
    std::vector<std::pair<std::uint64_t, Ref>> features;
    store_.each_list([&](std::uint64_t key, Ref ref) { features.emplace_back(key, ref); });
    std::sort(features.begin(), features.end());
    std::vector<std::size_t> place(count() + 1);  // position of the next weight of each class
    each([&](std::uint64_t, std::uint32_t label, double) { ++place[label + 1]; });
    for (std::size_t c = 0; c < count(); ++c) place[c + 1] += place[c];
    ClassWeights found;
    found.classes.resize(place.back());
    found.keys.resize(place.back()), found.values.resize(place.back());
    for (const auto& feature : features)
      store_.each_in(feature.second, [&](std::uint32_t label, double w) {
        const std::size_t i = place[label]++;
        found.classes[i] = static_cast<std::int32_t>(label);
        found.keys[i] = feature.first, found.values[i] = w;
      });
    return found;
  }

  std::vector<std::int64_t> nonzeros(bool) const override {
    std::vector<std::int64_t> found(count());
    each([&](std::uint64_t, std::uint32_t label, double) { ++found[label]; });
    return found;
  }

  double intercept(std::size_t lane, bool) const override { return bias_[lane]; }
  Tally tally(std::size_t lane) const override {
    const Span& span = spans_[lane];
    const bool stopped = !stops_[lane].empty();
    return {(stopped ? span.rows_after : rows_) - span.rows_before,
            (stopped ? span.weight_after : weight_) - span.weight_before, losses_[lane], 1.0};
  }
  double rate(std::size_t) const override { return store_.clock().rate(); }
  std::string divergence(std::size_t lane) const override { return stops_[lane]; }
  std::size_t bytes() const override { return store_.bytes(); }
  std::string layout(std::size_t) const override { return "list"; }

  void plant_intercepts(std::span<const double> intercepts) override {
    bias_.assign(intercepts.begin(), intercepts.end());
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature());
    save(rows_), save(weight_), save(bias_), save(losses_), save(spans_);
    for (const std::string& stop : stops_) save(std::vector<char>(stop.begin(), stop.end()));
    store_.save(save);
    return save.take();
  }

  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0;
    restore(saved);
    if (saved != signature())
      throw std::invalid_argument("the state is of lanes of another kind or number type");
    std::int64_t rows = 0;
    double weight = 0.0;
    std::vector<double> bias, losses;
    std::vector<Span> spans;
    std::vector<std::string> stops;
    restore(rows), restore(weight), restore(bias), restore(losses), restore(spans);
    if (losses.size() != bias.size() || spans.size() != bias.size() ||
        bias.size() > Lists<Real>::most)
      throw std::invalid_argument("the state of the lanes is damaged");
    while (stops.size() < bias.size()) {
      std::vector<char> stop;
      restore(stop);
      stops.emplace_back(stop.begin(), stop.end());
    }
    Store store(dense_, store_.width(), params_);
    store.restore(restore, bias.size());
    if (!restore.finished())
      throw std::invalid_argument("the state of the lanes has bytes left over");
    store_ = std::move(store), rows_ = rows, weight_ = weight;  // nothing below throws
    bias_ = std::move(bias), losses_ = std::move(losses);
    spans_ = std::move(spans), stops_ = std::move(stops);
    scores_.resize(count()), own_.resize(count()), slot_.resize(count());
  }

 private:
  std::uint64_t signature() const {
    return dense_ ? signature_of<StoredLabelLists<Real, DenseStore>>()
                  : signature_of<StoredLabelLists<Real, HashedStore>>();
  }

  // The total numbers of rows and weights when a lane started and when it stopped.
  struct Span {
    std::int64_t rows_before, rows_after;
    double weight_before, weight_after;
  };

  // f(key, class, weight) for all nonzero weights.
  template <class F>
  void each(F&& f) const {
    store_.each_list([&](std::uint64_t key, Ref ref) {
      store_.each_in(ref, [&](std::uint32_t label, double w) { f(key, label, w); });
    });
  }

  void learn_row(const Batch& batch, Rows<Real>& rows, const Told& told, double* before) {
    double squares = 0.0;
    for (std::size_t k = 0; k < rows.count(); ++k)
      squares += static_cast<double>(rows.values()[k] * rows.values()[k]);
    if (!std::isfinite(squares)) rows.check_values();
    check_target(rows.row(), 1.0, rows.weight());
    const double scale = row_scale(loss_, rows);
    Row row{batch,
            rows,
            scale,
            scale * std::sqrt(squares),
            scale * scale * squares,
            repeats_of(rows.weight())};
    do {
      make_step(row, rows, told, before);
      before = nullptr;
    } while (++row.step < row.repeats.count);
    rows_ += 1, weight_ += rows.weight();
  }

  struct Row {
    const Batch& batch;
    const Rows<Real>& rows;
    double scale, norm, squared_norm;
    Repeats repeats;
    std::int64_t step = 0;
    double reach = 0.0;  // for steps of weight > 1
  };

  // Makes a step of all classes; none if the weight of the row is 0.
  void make_step(Row& row, Rows<Real>& rows, const Told& told, double* before) {
    std::fill(scores_.begin(), scores_.end(), 0.0);
    store_.open(rows, scores_.data());
    if (before)
      for (std::size_t c = 0; c < count(); ++c)
        if (stops_[c].empty()) before[c] = row.scale * scores_[c] + bias_[c];
    const bool steps = row.repeats.count > 0;
    if (steps) store_.clock().see(row.squared_norm, 1.0);
    if (row.repeats.weight > 1.0) row.reach = store_.clock().reach(row.squared_norm);

    mark_own(told, rows.row(), 1);
    for (const std::uint32_t c : own_classes_) decide(row, c, 1.0);
    each_unsatisfied(told.low, [&](std::size_t c) {
      if (!own_[c]) decide(row, c, told.low);
    });
    mark_own(told, rows.row(), 0);

    store_.close(rows, steps_, slot_);
    for (const auto& step : steps_) slot_[step.label] = 0;
    steps_.clear();
    if (steps) store_.finish();
  }

  // Computes the loss of a class, and records its step.
  void decide(const Row& row, std::size_t c, double y) {
    if (!stops_[c].empty()) return;
    const double p = row.scale * scores_[c] + bias_[c], weight = row.repeats.weight;
    if (!std::isfinite(p + row.norm)) return stop(row, c);
    const Outcome outcome = loss_(p, y);
    const double g =
        weight > 1.0 ? loss_.long_slope(p, y, weight, row.reach) : weight * outcome.slope;
    if (g != 0.0) {
      if (!store_.clock().fits(g * std::max(1.0, row.norm))) return stop(row, c);
      const auto label = static_cast<std::uint32_t>(c);
      steps_.push_back({label, static_cast<Real>(-store_.clock().eta() * (row.scale * g))});
      slot_[c] = static_cast<std::uint32_t>(steps_.size());
      if (fit_intercept_) bias_[c] -= store_.clock().eta_bias() * g;
    }
    if (row.step > 0) return;
    const double loss = outcome.factor == 1.0 ? outcome.value : outcome.loss();
    losses_[c] += row.rows.weight() * loss;
  }

  // f(c) for all classes whose loss for label y may be nonzero.
  template <class F>
  void each_unsatisfied(double y, F&& f) const {
    typedef double Two __attribute__((vector_size(16)));
    constexpr std::size_t block = 8;
    constexpr double largest = std::numeric_limits<double>::max();
    std::size_t c = 0;
    for (; c + block <= count(); c += block) {
      auto satisfied = Two{} == Two{};
      for (std::size_t i = 0; i < block; i += 2) {
        Two score, bias;
        std::memcpy(&score, &scores_[c + i], sizeof score);
        std::memcpy(&bias, &bias_[c + i], sizeof bias);
        const Two margin = (score + bias) * y;
        satisfied &= (margin > enough_) & (margin <= largest);
      }
      if (satisfied[0] & satisfied[1]) continue;
      for (std::size_t i = 0; i < block; ++i) f(c + i);
    }
    for (; c < count(); ++c) f(c);
  }

  void mark_own(const Told& told, std::int64_t row, std::uint8_t mark) {
    own_classes_.clear();
    for (std::int64_t i = told.starts[row]; i < told.starts[row + 1]; ++i) {
      const auto c = static_cast<std::size_t>(told.classes[i]);  // a negative number becomes huge
      if (c >= count() || own_[c] == mark) continue;
      own_[c] = mark;
      own_classes_.push_back(static_cast<std::uint32_t>(c));
    }
  }

  // Stops a lane. Its weights continue to shrink.
  void stop(const Row& row, std::size_t c) {
    if (advice_.empty()) advice_ = store_.clock().advice(safe_rate<Real>(row.batch, loss_));
    stops_[c] = divergence_message(rows_ - spans_[c].rows_before + 1, row.rows.row(), advice_);
    spans_[c].rows_after = rows_, spans_[c].weight_after = weight_;
  }

  Params params_;
  Loss loss_;
  double enough_;
  bool fit_intercept_;
  bool dense_;  // features by number, not by hash
  Store store_;
  std::int64_t rows_ = 0;  // number of rows learned by lanes that exist from the start
  double weight_ = 0.0;
  std::vector<double> bias_, losses_;  // per class
  std::vector<Span> spans_;
  std::vector<std::string> stops_;  // why a lane stopped; empty if it did not

  // For the current row or batch.
  std::vector<double> scores_;
  std::vector<std::uint8_t> own_;  // whether the row has the class
  std::vector<std::uint32_t> own_classes_;
  std::vector<typename Store::Step> steps_;
  std::vector<std::uint32_t> slot_;  // per class: 1 + its index in steps_, or 0
  std::vector<std::int64_t> seen_;
  std::string advice_;
};

}  // namespace thresher
