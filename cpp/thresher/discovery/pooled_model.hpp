// The model whose residuals are the evidence: 12 lanes of FTRL with thresholds, pooled.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/learner.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/discovery/bank.hpp"
#include "thresher/discovery/calibration.hpp"
#include "thresher/discovery/kernels.hpp"
#include "thresher/lanes/line_store.hpp"

namespace thresher::discovery {

template <class Real>
class PooledModel {
 public:
  PooledModel(Task task, bool hashed, std::uint64_t width, const std::string& level)
      : task_(task),
        kernels_(kernels<Real>(level)),
        land_(lanes::kernels<Real>(level).stacks[1].land),
        store_(hashed, width, model_numbers, 0) {
    numbers_.shares.fill(1.0);
  }

  std::size_t bytes() const { return store_.bytes(); }
  const TargetMoments& moments() const { return numbers_.moments; }
  const Calibration& calibration() const { return numbers_.calibration; }

  // The pooled prediction of the row, before calibration.
  double predict(Rows<Real>& rows) {
    store_.reserve(rows.count(), [](const lanes::Cell<Real>&) { return false; });
    row_ = lanes::cells_of(rows, store_, work_);
    length_ = length_of(rows.nonzeros());
    weights_.resize(row_.n * lanes_of_model);
    four_.resize(4 * row_.n);
    pooled_.resize(row_.n);
    const std::array<double, lanes_of_model> shares = pool();
    Real rounded[lanes_of_model];
    for (std::size_t k = 0; k < lanes_of_model; ++k) rounded[k] = static_cast<Real>(shares[k]);
    kernels_.open(row_, rounded, weights_.data(), four_.data(), scores_);
    for (std::size_t k = 0; k < row_.n; ++k)
      pooled_[k] = (four_[4 * k] + four_[4 * k + 1]) + (four_[4 * k + 2] + four_[4 * k + 3]);
    double F = 0.0;
    for (std::size_t k = 0; k < lanes_of_model; ++k) {
      scores_[k] += numbers_.bias[k];
      F += shares[k] * scores_[k];
    }
    return F_ = F;
  }
  // The mean of the lanes' weights by their shares, for each nonzero of the row.
  const Real* pooled() const { return pooled_.data(); }

  // A step from the row that was predicted last. y: 0 or 1; any number in a regression.
  void learn(double y, double h) {
    if (!(h > 0)) return;
    if (task_ == Task::regression && !numbers_.moments.ready()) {
      numbers_.moments.learn(y, h);
      return;
    }
    const double target = task_ == Task::regression ? numbers_.moments.standard(y) : y;
    Real slope[lanes_of_model], growth[lanes_of_model];
    double fits[lanes_of_model];  // how well a lane predicts the target, from 0 to 1
    const double variance = numbers_.calibration.variance(task_, 0.5);
    double slopes[16], probabilities[16];
    if (task_ == Task::classification)
      land_(scores_, y > 0.5 ? 1.0 : -1.0, nullptr, slopes, probabilities);
    for (std::size_t k = 0; k < lanes_of_model; ++k) {
      double g, v;
      if (task_ == Task::classification) {
        g = slopes[k], v = std::fabs(g) * (1.0 - std::fabs(g)), fits[k] = probabilities[k];
      } else {
        g = std::clamp(scores_[k], -TargetMoments::largest, TargetMoments::largest) - target;
        v = variance, fits[k] = std::exp(-0.5 * g * g / variance);
      }
      const double grown = h * h * (g * g + 2.0 * v) / 3.0;
      slope[k] = static_cast<Real>(h * g), growth[k] = static_cast<Real>(grown);
      learn_bias(k, h * g);
    }
    kernels_.close(row_, slope, growth, weights_.data());
    numbers_.calibration.learn(task_, F_, length_, target, h);
    if (task_ == Task::regression) numbers_.moments.learn(y, h);
    learn_shares(fits, h);
  }

