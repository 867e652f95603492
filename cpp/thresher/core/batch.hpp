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
  // Of a dense array, its number of columns. Of CSR rows, what the caller says, or 0 if unknown;
  // the store bounds the keys. If `distinct` and not 0, all keys are below it.
  std::int64_t columns = 0;
  Starts starts;  // row r is [starts[r], starts[r + 1]); none for a dense array
  Keys keys;      // none for a dense array
  Values values;
  const double* labels = nullptr;   // none for predictions
  const double* weights = nullptr;  // none: all weights are 1
  bool distinct = false;            // no CSR row has a key twice, in any order: not checked again
};

// Which rows of a batch are visited, and in which order.
struct Visit {
  const std::int64_t* order = nullptr;  // none: the order of the batch
  std::int64_t first = 0, last = 0;     // positions in the order (or rows)

  std::int64_t row(std::int64_t position) const { return order ? order[position] : position; }
};

}  // namespace thresher
