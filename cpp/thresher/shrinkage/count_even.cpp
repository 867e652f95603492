#include "thresher/shrinkage/count_even.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace thresher {

#if defined(__x86_64__)
namespace {

// As even_debt() in shrinkage/even_debt.hpp: stamps are below 2^31.
[[gnu::target("avx2"), gnu::always_inline]] inline __m128 debt_of(__m128i events, __m256d a,
                                                                  __m256d Q_now) {
  return _mm256_cvtpd_ps(_mm256_sub_pd(Q_now, _mm256_mul_pd(_mm256_cvtepi32_pd(events), a)));
}

// The soft threshold of w is not 0 if |w| > debt. A lane of `counts` has at most n / 8 < 2^31.
[[gnu::target("avx2")]] std::int64_t count_eights(const Pair<float, std::uint32_t>* cells,
                                                  std::size_t n, double amount, double now) {
  const __m256d a = _mm256_set1_pd(amount), Q_now = _mm256_set1_pd(now);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256i counts = _mm256_setzero_si256();
  for (std::size_t k = 0; k < n; k += 8) {
    const auto* from = reinterpret_cast<const float*>(cells + k);
    const __m256 low = _mm256_loadu_ps(from), high = _mm256_loadu_ps(from + 8);
    const __m256 w = _mm256_shuffle_ps(low, high, 0x88);
    const __m256i e = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xDD));
    const __m256 debt = _mm256_set_m128(debt_of(_mm256_extracti128_si256(e, 1), a, Q_now),
                                        debt_of(_mm256_castsi256_si128(e), a, Q_now));
    const __m256 above = _mm256_cmp_ps(_mm256_andnot_ps(sign, w), debt, _CMP_GT_OQ);
    counts = _mm256_sub_epi32(counts, _mm256_castps_si256(above));
  }
  alignas(32) std::int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), counts);
  std::int64_t found = 0;
  for (const std::int32_t lane : lanes) found += lane;
  return found;
}

}  // namespace
#endif

std::int64_t count_even([[maybe_unused]] const Pair<float, std::uint32_t>* cells,
                        [[maybe_unused]] std::size_t n, std::size_t& k, [[maybe_unused]] double a,
                        [[maybe_unused]] double Q_now) {
  k = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    k = n / 8 * 8;
    return count_eights(cells, k, a, Q_now);
  }
#endif
  return 0;
}

}  // namespace thresher
