// What four weights owe if all events subtract the same amount, without reading the ledger.
//
// A ledger of many events does not fit in the first caches: after 2^19 steps with an event each it
// has 4 MiB. The numbers here are those of the ledger, to the last bit (Ledger::even_Q).
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "thresher/core/pack.hpp"
#include "thresher/shrinkage/ledger.hpp"

namespace thresher {

// Q_now - Q_e, rounded to Real; `events` are the last events that were applied.
template <class Real, class Stamp>
[[gnu::always_inline]] inline Pack<Real> even_debt(const Pack<Stamp>& events, double a,
                                                   double Q_now) {
#if defined(__SSE2__)
  if constexpr (sizeof(Real) == 4) {  // stamps are below 2^31
    const __m128i e = (__m128i)events.part[0];
    const __m128d amount = _mm_set1_pd(a), now = _mm_set1_pd(Q_now);
    const __m128d low = _mm_sub_pd(now, _mm_mul_pd(_mm_cvtepi32_pd(e), amount));
    const __m128d high =
        _mm_sub_pd(now, _mm_mul_pd(_mm_cvtepi32_pd(_mm_shuffle_epi32(e, 0xEE)), amount));
    return {{(typename Pack<Real>::Vector)_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high))}};
  }
#endif
  return Pack<Real>::of([&](std::size_t i) __attribute__((always_inline)) {
    return static_cast<Real>(Q_now - Ledger::even_Q(static_cast<std::uint64_t>(events[i]), a));
  });
}

}  // namespace thresher
