// What the hardware allows: read every weight of every row once, prefetched, and add the products up.
// Built by benchmarks/core.py with the flags of the core.
#include <algorithm>
#include <cstdint>

extern "C" double gather_limit(const std::int32_t* starts, const std::int32_t* keys,
                               const float* values, std::int64_t rows, const float* weights) {
  constexpr std::int64_t distance = 128;
  const std::int64_t end = starts[rows];
  double total = 0.0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = starts[row], n = starts[row + 1] - begin;
    const std::int32_t* key = keys + begin;
    const std::int32_t* later = keys + std::max<std::int64_t>(0, std::min(begin + distance, end - n));
    const float* x = values + begin;
    float sum[8] = {};
    std::int64_t k = 0;
    for (; k + 8 <= n; k += 8)
      for (int lane = 0; lane < 8; ++lane) {
        __builtin_prefetch(weights + later[k + lane]);
        sum[lane] += weights[key[k + lane]] * x[k + lane];
      }
    for (; k < n; ++k) {
      __builtin_prefetch(weights + later[k]);
      sum[0] += weights[key[k]] * x[k];
    }
    for (const float lane : sum) total += lane;
  }
  return total;
}
