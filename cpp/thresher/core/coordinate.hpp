// The arithmetic of one coordinate. P is a vector of four coordinates of one model (core/pack.hpp),
// or of one coordinate of many models (lanes/wide.hpp): a rule and its lanes share this code.
#pragma once

namespace thresher {

// FTRL-Proximal: the weight from z and n, with a = 1 / alpha and c = -(beta / alpha + l2).
template <class P>
[[gnu::always_inline]] inline P ftrl_weight(const P& z, const P& n, const P& l1, const P& a,
                                            const P& c) {
  return soft(z, l1) / (c - sqrt(n) * a);
}

// The step for the gradient g, from the weight w.
template <class P>
[[gnu::always_inline]] inline void ftrl_step(P& z, P& n, const P& w, const P& g, const P& a) {
  const P n_new = n + g * g;
  const P sigma = (sqrt(n_new) - sqrt(n)) * a;
  z = z + (g - sigma * w);
  n = n_new;
}

// Averaged SGD: the step for gradients of v and of u.
template <class P>
[[gnu::always_inline]] inline void averaged_step(P& v, P& u, const P& gv, const P& gu, const P& x) {
  v = v + gv * x;
  u = u + gu * x;
}

}  // namespace thresher
