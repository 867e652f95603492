// The stack combines the predictions m_k of the lanes, made before they learn the row:
//
//   p = sum_k (pi_k + d_k) m_k + d_0,  pi_k proportional to exp(-cumulative loss of lane k)
//
// d is learned by implicit online Newton steps with prior precision tau. The combination is linear,
// so the result is one linear model.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "thresher/core/archive.hpp"

#include "thresher/lanes/kernels.hpp"
#include "thresher/one_pass/bank.hpp"
#include "thresher/one_pass/implicit_slope.hpp"

namespace thresher::one_pass {

class Stack {
  static constexpr std::size_t padded = 16;  // of a row of the matrix
  static constexpr double tau = 10.0;

 public:
  Stack(std::size_t lanes, bool constant, const lanes::StackKernels& kernels)
      : lanes_(lanes), one_(constant ? 1.0 : 0.0), kernels_(kernels) {
    for (std::size_t i = 0; i <= lanes; ++i) S_[i][i] = 1.0 / tau;
    products_.fill(1.0), weights_.fill(1.0);
    mix();
  }

  // The mixture: of lane k, and the constant.
  double operator[](std::size_t k) const { return mixture_[k]; }
  double constant() const { return d_[lanes_]; }
  double sum() const {
    double total = 0.0;
    for (std::size_t k = 0; k < lanes_; ++k) total += mixture_[k];
    return total;
  }

  double predict(const double* m) const {
    double p = constant();
    for (std::size_t k = 0; k < lanes_; ++k) p += mixture_[k] * m[k];
    return p;
  }

  // Learns the target y of a row of weight h, for which predict(m) gave p. Before it, weigh().
  void learn(const double* m, double p, double y, double h, double epsilon,
             const ImplicitLoss& loss) {
    std::array<double, padded> f{}, Sf{};
    std::copy_n(m, lanes_, f.begin());
    f[lanes_] = one_;
    kernels_.multiply(S_[0].data(), f.data(), lanes_ + 1, Sf.data());
    double Q = 0.0;
    for (std::size_t i = 0; i <= lanes_; ++i) Q += f[i] * Sf[i];
    const Landing landing = loss.land(p, y, h * Q, epsilon);
    const double curvature = h * std::max(landing.curvature, least_curvature);
    const double step = h * landing.slope, shrink = curvature / (1.0 + curvature * Q);
    for (std::size_t i = 0; i <= lanes_; ++i) d_[i] -= step * Sf[i];
    kernels_.shrink(S_[0].data(), Sf.data(), lanes_ + 1, shrink);
    mix();
  }

  // Counts the losses of the lanes.
  void weigh(double h, const double* losses) {
    for (std::size_t k = 0; k < lanes_; ++k) cumulative_[k] += h * losses[k];
    settle();
  }
  // The same for the losses -ln(probability) and weight 1, with a logarithm only now and then.
  void weigh_by_probabilities(const double* probabilities) {
    double least = 1.0;
    for (std::size_t k = 0; k < lanes_; ++k)
      least = std::min(least, products_[k] * probabilities[k]);
    if (least < 1e-200) settle();  // a product of two tiny numbers could be 0
    for (std::size_t k = 0; k < lanes_; ++k) products_[k] *= probabilities[k];
    if (++pending_ >= 16 || least < 1e-200) settle();
  }

  template <class Archive>
  void archive(Archive& io) {
    io(S_), io(d_), io(cumulative_), io(weights_), io(products_), io(pending_);
    if constexpr (std::is_same_v<Archive, Restorer>) mix();  // saving only reads
  }

 private:
  static constexpr double least_curvature = 1e-6;

  void settle() {
    for (std::size_t k = 0; k < lanes_; ++k)
      cumulative_[k] -= std::log(std::exchange(products_[k], 1.0));
    const double best = *std::min_element(cumulative_.begin(), cumulative_.begin() + lanes_);
    for (std::size_t k = 0; k < lanes_; ++k) weights_[k] = std::exp(best - cumulative_[k]);
    pending_ = 0;
  }
  void mix() {
    double total = 0.0;
    for (std::size_t k = 0; k < lanes_; ++k) total += mixture_[k] = weights_[k] * products_[k];
    for (std::size_t k = 0; k < lanes_; ++k) mixture_[k] = mixture_[k] / total + d_[k];
  }

  std::size_t lanes_;
  double one_;  // the input of d_0; 0: there is no constant
  lanes::StackKernels kernels_;
  std::array<std::array<double, padded>, padded> S_{};  // the inverse of the precision of d
  std::array<double, padded> d_{}, mixture_{};
  // exp(-loss) of a lane is proportional to weights_[k] products_[k]; cumulative_ has the losses of
  // weights_, and products_ those since.
  std::array<double, padded> cumulative_{}, weights_{}, products_{};
  std::int64_t pending_ = 0;  // rows in products_
};

}  // namespace thresher::one_pass