  // f(key, weight) for every feature with a pooled weight that is not 0.
  template <class F>
  void each_weight(F&& f) const {
    const std::array<double, lanes_of_model> shares = pool();
    Real rounded[lanes_of_model], weights[lanes_of_model], four[4];
    for (std::size_t k = 0; k < lanes_of_model; ++k) rounded[k] = static_cast<Real>(shares[k]);
    double dot[lanes_of_model];
    store_.each([&](std::uint64_t key, const lanes::Cell<Real>& cell) {
      kernels_.open(lanes::alone(cell), rounded, weights, four, dot);
      if (const Real w = (four[0] + four[1]) + (four[2] + four[3]); w != 0) f(key, w);
    });
  }
  double intercept() const {
    const std::array<double, lanes_of_model> shares = pool();
    double sum = 0.0;
    for (std::size_t k = 0; k < lanes_of_model; ++k) sum += shares[k] * numbers_.bias[k];
    return sum;
  }
  std::array<double, lanes_of_model> pool() const {
    std::array<double, lanes_of_model> shares = numbers_.shares;
    double sum = 0.0;
    for (const double share : shares) sum += share;
    for (double& share : shares) share /= sum;
    return shares;
  }

  template <class Save>
  void save(Save& io) const {
    io(numbers_);
    std::uint64_t cells = 0;
    store_.each([&](std::uint64_t, const lanes::Cell<Real>&) { ++cells; });
    io(cells);
    store_.each([&](std::uint64_t key, const lanes::Cell<Real>& cell) {
      io(key), io(std::vector<Real>(cell.numbers, cell.numbers + model_numbers));
    });
  }
  template <class Restore>
  void restore(Restore& io) {
    Numbers numbers;
    lanes::LineStore<Real> store = store_.empty();
    std::uint64_t cells = 0;
    for (io(numbers), io(cells); cells > 0; --cells) {
      std::uint64_t key = 0;
      std::vector<Real> values;
      io(key), io(values);
      if (values.size() != model_numbers) throw std::invalid_argument("the state is damaged");
      store.reserve(1, [](const lanes::Cell<Real>&) { return false; });
      std::copy(values.begin(), values.end(), store.put(key).numbers);
    }
    numbers_ = numbers, store_ = std::move(store);
  }

 private:
  struct Numbers {
    std::array<double, lanes_of_model> bias{}, bias_z{}, bias_root{}, shares{};
    Calibration calibration;
    TargetMoments moments;
  };

  // FTRL with step 1 and beta 1, without a threshold.
  void learn_bias(std::size_t k, double g) {
    const double root = std::sqrt(numbers_.bias_root[k] * numbers_.bias_root[k] + g * g);
    numbers_.bias_z[k] += g - (root - numbers_.bias_root[k]) * numbers_.bias[k];
    numbers_.bias_root[k] = root;
    numbers_.bias[k] = -numbers_.bias_z[k] / (1.0 + root);
  }

  void learn_shares(const double* fits, double h) {
    double best = 0.0;
    for (std::size_t k = 0; k < lanes_of_model; ++k) {
      const double fit = std::max(fits[k], least_probability);
      numbers_.shares[k] *= h == 1.0 ? fit : std::pow(fit, h);
      best = std::max(best, numbers_.shares[k]);
    }
    for (double& share : numbers_.shares)
      share = best > 0 ? std::max(share / best, least_share) : 1.0;
  }

  Task task_;
  const Kernels<Real>& kernels_;
  decltype(lanes::StackKernels::land) land_;
  lanes::LineStore<Real> store_;
  Numbers numbers_;

  // The row that was predicted last.
  lanes::RowOfCells<Real> row_{};
  typename lanes::LineStore<Real>::Work work_;
  std::vector<Real> weights_, four_, pooled_;
  double scores_[16] = {};
  double F_ = 0.0, length_ = 0.0;
};

}  // namespace thresher::discovery
