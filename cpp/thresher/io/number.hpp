// Exact parsing of decimal numbers: to the nearest double, and integers below 2^64.
//
// It uses no locale and allocates no memory. A number ends at the first byte that cannot belong to
// it, and the text ends with a newline (bytes.hpp), so no bounds are checked.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "thresher/io/bytes.hpp"

namespace thresher::io {

enum class Number { ok, none, too_large };

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

inline constexpr double powers_of_ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr std::uint64_t whole_powers_of_ten[20] = {1u,
                                                          10u,
                                                          100u,
                                                          1000u,
                                                          10000u,
                                                          100000u,
                                                          1000000u,
                                                          10000000u,
                                                          100000000u,
                                                          1000000000u,
                                                          10000000000u,
                                                          100000000000u,
                                                          1000000000000u,
                                                          10000000000000u,
                                                          100000000000000u,
                                                          1000000000000000u,
                                                          10000000000000000u,
                                                          100000000000000000u,
                                                          1000000000000000000u,
                                                          10000000000000000000u};

// A mask that keeps the values of the last `count` digits of a word and clears the other bytes.
inline constexpr std::uint64_t digit_masks[9] = {0,
                                                 0x0F00000000000000u,
                                                 0x0F0F000000000000u,
                                                 0x0F0F0F0000000000u,
                                                 0x0F0F0F0F00000000u,
                                                 0x0F0F0F0F0F000000u,
                                                 0x0F0F0F0F0F0F0000u,
                                                 0x0F0F0F0F0F0F0F00u,
                                                 0x0F0F0F0F0F0F0F0Fu};

// The number with these 8 digit values; the first digit is in the lowest byte.
inline std::uint64_t number_of(std::uint64_t word) {
  word = word * 10 + (word >> 8);  // numbers of two digits; then of four and eight
  constexpr std::uint64_t mask = 0x000000FF000000FFu;
  return ((word & mask) * 0x000F424000000064u + (word >> 16 & mask) * 0x0000271000000001u) >> 32;
}

// The number of the `count` digits before p, count <= 8. Reads 8 bytes.
inline std::uint64_t digits_before(const char* p, std::size_t count) {
  return number_of(load<std::uint64_t>(p - 8) & digit_masks[count]);
}

// Moves the first `count` bytes (1 to 8) of a word to its end, with zeros before them, and replaces
// digits by their values.
inline std::uint64_t digits_of(std::uint64_t word, std::size_t count) {
  return (word ^ 0x3030303030303030u) << (64 - 8 * count);
}

// Nonzero if a byte of digits_of() was not a digit.
inline std::uint64_t no_digits(std::uint64_t word) {
  return ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
}

// The double nearest to number / 10^power, for number > 0 and power <= 19. Not inlined: it is rare
// and would take registers from the common case.
[[gnu::noinline]] inline double nearest_quotient(std::uint64_t number, std::size_t power) {
  // Both are shifted up to 64 bits, so their quotient has at least 63 bits. Its lowest bit is set
  // if there is a remainder, which is enough for correct rounding. The conversion to double rounds
  // once; the last multiplication is exact.
  __extension__ using Wide = unsigned __int128;
  const int shift = std::countl_zero(number);
  const int divisor_shift = std::countl_zero(whole_powers_of_ten[power]);
  const std::uint64_t divisor = whole_powers_of_ten[power] << divisor_shift;
  const Wide dividend = static_cast<Wide>(number << shift) << 63;
  const auto quotient = static_cast<std::uint64_t>(dividend / divisor);
  const bool remains = static_cast<std::uint64_t>(dividend) != quotient * divisor;
  const auto exponent = static_cast<std::uint64_t>(1023 - 63 + divisor_shift - shift);
  return static_cast<double>(quotient | std::uint64_t{remains}) *
         std::bit_cast<double>(exponent << 52);
}

// A mask of the first bytes of a word.
inline constexpr std::uint64_t first_bytes[9] = {0,
                                                 0xFFu,
                                                 0xFFFFu,
                                                 0xFFFFFFu,
                                                 0xFFFFFFFFu,
                                                 0xFFFFFFFFFFu,
                                                 0xFFFFFFFFFFFFu,
                                                 0xFFFFFFFFFFFFFFu,
                                                 0xFFFFFFFFFFFFFFFFu};

// Parses the `size` bytes at p as [-] digits [. digits], with up to 8 bytes after the sign and
// fewer than 8 digits. All forms take the same path without branches, because a mispredicted branch
// costs more than all of this. Reads 9 bytes.
[[gnu::always_inline]] inline bool parse_token(const char* p, std::size_t size, double& value) {
  const std::size_t negative = *p == '-';
  size -= negative;
  if (size - 1 >= 8) [[unlikely]]
    return false;
  const std::uint64_t word = load<std::uint64_t>(p + negative) & first_bytes[size];
  // The highest bit of the first byte that is a point, or of the byte after the number.
  const std::uint64_t other = word ^ 0x2E2E2E2E2E2E2E2Eu;
  std::uint64_t point = (other - 0x0101010101010101u) & ~other & 0x8080808080808080u;
  point |= (first_bytes[size] + 1) << 7;
  if (point == 0) [[unlikely]]
    return false;
  const auto whole = static_cast<std::size_t>(std::countr_zero(point)) / 8;
  const std::size_t count = size - (whole != size);
  if (count == 0) [[unlikely]]
    return false;
  const std::uint64_t before = (point ^ (point - 1)) >> 8;
  const std::uint64_t digits = digits_of((word & before) | (word >> 8 & ~before), count);
  if (no_digits(digits)) [[unlikely]]
    return false;
  value = static_cast<double>(static_cast<std::int64_t>(number_of(digits))) /
          powers_of_ten[count - whole];
  value =
      std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ std::uint64_t{negative} << 63);
  return true;
}

