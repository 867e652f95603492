// How the values of a block are stored in a cache: in the fewest bytes that keep them exactly.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "thresher/io/cache_format.hpp"

namespace thresher::io::format {

template <class T>
bool all_one(const T* values, std::size_t count) {
  return std::all_of(values, values + count, [](T value) { return value == T(1); });
}

// Compares bits, so that a NaN equals itself and -0 differs from 0.
inline bool all_floats(const double* values, std::size_t count) {
  return std::all_of(values, values + count, [](double value) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(value))) ==
           std::bit_cast<std::uint64_t>(value);
  });
}

// Writes the whole numbers that give the values when they are divided by `by`. Returns false if
// there are none of 16 bits.
template <class T>
bool to_decimals(const T* values, std::size_t count, double by, std::int16_t* into) {
  constexpr double whole = 0x1.8p52;      // a double of this size has no digits after the point
  constexpr std::size_t piece = 1 << 10;  // values between two tests
  for (std::size_t from = 0; from < count; from += piece) {
    std::uint64_t differ = 0;
    for (std::size_t k = from; k < std::min(count, from + piece); ++k) {
      const double value = values[k], many = value * by;
      const double nearest = std::fabs(many) <= INT16_MAX ? (many + whole) - whole : 0.0;
      differ |= std::bit_cast<std::uint64_t>(nearest / by) ^ std::bit_cast<std::uint64_t>(value);
      into[k] = static_cast<std::int16_t>(static_cast<std::int32_t>(nearest));
    }
    if (differ != 0) return false;
  }
  return true;
}

// How values are stored; also makes the decimals.
template <class T>
Kind kind_of(const T* values, std::size_t count, std::vector<std::int16_t>& made) {
  if (all_one(values, count)) return Kind::none;
  made.resize(count);
  for (const Kind kind : decimals)
    if (to_decimals(values, count, parts(kind), made.data())) return kind;
  if constexpr (std::is_same_v<T, double>)
    if (!all_floats(values, count)) return Kind::wide;
  return Kind::narrow;
}

}  // namespace thresher::io::format
