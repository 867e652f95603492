// The same problem as coordinate_descent.hpp, solved by Newton steps on working sets, and certified
// by a duality gap.
//
//   primal   min  F(w, b) = (1/S) sum_i s_i L(z_i, y_i) + lambda ||w||_1,   z = X w + b
//   dual     max  D(u) = -sum_i (s_i / S) L*(S u_i / s_i, y_i)
//            with |x_j . u| <= lambda for all j, and sum_i u_i = 0 if there is an intercept
//
// Any feasible u has D(u) <= min F, so F(w, b) - D(u), the gap, bounds F(w, b) - min F.
//
//   u        s_i L'(z_i, y_i) / S, made feasible: of its positive and its negative part, the larger
//            one is scaled so that they have the same sum (with an intercept); then u is scaled by
//            min(1, lambda / max_j |x_j . u|). The domain of L* is an interval with 0 in it, so
//            scaling does not leave it.
//   screening (Ndiaye, Fercoq, Gramfort, Salmon, JMLR 2017: gap safe rules)  D is strongly concave:
//            |x_j . u| + sqrt(2 beta gap sum_i s_i x_ij^2 / S) < lambda  proves w_j = 0 at the
//            optimum, where beta bounds the curvature of the loss
//   working set (Massias, Gramfort, Salmon, ICML 2018: celer)  the nonzero weights, and as many
//            others with the largest (|x_j . u| - lambda) / ||x_j||
//   Newton step (Yuan, Ho, Lin, JMLR 2012: newGLMNET)  d = argmin  g.d + d'Hd / 2 + lambda ||w +
//            d||_1 by cyclic coordinate descent, then w + t d with the first t = 1, 1/2, 1/4, ...
//            with  F(w + t d) - F(w) <= sigma t (g.d + lambda ||w + d||_1 - lambda ||w||_1)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "thresher/solvers/coordinate_descent.hpp"
#include "thresher/solvers/working_set.hpp"

namespace thresher {

class NewtonDescent : public CoordinateDescent {
 public:
  using CoordinateDescent::CoordinateDescent;

  // Sets w = 0 and the intercept to its best value for w = 0, and computes the first gap. lambda
  // must be above 0. Returns F, the objective of a model without features.
  double begin(bool with_intercept);

  // Chooses a working set, makes Newton steps on it, and computes the gap for all features. Returns
  // the gap. F never rises. `goal` is the gap to reach.
  double improve(double goal);

  double gap() const { return gap_; }
  double value() const { return value_; }  // F, as of the last gap
  std::int64_t nonzeros() const;

  // As for coordinate descent, with the best dual value and the features that are not screened.
  std::vector<std::byte> newton_state() const;
  void restore_newton(std::span<const std::byte> state, bool with_intercept);

 private:
  // The loss at predictions z; stores slopes u and curvatures h of all rows.
  double evaluate(const std::vector<double>& z, std::vector<double>& u,
                  std::vector<double>& h) const;
  // Makes v_ from slopes: feasible for the intercept, not yet for the features.
  void balance();
  double dual(double scale) const;  // D(scale v)
  void certify();
  bool solved(double largest, double enough) const;
  void choose();
  void solve_model();
  bool dense_pays() const;
  bool search_line();
  double norm() const;
  void best_intercept();

  bool with_intercept_ = false, equal_ = false;  // equal_: all rows have the same weight
  double value_ = 0.0, loss_now_ = 0.0, dual_ = 0.0, gap_ = 0.0;
  double shift_ = 0.0;             // the step of the intercept
  std::vector<double> h_, v_, g_;  // g_j = x_j . v
  std::vector<double> r_, xd_;     // gradient of the model by rows; X d
  std::vector<double> trial_z_, trial_u_, trial_h_;
  std::vector<double> least_;         // curvatures that keep steps finite
  std::vector<std::uint32_t> alive_;  // features that are not screened
  WorkingSet set_;
};

}  // namespace thresher
