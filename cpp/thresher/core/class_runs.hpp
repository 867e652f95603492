// Runs of equal class codes in a sequence of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace thresher {

struct ClassRuns {
  // For each code: its rows, its longest run (of equal ones the first), and where that begins.
  std::vector<std::int64_t> counts, longest, begins;
  std::int64_t runs = 0;
  std::int64_t begun = 0, length = 0;  // lengths of the first and of the last run

  // Codes are from 0 to `classes` - 1; throws std::invalid_argument if not.
  template <class Code>
  ClassRuns(const Code* codes, std::size_t rows, std::size_t classes);
};

extern template ClassRuns::ClassRuns(const std::uint8_t*, std::size_t, std::size_t);
extern template ClassRuns::ClassRuns(const std::int64_t*, std::size_t, std::size_t);

}  // namespace thresher