// The number with `whole` digits before `point` and `part` digits from there to `stop`; `part` is 0
// if there is no point. -1 if `whole` is 0 or above 8, or there are more than 19 digits. Not
// inlined, for the same reason as above.
[[gnu::noinline]] inline double parse_digits(const char* point, std::size_t whole, const char* stop,
                                             std::size_t part) {
  if (whole - 1 >= 8 || whole + part > 19) return -1;
  std::uint64_t mantissa = digits_before(point, whole);
  std::size_t left = part;
  for (const char* q = point + 9; left > 8; q += 8, left -= 8)
    mantissa = mantissa * whole_powers_of_ten[8] + digits_before(q, 8);
  mantissa = mantissa * whole_powers_of_ten[left] + digits_before(stop, left);
  if (mantissa >> 53) return nearest_quotient(mantissa, part);
  return static_cast<double>(static_cast<std::int64_t>(mantissa)) / powers_of_ten[part];
}

// Parses an integer and moves p after its digits.
inline Number parse_whole(const char*& p, std::uint64_t& out) {
  if (!is_digit(*p)) return Number::none;
  std::uint64_t number = 0;
  bool fits = true;
  for (; is_digit(*p); ++p) {
    const auto digit = static_cast<std::uint64_t>(*p - '0');
    fits = fits && !__builtin_mul_overflow(number, std::uint64_t{10}, &number) &&
           !__builtin_add_overflow(number, digit, &number);
  }
  out = number;
  return fits ? Number::ok : Number::too_large;
}

namespace detail {

// [first, last) is a number without a sign; `exponent` is its exponent after the e.
inline Number nearest_double(const char* first, const char* last, std::int64_t exponent,
                             double& out) {
  const auto [end, error] = std::from_chars(first, last, out);
  if (error == std::errc{} && end == last) return Number::ok;
  if (error != std::errc::result_out_of_range) return Number::none;
  // Too large or too small: the position of the first significant digit decides.
  const char* point = first;
  while (is_digit(*point)) ++point;
  while (*first == '0' || *first == '.') ++first;
  if (exponent + (point - first) > 0) return Number::too_large;
  out = 0;
  return Number::ok;
}

}  // namespace detail

// Parses [+-] digits [. digits] [e [+-] digits], where digits may be missing on one side of the
// point, and moves p after it. Without a number p stays unchanged.
inline Number parse_double(const char*& p, double& out) {
  const char* q = p;
  const bool negative = *q == '-';
  q += *q == '-' || *q == '+';
  const char* const first = q;
  std::uint64_t mantissa = 0;  // exact up to 19 digits
  for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*q - '0');
  std::int64_t digits = q - first, power = 0;
  if (*q == '.') {
    const char* const point = q++;
    for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*q - '0');
    power = -(q - point - 1);
    digits -= power;
  }
  if (digits == 0) return Number::none;
  std::int64_t exponent = 0;
  if ((*q | 0x20) == 'e') {
    const char* e = q + 1;
    const bool minus = *e == '-';
    e += *e == '-' || *e == '+';
    if (is_digit(*e)) {
      for (; is_digit(*e); ++e)
        if (exponent < 1'000'000'000) exponent = exponent * 10 + (*e - '0');
      if (minus) exponent = -exponent;
      q = e;
    }
  }
  power += exponent;
  double value = 0;
  if (digits <= 19 && mantissa < (std::uint64_t{1} << 53) && power >= -22 && power <= 22) {
    value = static_cast<double>(mantissa);
    value = power < 0 ? value / powers_of_ten[-power] : value * powers_of_ten[power];
  } else if (digits <= 19 && power >= -19 && power <= 0 && mantissa != 0) {
    value = nearest_quotient(mantissa, static_cast<std::size_t>(-power));
  } else if (const Number status = detail::nearest_double(first, q, exponent, value);
             status != Number::ok) {
    return status;
  }
  out = negative ? -value : value;
  p = q;
  return Number::ok;
}

}  // namespace thresher::io
