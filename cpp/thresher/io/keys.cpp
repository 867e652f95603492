#include "thresher/io/keys.hpp"

#include <algorithm>
#include <type_traits>

namespace thresher::io {
namespace {

// Maps the keys of a row to their positions in it.
template <class Key>
class Places {
 public:
  void clear(std::size_t count) {
    std::size_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    slots_.assign(capacity, 0);
  }
  // The position of a key, or `next` if it is new; `at(p)` is the key at position p.
  template <class At>
  std::size_t find(Key key, std::size_t next, At&& at) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (slots_[slot] != 0 && at(slots_[slot] - 1) != key) slot = (slot + 1) & mask;
    if (slots_[slot] == 0) slots_[slot] = next + 1;
    return slots_[slot] - 1;
  }

 private:
  std::vector<std::size_t> slots_;
};

template <class Key>
bool increasing(const Key* keys, std::size_t count) {
  for (std::size_t k = 1; k < count; ++k)
    if (keys[k - 1] >= keys[k]) return false;
  return true;
}

template <class Unsigned, class Key>
[[gnu::always_inline]] inline Unsigned largest_of(const Key* keys, std::size_t count) {
  Unsigned largest = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const auto key = static_cast<Unsigned>(keys[k]);
    largest = key > largest ? key : largest;
  }
  return largest;
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class Unsigned, class Key>
[[gnu::target("avx2")]] Unsigned largest_with_avx2(const Key* keys, std::size_t count) {
  return largest_of<Unsigned>(keys, count);
}
#endif

}  // namespace

template <class Key>
std::uint64_t largest_key(const Key* keys, std::size_t count) {
  using Unsigned = std::make_unsigned_t<Key>;
#if defined(__x86_64__) && defined(__GNUC__)
  const Unsigned largest = __builtin_cpu_supports("avx2") ? largest_with_avx2<Unsigned>(keys, count)
                                                          : largest_of<Unsigned>(keys, count);
#else
  const auto largest = largest_of<Unsigned>(keys, count);
#endif
  // sign-extended, as learners do
  return static_cast<std::uint64_t>(std::int64_t{static_cast<Key>(largest)});
}

template <class Start, class Key>
std::size_t first_repeating(const Start* starts, const Key* keys, std::size_t rows) {
  Places<Key> places;
  for (std::size_t row = 0; row < rows; ++row) {
    const Key* from = keys + starts[row];
    const auto count = static_cast<std::size_t>(starts[row + 1] - starts[row]);
    if (increasing(from, count)) continue;
    places.clear(count);
    for (std::size_t k = 0; k < count; ++k)
      if (places.find(from[k], k, [&](std::size_t p) { return from[p]; }) != k) return row;
  }
  return rows;
}

template <class Start, class Key, class Value>
Merged<Key, Value> merge_rows(const Start* starts, const Key* keys, const Value* values,
                              std::size_t rows, std::size_t first) {
  Merged<Key, Value> merged;
  merged.starts.assign(starts, starts + first + 1);
  merged.keys.assign(keys, keys + starts[first]);
  merged.values.assign(values, values + starts[first]);
  Places<Key> places;
  for (std::size_t row = first; row < rows; ++row) {
    const std::size_t begin = merged.keys.size();
    const auto from = static_cast<std::size_t>(starts[row]);
    const auto to = static_cast<std::size_t>(starts[row + 1]);
    places.clear(to - from);
    for (std::size_t k = from; k < to; ++k) {
      const std::size_t next = merged.keys.size() - begin;
      const std::size_t place =
          places.find(keys[k], next, [&](std::size_t p) { return merged.keys[begin + p]; });
      if (place == next) {
        merged.keys.push_back(keys[k]);
        merged.values.push_back(values[k]);
      } else {
        merged.values[begin + place] += values[k];
      }
    }
    merged.starts.push_back(static_cast<std::int64_t>(merged.keys.size()));
  }
  return merged;
}

template std::uint64_t largest_key(const std::int32_t*, std::size_t);
template std::uint64_t largest_key(const std::int64_t*, std::size_t);
template std::size_t first_repeating(const std::int32_t*, const std::int32_t*, std::size_t);
template std::size_t first_repeating(const std::int32_t*, const std::int64_t*, std::size_t);
template std::size_t first_repeating(const std::int64_t*, const std::int32_t*, std::size_t);
template std::size_t first_repeating(const std::int64_t*, const std::int64_t*, std::size_t);
template Merged<std::int32_t, float> merge_rows(const std::int32_t*, const std::int32_t*,
                                                const float*, std::size_t, std::size_t);
template Merged<std::int32_t, double> merge_rows(const std::int32_t*, const std::int32_t*,
                                                 const double*, std::size_t, std::size_t);
template Merged<std::int64_t, float> merge_rows(const std::int32_t*, const std::int64_t*,
                                                const float*, std::size_t, std::size_t);
template Merged<std::int64_t, double> merge_rows(const std::int32_t*, const std::int64_t*,
                                                 const double*, std::size_t, std::size_t);
template Merged<std::int32_t, float> merge_rows(const std::int64_t*, const std::int32_t*,
                                                const float*, std::size_t, std::size_t);
template Merged<std::int32_t, double> merge_rows(const std::int64_t*, const std::int32_t*,
                                                 const double*, std::size_t, std::size_t);
template Merged<std::int64_t, float> merge_rows(const std::int64_t*, const std::int64_t*,
                                                const float*, std::size_t, std::size_t);
template Merged<std::int64_t, double> merge_rows(const std::int64_t*, const std::int64_t*,
                                                 const double*, std::size_t, std::size_t);

}  // namespace thresher::io
