#include "thresher/discovery/discovery.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "thresher/core/archive.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/random.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/discovery/calibration.hpp"
#include "thresher/discovery/evidence.hpp"
#include "thresher/discovery/pooled_model.hpp"

namespace thresher {
namespace discovery {
namespace {

Task task_of(const std::string& name) {
  if (name == "classification") return Task::classification;
  if (name == "regression") return Task::regression;
  throw std::invalid_argument("task must be 'classification' or 'regression'; not '" + name + "'");
}

bool is_hashed(const std::string& store) {
  if (store == "hashed") return true;
  if (store == "dense") return false;
  throw std::invalid_argument("unknown store '" + store + "'");
}

template <class Real>
class DiscoveryOf final : public Discovery {
  using Model = PooledModel<Real>;

 public:
  explicit DiscoveryOf(const DiscoveryOptions& given)
      : options_(given),
        task_(task_of(given.task)),
        gates_(given.folds),
        evidence_(task_, is_hashed(given.store), given.width, given.redraws, given.seed,
                  given.folds == 1 ? 0 : given.folds, given.level),
        fits_(given.folds) {
    for (std::size_t k = 0; k < given.folds; ++k) models_.push_back(new_model());
  }

  HonestRows stream(const Batch& batch, const Visit& visit, std::uint64_t first) override {
    if (models_.size() != 1) throw std::invalid_argument("a stream has no folds");
    Model& model = *models_[0];
    HonestRows found = room_for(visit);
    Rows<Real> rows(batch, visit, options_.width);
    while (rows.next()) {
      check(rows);
      const double y = rows.label(), h = rows.weight();
      const double F = model.predict(rows);
      evidence_.open(rows);
      // The first rows are predicted by a model that knows little: their evidence counts less.
      add(rows, number_of(rows, nullptr, first), model.moments(), F, model.pooled(),
          model.calibration(), std::sqrt(weight_ + h), found);
      model.learn(y, h);
    }
    return found;
  }

  void learn(const Batch& batch, const Visit& visit, const std::int64_t* folds,
             std::size_t fold) override {
    check_fold(fold), check_folds();
    const std::lock_guard lock(gates_[fold]);
    if (!models_[fold]) throw std::invalid_argument("this fold has been finished");
    Model& model = *models_[fold];
    Rows<Real> rows(batch, visit, options_.width);
    while (rows.next()) {
      check(rows);
      if (folds[rows.row()] == static_cast<std::int64_t>(fold)) continue;
      model.predict(rows);
      model.learn(rows.label(), rows.weight());
    }
  }

  void finish(std::size_t fold) override {
    check_fold(fold), check_folds();
    if (!models_[fold]) return;
    const Model& model = *models_[fold];
    model.each_weight([&](std::uint64_t key, Real w) { evidence_.set_weight(key, fold, w); });
    fits_[fold] = {model.intercept(), model.moments()};
    models_[fold].reset();
  }

  HonestRows score(const Batch& batch, const Visit& visit, const std::int64_t* folds,
                   const std::int64_t* numbers, std::uint64_t first) override {
    for (const auto& model : models_)
      if (model) throw std::invalid_argument("all folds must be finished before rows are scored");
    HonestRows found = room_for(visit);
    Rows<Real> rows(batch, visit, options_.width);
    while (rows.next()) {
      check(rows);
      const auto fold = static_cast<std::size_t>(folds[rows.row()]);
      check_fold(fold);
      evidence_.open(rows);
      const auto [sum, weights] = evidence_.predict(fold);
      const double F = fits_[fold].intercept + sum;
      const TargetMoments& moments = fits_[fold].moments;
      add(rows, number_of(rows, numbers, first), moments, F, weights, calibration_, 1.0, found);
      if (task_ == Task::classification || moments.ready())
        calibration_.learn(task_, F, length_of(rows.nonzeros()), target(rows, moments),
                           rows.weight());
    }
    return found;
  }

