// Feature discovery: does the target depend on feature j beyond what the other features explain?
// The evidence is measured on rows that the model has not learned.
//
//   model     12 lanes of FTRL with a threshold. For lane k, with step a_k and threshold l_k,
//             n_j = sum h^2 x_j^2 (g^2 + 2 v) / 3       g = f - y, v = p (1 - p) or sigma^2
//             z_j += h g x_j - (sqrt(n_j') - sqrt(n_j)) w_j / a_kj,   a_kj = a_k / rms(x_j)
//             w_j = -a_kj soft(z_j, l_k sqrt(n_j)) / sqrt(n_j)
//             Lanes are pooled by exponential weights of their progressive loss, and the pooled
//             prediction F is calibrated by a slope, an intercept, and an effect of the length of
//             the row.
//   evidence  p_tj is the prediction for row t without feature j, from other rows only:
//             S_j = sum h x (y - p_tj),  V_j = sum h^2 x^2 ((y - p_tj)^2 + 2 p_tj (1 - p_tj)) / 3,
//             z_j = S_j / sqrt(V_j)
//             In a stream, h includes the root of the weight of the rows so far: the first rows
//             are predicted by a model that knows little.
//   null      R times the same sums with targets that are drawn from p_tj: no model is learned
//
// h is the weight of a row. The thresholds are in standard deviations of the sum of gradients, so
// that few features without effect enter the model.
#pragma once

#include <array>
#include <cstddef>

namespace thresher::discovery {

inline constexpr std::size_t lanes_of_model = 12;

inline constexpr std::array<double, lanes_of_model> steps{.03, .03, .03, .1, .1, .1,
                                                          .3,  .3,  .3,  1., 1., 1.};
inline constexpr std::array<double, lanes_of_model> thresholds{1., 2., 3., 1., 2., 3.,
                                                               1., 2., 3., 1., 2., 3.};

inline constexpr double largest_score = 30.0;      // of |F|
inline constexpr double least_probability = 1e-9;  // of a label, in the weights of the lanes
inline constexpr double least_share = 1e-300;      // of a lane, relative to the best lane

}  // namespace thresher::discovery
