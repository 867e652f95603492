// Functions on the keys of a block: the largest key, and merging of keys that repeat in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace thresher::io {

// The largest key as an unsigned 64-bit number; 0 if there are no keys.
template <class Key>  // std::int32_t or std::int64_t, as below
std::uint64_t largest_key(const Key* keys, std::size_t count);

// The bound that a block states: all its keys are below it. 0 if no such bound fits.
inline std::int64_t bound_of(std::uint64_t largest) {
  return largest < INT64_MAX ? static_cast<std::int64_t>(largest + 1) : 0;
}

// Rows without repeated keys. Values of a repeated key are summed in the value type, and the key
// keeps its first position, as in core/rows.hpp.
template <class Key, class Value>
struct Merged {
  std::vector<std::int64_t> starts;
  std::vector<Key> keys;
  std::vector<Value> values;
};

// The first row with a repeated key; `rows` if there is none.
template <class Start, class Key>
std::size_t first_repeating(const Start* starts, const Key* keys, std::size_t rows);

// Merges all rows. Rows before `first` must have no repeated keys.
template <class Start, class Key, class Value>  // Value: float or double
Merged<Key, Value> merge_rows(const Start* starts, const Key* keys, const Value* values,
                              std::size_t rows, std::size_t first);

}  // namespace thresher::io