  DiscoverySums sums() const override {
    struct Place {
      std::uint64_t key;
      const Real* cell;
    };
    std::vector<Place> places;
    evidence_.each([&](std::uint64_t key, const Real* cell) { places.push_back({key, cell}); });
    std::sort(places.begin(), places.end(),
              [](const Place& a, const Place& b) { return a.key < b.key; });
    DiscoverySums found;
    for (auto* numbers : {&found.rows, &found.S, &found.realised, &found.predicted})
      numbers->reserve(places.size());
    found.keys.reserve(places.size());
    for (auto* numbers : {&found.redrawn_S, &found.redrawn_D})
      if (numbers == &found.redrawn_S || evidence_.has_D())
        numbers->reserve(places.size() * evidence_.redraws());
    const auto copy = [&](const Real* from, std::vector<float>& to) {
      for (std::size_t r = 0; from && r < evidence_.redraws(); ++r)
        to.push_back(static_cast<float>(from[r]));
    };
    for (const Place& place : places) {
      const FeatureSums sums = evidence_.sums_of(place.cell);
      found.keys.push_back(place.key);
      found.rows.push_back(sums.rows), found.S.push_back(sums.S);
      found.realised.push_back(sums.realised), found.predicted.push_back(sums.predicted);
      copy(evidence_.S_of(place.cell), found.redrawn_S);
      copy(evidence_.D_of(place.cell), found.redrawn_D);
    }
    return found;
  }

  std::map<std::string, double> facts() const override {
    const Calibration& fit =
        models_.size() == 1 && models_[0] ? models_[0]->calibration() : calibration_;
    return {{"slope", fit.slope},
            {"slope_error", fit.slope_error()},
            {"intercept", fit.intercept},
            {"of_length", fit.of_length},
            {"log_loss", loss_},
            {"weight", weight_},
            {"residual_variance", fit.squares / fit.weight}};
  }
  std::size_t bytes() const override {
    std::size_t sum = evidence_.bytes();
    for (const auto& model : models_) sum += model ? model->bytes() : 0;
    return sum;
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature()), save(calibration_), save(loss_), save(weight_), save(fits_);
    for (const auto& model : models_) {
      save(std::uint8_t{model != nullptr});
      if (model) model->save(save);
    }
    evidence_.save(save);
    return save.take();
  }
  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0;
    restore(saved);
    if (saved != signature())
      throw std::invalid_argument("the state is of a discovery with other options");
    Calibration calibration;
    double loss = 0.0, weight = 0.0;
    std::vector<Fit> fits;
    restore(calibration), restore(loss), restore(weight), restore(fits);
    if (fits.size() != models_.size()) throw std::invalid_argument("the state is damaged");
    std::vector<std::unique_ptr<Model>> models;
    for (std::size_t k = 0; k < models_.size(); ++k) {
      std::uint8_t learning = 0;
      restore(learning);
      models.push_back(learning ? new_model() : nullptr);
      if (learning) models.back()->restore(restore);
    }
    auto evidence = evidence_.restored(restore);
    if (!restore.finished()) throw std::invalid_argument("the state has bytes left over");
    calibration_ = calibration, loss_ = loss, weight_ = weight;
    fits_ = std::move(fits), models_ = std::move(models);
    evidence_.take(std::move(evidence));
  }

 private:
  struct Fit {  // what a finished model leaves, besides its weights
    double intercept = 0.0;
    TargetMoments moments;
  };

  double target(const Rows<Real>& rows, const TargetMoments& moments) const {
    return task_ == Task::regression ? moments.standard(rows.label()) : rows.label();
  }

  std::unique_ptr<Model> new_model() const {
    return std::make_unique<Model>(task_, options_.store == "hashed", options_.width,
                                   options_.level);
  }

  static std::uint64_t number_of(const Rows<Real>& rows, const std::int64_t* numbers,
                                 std::uint64_t first) {
    return numbers ? static_cast<std::uint64_t>(numbers[rows.row()])
                   : first + static_cast<std::uint64_t>(rows.row());
  }

