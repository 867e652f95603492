// Finds whether a key comes twice in a row, without sorting.
//
// A table that takes a quarter of the first cache remembers the place of each key of the row. An
// entry is `base` + the key's place, and `base` grows by the length of each row: entries of earlier
// rows are smaller than `base`, so the table is seldom cleared. If two keys fall on the same entry,
// the keys themselves are compared, so the answer is exact.
//
// For a short row, a simpler test comes first. It marks a byte for the low bits of each key with
// the row's number: if no byte had this mark before, no key came twice. It takes 0.6 times as long,
// and has no branches. With 73 of 47k keys, 7 % of the rows then need the table, too.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace thresher {

class RepeatedKeys {
 public:
  // Tells whether a key comes twice among the n keys.
  template <class Key>
  bool among(const Key* keys, std::size_t n) {
    if (n <= most_marks && !marked_before(keys, n)) return false;
    if (n <= smallest / 4) return short_rows_.among(keys, n);
    if (n <= most) return long_rows_.among(keys, n);
    std::vector<Key> sorted(keys, keys + n);
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }

 private:
  static constexpr std::size_t smallest = 4096;              // entries
  static constexpr std::size_t most = std::size_t{1} << 28;  // keys; longer rows are sorted
  static constexpr std::size_t bytes = 1 << 14;              // for marks: half of the first cache
  static constexpr std::size_t most_marks = 128;             // keys; in longer rows many bytes meet

  // Whether two keys have the same low bits.
  template <class Key>
  bool marked_before(const Key* keys, std::size_t n) {
    if (++mark_ == 0) marks_.assign(bytes, 0), mark_ = 1;
    if (marks_.empty()) marks_.resize(bytes);
    std::uint8_t* const marks = marks_.data();
    const std::uint32_t mark = mark_;
    std::uint32_t largest = 0;  // marks of earlier rows are smaller
#pragma GCC unroll 4
    for (std::size_t k = 0; k < n; ++k) {
      std::uint8_t& found = marks[static_cast<std::size_t>(keys[k]) % bytes];
      largest = std::max(largest, std::uint32_t{found});
      found = static_cast<std::uint8_t>(mark);
    }
    return largest == mark;
  }

  template <class Entry>
  class Table {
   public:
    template <class Key>
    bool among(const Key* keys, std::size_t n) {
      prepare(n);
      Entry* const entries = entries_.data();
      const std::size_t mask = entries_.size() - 1;
      const int shift = 64 - std::countr_one(mask);
      const Entry base = base_;
      base_ = static_cast<Entry>(base_ + n);
      for (std::size_t k = 0; k < n; ++k) {
        std::size_t at = static_cast<std::uint64_t>(keys[k]) * 0x9E3779B97F4A7C15u >> shift;
        while (entries[at] >= base) [[unlikely]] {
          if (keys[entries[at] - base] == keys[k]) return true;
          at = (at + 1) & mask;
        }
        entries[at] = static_cast<Entry>(base + k);
      }
      return false;
    }

   private:
    // Makes the table at least four times as long as the row, and `base_` fit.
    void prepare(std::size_t n) {
      const std::size_t wanted = std::max(smallest, std::bit_ceil(4 * n));
      if (entries_.size() < wanted) {
        entries_.assign(wanted, 0), base_ = 1;
      } else if (n >= std::size_t{std::numeric_limits<Entry>::max()} - base_) {
        std::fill(entries_.begin(), entries_.end(), Entry{0}), base_ = 1;
      }
    }

    std::vector<Entry> entries_;
    Entry base_ = 1;  // of the first key of the row
  };

  std::vector<std::uint8_t> marks_;
  std::uint8_t mark_ = 0;  // of the row
  Table<std::uint16_t> short_rows_;
  Table<std::uint32_t> long_rows_;
};

}  // namespace thresher
