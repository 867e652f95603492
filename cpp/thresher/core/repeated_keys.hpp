// Finds whether a key comes twice in a row, without sorting.
//
// A table that fits in the first cache remembers the place of each key of the row. An entry is
// `base_` + the key's place, and `base_` grows by the length of each row: entries of earlier rows
// are smaller than `base_`, so the table is not cleared between rows. If two keys fall on the same
// entry, the keys themselves are compared, so the answer is exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace thresher {

class RepeatedKeys {
 public:
  // Tells whether a key comes twice among the n keys.
  template <class Key>
  bool among(const Key* keys, std::size_t n) {
    if (n > most) return any_equal(keys, n);
    prepare(n);
    std::uint32_t* const table = table_.data();
    const std::size_t mask = table_.size() - 1;
    const int shift = 64 - std::countr_one(mask);
    const std::uint32_t base = base_;
    base_ += static_cast<std::uint32_t>(n);
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t at = home(keys[k], shift);
      while (table[at] >= base) [[unlikely]] {
        if (keys[table[at] - base] == keys[k]) return true;
        at = (at + 1) & mask;
      }
      table[at] = base + static_cast<std::uint32_t>(k);
    }
    return false;
  }

 private:
  static constexpr std::size_t smallest = 4096;              // entries: 16 KiB
  static constexpr std::size_t most = std::size_t{1} << 28;  // keys; longer rows are sorted

  template <class Key>
  static std::size_t home(Key key, int shift) {
    return static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u >> shift;
  }

  // Makes the table at least four times as long as the row, and `base_` fit.
  void prepare(std::size_t n) {
    const std::size_t wanted = std::max(smallest, std::bit_ceil(4 * n));
    if (table_.size() < wanted) {
      table_.assign(wanted, 0), base_ = 1;
    } else if (n >= UINT32_MAX - base_) {
      std::fill(table_.begin(), table_.end(), 0), base_ = 1;
    }
  }

  template <class Key>
  static bool any_equal(const Key* keys, std::size_t n) {
    std::vector<Key> sorted(keys, keys + n);
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }

  std::vector<std::uint32_t> table_;
  std::uint32_t base_ = 1;  // entry of the first key of the row
};

}  // namespace thresher
