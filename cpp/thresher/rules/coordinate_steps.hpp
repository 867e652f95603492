// The arithmetic of one coordinate. A rule uses it for vectors of four coordinates of one model
// (core/pack.hpp), its lanes for vectors of one coordinate of many models (lanes/wide.hpp): P is
// either. All functions are inlined, so that code for one level of vectors is not used for another.
#pragma once

#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

namespace thresher {

// FTRL-Proximal: z and n of a coordinate, with a = 1 / alpha and c = -(beta / alpha + l2).
struct FTRLArithmetic {
  template <class P>
  struct Constants {
    P l1, a, c;
  };
  static constexpr double of_no_lane[] = {0, 0, -1};  // constants that keep a slot at zero

  template <class P>
  [[gnu::always_inline]] static P weight(const P& z, const P& n, const Constants<P>& k) {
    return soft(z, k.l1) / (k.c - sqrt(n) * k.a);
  }

  // The step for the gradient g, from the weight w.
  template <class P>
  [[gnu::always_inline]] static void step(P& z, P& n, const P& w, const P& g,
                                          const Constants<P>& k) {
    const P n_new = n + g * g;
    const P sigma = (sqrt(n_new) - sqrt(n)) * k.a;
    z = z + (g - sigma * w);
    n = n_new;
  }
};

// AdaGrad: v and s of a coordinate, with the constants eta P, delta and eta.
struct AdaGradArithmetic {
  template <class P>
  struct Constants {
    P eta_P, delta, eta;
  };
  static constexpr double of_no_lane[] = {0, 1, 0};

  template <class P>
  [[gnu::always_inline]] static P weight(const P& v, const P& s, const Constants<P>& k) {
    return soft(v, k.eta_P / (k.delta + sqrt(s)));
  }

  template <class P>
  [[gnu::always_inline]] static void step(P& v, P& s, const P& w, const P& g,
                                          const Constants<P>& k) {
    s = s + g * g;
    const P H = k.delta + sqrt(s);
    v = away_from_zero(w - k.eta * g / H, k.eta_P / H);
  }
};

// Rules with two numbers per coordinate, whose lanes share kernels (lanes/pair_lanes.hpp).
using PairArithmetics = std::tuple<FTRLArithmetic, AdaGradArithmetic>;

// The number of constants of an arithmetic; and the constants made from f(0), f(1), ...
template <class A>
inline constexpr std::size_t constants_of = std::size(A::of_no_lane);

template <class A, class P, class F, std::size_t... I>
[[gnu::always_inline]] inline typename A::template Constants<P> constants_from(
    F&& f, std::index_sequence<I...>) {
  return {f(I)...};
}
template <class A, class P, class F>
[[gnu::always_inline]] inline typename A::template Constants<P> constants_from(F&& f) {
  return constants_from<A, P>(f, std::make_index_sequence<constants_of<A>>{});
}

// Averaged SGD: the step for gradients of v and of u.
template <class P>
[[gnu::always_inline]] inline void averaged_step(P& v, P& u, const P& gv, const P& gu, const P& x) {
  v = v + gv * x;
  u = u + gu * x;
}

}  // namespace thresher