  void add(const Rows<Real>& rows, std::uint64_t number, const TargetMoments& moments, double F,
           const Real* weights, const Calibration& fit, double counts, HonestRows& found) {
    const double h = rows.weight();
    const double y = target(rows, moments);
    const double l = length_of(rows.nonzeros());
    const double prediction = fit.prediction(task_, F, l);
    const bool ready = task_ == Task::classification || moments.ready();
    if (h > 0 && ready) evidence_.add(number, y, counts * h, F, l, weights, fit);
    if (!ready) {
      found.p.push_back(moments.mean);
    } else if (task_ == Task::classification) {
      const double right = y > 0.5 ? prediction : 1.0 - prediction;
      loss_ -= h * std::log(std::max(right, least_probability));
      found.p.push_back(prediction);
    } else {
      loss_ += h * (y - prediction) * (y - prediction) / 2.0;
      found.p.push_back(moments.mean + prediction * moments.sd());
    }
    found.hashes.push_back(hash_of(rows));
    found.lengths.push_back(static_cast<std::int64_t>(rows.nonzeros()));
    weight_ += h;
  }

  static HonestRows room_for(const Visit& visit) {
    HonestRows found;
    const auto n = static_cast<std::size_t>(visit.last - visit.first);
    found.p.reserve(n), found.lengths.reserve(n), found.hashes.reserve(n);
    return found;
  }

  // Does not depend on the order of the features.
  static std::uint64_t hash_of(const Rows<Real>& rows) {
    const auto bits = [](double value) {
      return Random::mixed(std::bit_cast<std::uint64_t>(value));
    };
    std::uint64_t sum = bits(rows.label());
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows.count(); ++k) {
        const auto x = static_cast<double>(rows.values()[k]);
        if (x != 0.0) sum += Random::mixed(bits(x) + static_cast<std::uint64_t>(keys[k]));
      }
    });
    return sum;
  }

  void check(const Rows<Real>& rows) const {
    rows.check_target();
    const double y = rows.label();
    if (task_ == Task::classification && y != 0.0 && y != 1.0)
      throw DataError(rows.row(), "the label must be 0 or 1");
    if (std::fabs(y) > 1e100) throw DataError(rows.row(), "the target is larger than 1e100");
    double norm = 0.0;
    for (std::size_t k = 0; k < rows.count(); ++k)
      norm += static_cast<double>(rows.values()[k]) * static_cast<double>(rows.values()[k]);
    const double h = std::max(1.0, rows.weight());
    if (h * h * norm < (sizeof(Real) == 4 ? 1e30 : 1e250)) return;
    rows.check_values();
    if (h > 1e6) throw DataError(rows.row(), "its weight is too large for feature discovery");
    throw DataError(rows.row(), "its values are too large for feature discovery; scale them");
  }

  // The cells of a stream have no place for the weights of folds.
  void check_folds() const {
    if (models_.size() == 1) throw std::invalid_argument("a stream has no folds");
  }
  void check_fold(std::size_t fold) const {
    if (fold >= models_.size()) throw std::invalid_argument("there is no such fold");
  }

  std::uint64_t signature() const {
    const std::uint64_t sizes =
        64 * evidence_.redraws() + models_.size() + (task_ == Task::regression ? 1u << 20 : 0u);
    return signature_of<DiscoveryOf>() + Random::mixed(Random::mixed(options_.seed) + sizes);
  }

  DiscoveryOptions options_;
  Task task_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::mutex> gates_;  // of the models
  Evidence<Real> evidence_;
  std::vector<Fit> fits_;
  Calibration calibration_;  // of the finished models
  double loss_ = 0.0, weight_ = 0.0;
};

}  // namespace
}  // namespace discovery

std::unique_ptr<Discovery> make_discovery(const DiscoveryOptions& options) {
  if (options.redraws == 0 || options.redraws > 1000)
    throw std::invalid_argument("redraws must be from 1 to 1000");
  if (options.folds == 0 || options.folds > 64)
    throw std::invalid_argument("folds must be from 1 to 64");
  if (options.dtype == "float32") return std::make_unique<discovery::DiscoveryOf<float>>(options);
  if (options.dtype == "float64") return std::make_unique<discovery::DiscoveryOf<double>>(options);
  throw std::invalid_argument("dtype must be 'float32' or 'float64'; not '" + options.dtype + "'");
}

}  // namespace thresher
