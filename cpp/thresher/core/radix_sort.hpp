// A radix sort by 64-bit keys: several times as fast as a comparison sort of a million items.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace thresher {

// Sorts items by key(item); items with equal keys keep their order.
//
// Sorts by the highest digits that differ, as many as tell most items apart. Then the runs of items
// that are equal in these digits are sorted; with keys such as hashes, these are few and short.
template <class T, class KeyOf>
void radix_sort(std::vector<T>& items, const KeyOf& key) {
  const auto less = [&](const T& a, const T& b) { return key(a) < key(b); };
  if (std::is_sorted(items.begin(), items.end(), less)) return;
  if (items.size() < 4096) {
    std::stable_sort(items.begin(), items.end(), less);
    return;
  }
  constexpr int digit = 11, most = 3;  // bits of a digit; three digits tell billions apart
  constexpr std::uint64_t buckets = std::uint64_t{1} << digit;
  std::uint64_t differ = 0;
  for (const T& item : items) differ |= key(item) ^ key(items[0]);
  const int bits = static_cast<int>(std::bit_width(differ)), low = std::max(0, bits - most * digit);
  std::vector<T> moved(items.size());
  for (int shift = low; shift < bits; shift += digit) {
    std::array<std::size_t, buckets> places{};
    for (const T& item : items) ++places[(key(item) >> shift) & (buckets - 1)];
    std::size_t before = 0;
    for (std::size_t& place : places) before += std::exchange(place, before);
    for (const T& item : items) moved[places[(key(item) >> shift) & (buckets - 1)]++] = item;
    items.swap(moved);
  }
  if (low == 0) return;
  for (auto first = items.begin(); first != items.end();) {
    auto last = first + 1;
    while (last != items.end() && key(*last) >> low == key(*first) >> low) ++last;
    if (last - first > 1) std::stable_sort(first, last, less);
    first = last;
  }
}

}  // namespace thresher
