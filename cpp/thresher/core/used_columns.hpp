// The rows of a CSR batch without its empty columns: the columns that occur are numbered 0, 1, ...
// in their order. So a dense store has no cells for columns that do not occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/stores/pages.hpp"

namespace thresher {

struct UsedColumns {
  std::vector<std::uint64_t> columns;  // those that occur, in increasing order
  ZeroedArray<std::int32_t> keys;      // as the keys of the batch, with the new numbers
};

// None if more than `most` columns occur. Also none if a key is not below batch.columns, or if the
// size of a value is 1e18 or more: learners refuse such rows, or may, and name the column.
std::optional<UsedColumns> used_columns(const Batch& batch, std::uint64_t most,
                                        std::size_t threads);

}  // namespace thresher
