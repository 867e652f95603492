// The rule one-pass: a bank of lanes that learn the same rows with different rates, and a stack that
// combines their predictions. There is no rate to choose.
//
//   inputs    own: u_j = x_j / s_j;  common: u_j = x_j / s.  s_j is the running mean of |x_j| over
//             the nonzeros of feature j, s the same over all features
//             G^2 = running mean over rows of sum_j u_j^2, for each of the two scalings
//   lane k    m = offset + b + sum_j w_j u_j
//   AdaGrad   R_j = (G / a) sqrt(n_j + beta^2),  n_j += h (g_0 u_j)^2 before the step
//   Newton    R_j = a G^2 + c_j,                 c_j += h L''(m') u_j^2 after the step
//   step      w_j -= h g u_j / R_j, where the slope g is that after the step:
//             g = L'(m - h q g),  q = sum_j u_j^2 / R_j.  So no step overshoots, for any rate a
//
// h is the weight of the row, g_0 the slope before the step, m' the prediction after it. Weights are
// in units of the scaled inputs: they follow when a scale changes.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>

namespace thresher::one_pass {

struct Lane {
  bool newton;
  bool own;  // its inputs are x_j / s_j, else x_j / s
  double a;
};

// The order is that of the lines of lanes/bank_kernels.hpp: eight AdaGrad lanes, then four of Newton.
inline constexpr std::array<Lane, 12> twelve_lanes{{{false, false, 0.1},
                                                    {false, false, 0.5},
                                                    {false, false, 2.0},
                                                    {false, false, 8.0},
                                                    {false, true, 0.1},
                                                    {false, true, 0.5},
                                                    {false, true, 2.0},
                                                    {false, true, 8.0},
                                                    {true, true, 0.1},
                                                    {true, true, 1.0},
                                                    {true, true, 10.0},
                                                    {true, true, 100.0}}};
inline constexpr std::array<Lane, 4> four_lanes{
    {{false, false, 8.0}, {false, true, 2.0}, {true, true, 0.1}, {true, true, 10.0}}};

inline constexpr std::size_t most_lanes = twelve_lanes.size();
inline constexpr double beta = 0.1;

inline std::span<const Lane> bank_of(std::size_t lanes) {
  if (lanes == 12) return twelve_lanes;
  if (lanes == 4) return four_lanes;
  throw std::invalid_argument("a bank has 4 or 12 lanes");
}

}  // namespace thresher::one_pass
