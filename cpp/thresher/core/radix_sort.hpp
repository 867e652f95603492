// A radix sort by 64-bit keys: several times as fast as a comparison sort of a million items.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace thresher {

// Sorts items by key(item); items with equal keys keep their order.
template <class T, class KeyOf>
void radix_sort(std::vector<T>& items, const KeyOf& key) {
  const auto less = [&](const T& a, const T& b) { return key(a) < key(b); };
  if (std::is_sorted(items.begin(), items.end(), less)) return;
  if (items.size() < 4096) {
    std::stable_sort(items.begin(), items.end(), less);
    return;
  }
  constexpr int digit = 11, digits = 6;  // 6 * 11 >= 64
  constexpr std::uint64_t buckets = std::uint64_t{1} << digit;
  std::vector<std::array<std::size_t, buckets>> counts(digits);
  for (const T& item : items)
    for (int d = 0; d < digits; ++d)
      ++counts[static_cast<std::size_t>(d)][(key(item) >> (d * digit)) & (buckets - 1)];
  std::vector<T> moved(items.size());
  for (int d = 0; d < digits; ++d) {
    std::array<std::size_t, buckets>& places = counts[static_cast<std::size_t>(d)];
    if (places[(key(items[0]) >> (d * digit)) & (buckets - 1)] == items.size()) continue;
    std::size_t before = 0;
    for (std::size_t& place : places) before += std::exchange(place, before);
    for (const T& item : items) moved[places[(key(item) >> (d * digit)) & (buckets - 1)]++] = item;
    items.swap(moved);
  }
}

}  // namespace thresher
