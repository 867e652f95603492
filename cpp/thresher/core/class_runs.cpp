#include "thresher/core/class_runs.hpp"

#include <algorithm>
#include <stdexcept>

namespace thresher {

// First lists where runs end, a block of rows at a time: a branch per row would be mispredicted.
template <class Code>
ClassRuns::ClassRuns(const Code* codes, std::size_t rows, std::size_t classes)
    : counts(classes, 0), longest(classes, 0), begins(classes, 0) {
  constexpr std::size_t block = 512;
  std::size_t ends[block], from = 0;
  const auto add_run = [&](std::size_t to) {
    const auto code = static_cast<std::size_t>(codes[from]);  // a negative code becomes huge
    if (code >= classes) throw std::invalid_argument("codes: whole numbers below `classes`");
    length = static_cast<std::int64_t>(to - from);
    if (runs == 0) begun = length;
    ++runs;
    counts[code] += length;
    if (length > longest[code])
      longest[code] = length, begins[code] = static_cast<std::int64_t>(from);
    from = to;
  };
  for (std::size_t begin = 1; begin < rows; begin += block) {
    const std::size_t end = std::min(rows, begin + block);
    std::size_t n = 0;
    for (std::size_t i = begin; i < end; ++i) ends[n] = i, n += codes[i] != codes[i - 1];
    for (std::size_t k = 0; k < n; ++k) add_run(ends[k]);
  }
  if (rows > 0) add_run(rows);
}

template ClassRuns::ClassRuns(const std::uint8_t*, std::size_t, std::size_t);
template ClassRuns::ClassRuns(const std::int64_t*, std::size_t, std::size_t);

}  // namespace thresher
