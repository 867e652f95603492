// The rows of one call to a learner: borrowed from the caller, never copied.
//
// CSR rows have `keys` (column numbers, or any 64-bit key for a hashed store). Rows of a dense
// array have no keys, and their zeros are skipped. The caller chooses the number types:
// core/rows.hpp converts a row when it is read, and all other code sees one type.
#pragma once

#include <cstdint>
#include <variant>

namespace thresher {

struct Batch {
  using Starts = std::variant<std::monostate, const std::int32_t*, const std::int64_t*>;
  using Keys = std::variant<std::monostate, const std::int32_t*, const std::int64_t*>;
  using Values = std::variant<const float*, const double*>;

  std::int64_t rows = 0;
  // For a dense array: its number of columns. For CSR rows: the number that the caller gave, or 0;
  // it is not checked, except that with `distinct` all keys are below it (if it is not 0).
  std::int64_t columns = 0;
  Starts starts;  // row r is [starts[r], starts[r + 1]); none for a dense array
  Keys keys;      // none for a dense array
  Values values;
  const double* labels = nullptr;   // none for predictions
  const double* weights = nullptr;  // none: all weights are 1
  const double* units = nullptr;    // factors of the losses in the tally; none: all are 1
  bool distinct = false;            // no CSR row has a key twice; learners do not check this again
};

// Which rows of a batch are visited, and in which order.
struct Visit {
  const std::int64_t* order = nullptr;  // none: the order of the batch
  std::int64_t first = 0, last = 0;     // positions in the order (or rows)

  std::int64_t row(std::int64_t position) const { return order ? order[position] : position; }
};

}  // namespace thresher
