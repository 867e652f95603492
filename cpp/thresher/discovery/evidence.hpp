// The evidence of each feature: sums over rows of its products with honest residuals, and the same
// sums with redrawn targets.
//
// A redrawn target is y* = 1[u < p_tj] with one uniform number u per row and redraw; in a
// regression, the residual changes its sign with probability 1/2. With b = y* - p_tj, the sums of a
// redraw are
//
//   S* = sum h x b,   D* = sum h^2 x^2 (1 - 2 p) b,   V* = VP + D* / 3
//
// because b^2 - p (1 - p) = (1 - 2 p) b. S* and D* stay about as small as the root of the number of
// rows, so that float32 is exact enough. In a regression V* = V.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/error.hpp"
#include "thresher/core/random.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/discovery/calibration.hpp"
#include "thresher/discovery/kernels.hpp"
#include "thresher/lanes/line_store.hpp"

namespace thresher::discovery {

// Sums of a feature, in double precision.
struct FeatureSums {
  double rows;                 // rows with a value that is not 0
  double S;                    // sum h x e
  double realised, predicted;  // sum h^2 x^2 e^2, sum h^2 x^2 v
};

template <class Real>
class Evidence {
 public:
  // `folds`: how many models have their weights in the cells.
  Evidence(Task task, bool hashed, std::uint64_t width, std::size_t redraws, std::uint64_t seed,
           std::size_t folds, const std::string& level)
      : task_(task),
        kernels_(kernels<Real>(level)),
        redraws_(redraws),
        padded_((redraws + 3) / 4 * 4),
        seed_(seed),
        folds_(folds),
        store_(hashed, width, numbers(), 0),
        uniforms_(padded_),
        draws_(padded_),
        own_draws_(padded_) {}

  std::size_t bytes() const { return store_.bytes(); }

  void set_weight(std::uint64_t key, std::size_t fold, Real w) {
    store_.reserve(1, [](const lanes::Cell<Real>&) { return false; });
    const auto number = static_cast<std::int64_t>(key);
    store_.find(&number, &w, 1, &number, 0, work_).cell(0).numbers[weight_at(fold)] = w;
  }
  // Finds the cells of the row.
  void open(Rows<Real>& rows) {
    store_.reserve(rows.count(), [](const lanes::Cell<Real>&) { return false; });
    row_ = lanes::cells_of(rows, store_, work_);
    constexpr std::size_t line = 64 / sizeof(Real);
    for (std::size_t k = 0; k < row_.n; ++k) {  // cells of later rows
      const Real* const cell = row_.first.numbers + row_.later[k] * row_.stride;
      for (std::size_t i = 0; i < row_.stride; i += line) __builtin_prefetch(cell + i, 1);
    }
    for (auto* numbers : {&first_, &second_, &weights_}) numbers->resize(row_.n);
  }
  // The inner product with the weights of a fold; returns the weights, too.
  std::pair<double, const Real*> predict(std::size_t fold) {
    double F = 0.0;
    for (std::size_t k = 0; k < row_.n; ++k) {
      weights_[k] = row_.cell(k).numbers[weight_at(fold)];
      F += static_cast<double>(weights_[k]) * static_cast<double>(row_.x[k]);
    }
    return {F, weights_.data()};
  }

  // Adds the row. t: its number, for the redraws; y: 0 or 1, or a standardised target; F: the
  // pooled prediction; l: the length of the row; w: the pooled weights of its nonzeros.
  void add(std::uint64_t t, double y, double h, double F, double l, const Real* w,
           const Calibration& fit) {
    draw_uniforms(t);
    const double all = fit.prediction(task_, F, l);  // the prediction with all features
    bool shared = false;                             // whether some feature has the weight 0
    for (std::size_t k = 0; k < row_.n; ++k) {
      const double x = static_cast<double>(row_.x[k]), weight = static_cast<double>(w[k]);
      const double p = weight == 0.0 ? all : fit.prediction(task_, F - weight * x, l);
      sum(k, x, h, y - p, fit.variance(task_, p));
      const Real first = static_cast<Real>(h * x);
      const Real second = static_cast<Real>(h * h * x * x * (1.0 - 2.0 * p));
      if (weight == 0.0) {
        first_[k] = first, second_[k] = second, shared = true;
        continue;
      }
      first_[k] = second_[k] = 0;
      draw(p, y, own_draws_);
      lanes::RowOfCells<Real> alone = lanes::alone(row_.cell(k));
      kernels_.add(alone, sums_size, padded_, own_draws_.data(), &first,
                   has_D() ? &second : nullptr);
    }
    if (!shared) return;
    draw(all, y, draws_);
    kernels_.add(row_, sums_size, padded_, draws_.data(), first_.data(),
                 has_D() ? second_.data() : nullptr);
  }

