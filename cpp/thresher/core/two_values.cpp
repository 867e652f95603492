#include "thresher/core/two_values.hpp"

#include <algorithm>

namespace thresher {

// The two values are those of the first row and of the first row that differs. So a third value
// ends the search after a block.
template <class Label>
TwoValues<Label>::TwoValues(const Label* values, std::size_t n) {
  if (n == 0) return;
  constexpr std::size_t block = 4096;
  const Label a = values[0];
  const Label* differs = std::find_if(values, values + n, [a](Label v) { return v != a; });
  const Label b = differs == values + n ? a : *differs;
  std::int64_t as = 0, bs = 0;
  for (std::size_t from = 0; from < n; from += block) {
    const std::size_t to = std::min(n, from + block);
    std::int64_t of_a = 0, of_b = 0;
    for (std::size_t i = from; i < to; ++i) of_a += values[i] == a, of_b += values[i] == b;
    as += of_a, bs += of_b;
    if (std::max(of_a, of_b) != static_cast<std::int64_t>(to - from) &&
        of_a + of_b != static_cast<std::int64_t>(to - from))
      return;
  }
  only = true;  // a NaN equals neither value, so its block was not whole
  low = std::min(a, b), high = std::max(a, b), largest = a < b ? bs : as;
}

template <class Label>
bool two_targets(const Label* labels, std::size_t n, Label first, Label second, double low,
                 double* out) {
  std::int64_t others = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_second = labels[i] == second;
    out[i] = is_second ? 1.0 : low;
    others += !is_second & (labels[i] != first);
  }
  return others == 0;
}

template struct TwoValues<std::int64_t>;
template struct TwoValues<double>;
template bool two_targets(const std::int64_t*, std::size_t, std::int64_t, std::int64_t, double,
                          double*);
template bool two_targets(const double*, std::size_t, double, double, double, double*);

}  // namespace thresher
