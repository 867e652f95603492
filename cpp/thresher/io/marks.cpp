#include "thresher/io/marks.hpp"

#include <bit>
#include <stdexcept>

#include "thresher/io/bytes.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define THRESHER_VECTORS 1
#include <immintrin.h>
#endif

namespace thresher::io {

namespace {

// Eight bytes at a time. The highest bit of each byte of a word tells whether it is a mark.
std::size_t find_portable(const char* p, std::size_t windows, std::uint16_t* at, char* kinds) {
  constexpr std::uint64_t ones = 0x0101010101010101u, highs = 0x80 * ones, lows = 0x7F * ones;
  const auto are = [](std::uint64_t word, std::uint64_t byte) {
    const std::uint64_t other = word ^ byte * ones;
    return ~((other & lows) + lows | other);
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < 64 * windows; i += 8) {
    const auto word = load<std::uint64_t>(p + i);
    const std::uint64_t stops = ~((word & lows) + (0x7F - ' ') * ones | word);
    std::uint64_t marks = (stops | are(word, ':') | are(word, '|')) & highs;
    for (; marks != 0; marks &= marks - 1) {
      const std::size_t place = i + static_cast<std::size_t>(std::countr_zero(marks)) / 8;
      at[count] = static_cast<std::uint16_t>(place), kinds[count] = p[place];
      ++count;
    }
  }
  return count;
}

#ifdef THRESHER_VECTORS

[[gnu::target("avx2,bmi,popcnt")]] std::size_t find_avx2(const char* p, std::size_t windows,
                                                         std::uint16_t* at, char* kinds) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < 64 * windows; i += 64) {
    const auto half = [&](std::size_t from) __attribute__((target("avx2,bmi,popcnt"))) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + from));
      const __m256i stops = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(' ')), bytes);
      const __m256i colons = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(':'));
      const __m256i bars = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('|'));
      return static_cast<std::uint32_t>(
          _mm256_movemask_epi8(_mm256_or_si256(stops, _mm256_or_si256(colons, bars))));
    };
    std::uint64_t marks = half(i) | std::uint64_t{half(i + 32)} << 32;
    const auto found = static_cast<std::size_t>(__builtin_popcountll(marks));
    // Eight at a time, so that the number of steps is easy to predict. Those beyond `found` are
    // overwritten by the next window.
    for (std::size_t k = count; k < count + found; k += 8)
      for (std::size_t j = 0; j < 8; ++j) {
        const std::size_t place = i + (_tzcnt_u64(marks) & 63);
        at[k + j] = static_cast<std::uint16_t>(place), kinds[k + j] = p[place];
        marks &= marks - 1;
      }
    count += found;
  }
  return count;
}

#define THRESHER_COMPRESS "avx512f,avx512bw,avx512vbmi,avx512vbmi2,popcnt"
[[gnu::target(THRESHER_COMPRESS)]] std::size_t find_avx512(const char* p, std::size_t windows,
                                                           std::uint16_t* at, char* kinds) {
  alignas(64) static constexpr auto numbers = [] {
    std::array<unsigned char, 64> all{};
    for (unsigned i = 0; i < 64; ++i) all[i] = static_cast<unsigned char>(i);
    return all;
  }();
  const __m512i places = _mm512_load_si512(numbers.data());
  std::size_t count = 0;
  for (std::size_t i = 0; i < 64 * windows; i += 64) {
    const __m512i bytes = _mm512_loadu_si512(p + i);
    const __mmask64 marks = _mm512_cmple_epu8_mask(bytes, _mm512_set1_epi8(' ')) |
                            _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(':')) |
                            _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('|'));
    const auto found = static_cast<std::size_t>(__builtin_popcountll(marks));
    const __m512i base = _mm512_set1_epi16(static_cast<short>(i));
    const __m512i here = _mm512_maskz_compress_epi8(marks, places);
    _mm512_storeu_si512(kinds + count, _mm512_maskz_compress_epi8(marks, bytes));
    _mm512_storeu_si512(at + count,
                        _mm512_add_epi16(base, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(here))));
    if (found > 32)
      _mm512_storeu_si512(
          at + count + 32,
          _mm512_add_epi16(base, _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(here, 1))));
    count += found;
  }
  return count;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("popcnt");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vbmi2");
}

#endif

Marks::Find* finder(const std::string& level) {
  if (level == "none") return nullptr;
#ifdef THRESHER_VECTORS
  const bool any = level == "auto";
  if ((any || level == "avx512") && has_avx512()) return find_avx512;
  if ((any || level == "avx2") && has_avx2()) return find_avx2;
#endif
  if (level == "auto" || level == "portable") return find_portable;
  if (level == "avx2" || level == "avx512")
    throw std::invalid_argument("this machine does not have the level " + level);
  throw std::invalid_argument("level must be auto, avx512, avx2, portable or none");
}

}  // namespace

Marks::Marks(const std::string& level) : find_(finder(level)) {}

}  // namespace thresher::io