  // f(key, cell) for every feature that occurred.
  template <class F>
  void each(F&& f) const {
    store_.each([&](std::uint64_t key, const lanes::Cell<Real>& cell) {
      if (sums_of(cell.numbers).rows > 0) f(key, static_cast<const Real*>(cell.numbers));
    });
  }
  static FeatureSums sums_of(const Real* cell) {
    FeatureSums sums;
    std::memcpy(&sums, cell, sizeof sums);
    return sums;
  }
  // S* and D* of the redraws; D* is null in a regression.
  const Real* S_of(const Real* cell) const { return cell + sums_size; }
  const Real* D_of(const Real* cell) const {
    return has_D() ? cell + sums_size + padded_ : nullptr;
  }
  std::size_t redraws() const { return redraws_; }
  bool has_D() const { return task_ == Task::classification; }

  template <class Save>
  void save(Save& io) const {
    std::uint64_t cells = 0;
    store_.each([&](std::uint64_t, const lanes::Cell<Real>&) { ++cells; });
    io(cells);
    store_.each([&](std::uint64_t key, const lanes::Cell<Real>& cell) {
      io(key), io(std::vector<Real>(cell.numbers, cell.numbers + numbers()));
    });
  }
  // The cells of a state; take() puts them in the place of the cells so far.
  template <class Restore>
  lanes::LineStore<Real> restored(Restore& io) const {
    lanes::LineStore<Real> store = store_.empty();
    std::uint64_t cells = 0;
    for (io(cells); cells > 0; --cells) {
      std::uint64_t key = 0;
      std::vector<Real> values;
      io(key), io(values);
      if (values.size() != numbers()) throw std::invalid_argument("the state is damaged");
      store.reserve(1, [](const lanes::Cell<Real>&) { return false; });
      std::copy(values.begin(), values.end(), store.put(key).numbers);
    }
    return store;
  }
  void take(lanes::LineStore<Real>&& store) { store_ = std::move(store); }

 private:
  static constexpr std::size_t sums_size = sizeof(FeatureSums) / sizeof(Real);

  std::size_t weight_at(std::size_t fold) const {
    return sums_size + (has_D() ? 2 : 1) * padded_ + fold;
  }
  std::size_t numbers() const { return weight_at(folds_); }

  // As in the stream of core/random.hpp, with a seed for each row.
  void draw_uniforms(std::uint64_t t) {
    Random random(Random::mixed(Random::mixed(seed_) + t));
    for (std::size_t r = 0; r < redraws_; ++r)
      uniforms_[r] = static_cast<Real>(static_cast<double>(random.next() >> 40) * 0x1p-24);
  }
  // b of the redraws.
  void draw(double p, double y, std::vector<Real>& draws) {
    if (task_ == Task::classification) {
      kernels_.draw(uniforms_.data(), static_cast<Real>(p), padded_, draws.data());
      return;
    }
    const Real e = static_cast<Real>(y - p);
    for (std::size_t r = 0; r < padded_; ++r) draws[r] = uniforms_[r] < Real(0.5) ? e : -e;
  }

  void sum(std::size_t k, double x, double h, double e, double v) {
    Real* const at = row_.cell(k).numbers;
    FeatureSums sums;
    std::memcpy(&sums, at, sizeof sums);
    const double d = h * x * e;
    sums.rows += x != 0.0;
    sums.S += d, sums.realised += d * d, sums.predicted += h * h * x * x * v;
    std::memcpy(static_cast<void*>(at), &sums, sizeof sums);
  }

  Task task_;
  const Kernels<Real>& kernels_;
  std::size_t redraws_, padded_;
  std::uint64_t seed_;
  std::size_t folds_;
  lanes::LineStore<Real> store_;
  std::vector<Real> uniforms_, draws_, own_draws_;

  // The row.
  lanes::RowOfCells<Real> row_{};
  typename lanes::LineStore<Real>::Work work_;
  std::vector<Real> first_, second_, weights_;
};

}  // namespace thresher::discovery
