// What one call to a learner eats: rows borrowed from the caller, never copied.
//
// CSR rows have `keys` (column numbers, or any 64-bit key for a hashed store); rows of a dense array
// have none, and their zeros are skipped. Number types are the caller's: a row is converted while it
// is staged (core/rows.hpp), so nothing downstream knows which they were.
#pragma once

#include <cstdint>
#include <variant>

namespace thresher {

struct Batch {
  using Starts = std::variant<std::monostate, const std::int32_t*, const std::int64_t*>;
  using Keys = std::variant<std::monostate, const std::int32_t*, const std::int64_t*>;
  using Values = std::variant<const float*, const double*>;

  std::int64_t rows = 0;
  // Of a dense array; of CSR rows as they say, while the store bounds the keys. Of distinct rows all
  // keys are below it, where it is not 0.
  std::int64_t columns = 0;
  Starts starts;  // row r is [starts[r], starts[r + 1]); none for a dense array
  Keys keys;      // none for a dense array
  Values values;
  const double* labels = nullptr;   // none when only predicting
  const double* weights = nullptr;  // none: every row weighs 1
  bool distinct = false;  // no CSR row has a key twice, in whatever order: not looked at again
};

// Which rows of a batch are visited, and in which sequence.
struct Visit {
  const std::int64_t* order = nullptr;  // none: as they lie
  std::int64_t first = 0, last = 0;     // positions in the order (or rows)

  std::int64_t row(std::int64_t position) const { return order ? order[position] : position; }
};

}  // namespace thresher
