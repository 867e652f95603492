#include "thresher/core/class_runs.hpp"

#include <stdexcept>

namespace thresher {

template <class Code>
ClassRuns::ClassRuns(const Code* codes, std::size_t rows, std::size_t classes)
    : counts(classes, 0), longest(classes, 0), begins(classes, 0) {
  for (std::size_t from = 0, to = 0; from < rows; from = to) {
    const auto code = static_cast<std::size_t>(codes[from]);  // a negative code becomes huge
    if (code >= classes) throw std::invalid_argument("codes: whole numbers below `classes`");
    while (to < rows && codes[to] == codes[from]) ++to;
    length = static_cast<std::int64_t>(to - from);
    if (runs == 0) begun = length;
    ++runs;
    counts[code] += length;
    if (length > longest[code])
      longest[code] = length, begins[code] = static_cast<std::int64_t>(from);
  }
}

template ClassRuns::ClassRuns(const std::uint8_t*, std::size_t, std::size_t);
template ClassRuns::ClassRuns(const std::int64_t*, std::size_t, std::size_t);

}  // namespace thresher
