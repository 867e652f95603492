// A 64-bit checksum that detects accidental damage. It is not a hash for tables and does not
// protect against deliberate changes.
//
// Each of eight lanes takes every eighth word, so that the multiplications of the lanes overlap.
// Each step is a bijection of the lane for a fixed word and of the word for a fixed lane, and so is
// each step that joins the lanes. So any change within one word, such as a flipped bit, changes the
// sum.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace thresher::io {

static_assert(std::endian::native == std::endian::little, "caches are little-endian");

class Checksum {
 public:
  static constexpr std::size_t stripe = 64;

  // May be called several times; each size must be a multiple of `stripe`.
  void take(const void* data, std::size_t size) {
    size_ += size;
    const auto* bytes = static_cast<const unsigned char*>(data);
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
      const std::size_t whole = size / stripe;
      wide_steps(lane_, bytes, whole);
      bytes += whole * stripe, size -= whole * stripe;
    }
#endif
    std::uint64_t lane[lanes];  // a local copy, so that it stays in registers
    std::memcpy(lane, lane_, sizeof lane);
    for (; size >= stripe; size -= stripe, bytes += stripe) step(lane, bytes);
    std::memcpy(lane_, lane, sizeof lane);
  }

  // The same for the bytes followed by zeros up to a multiple of `stripe`.
  void take_padded(const void* data, std::size_t size) {
    const std::size_t whole = size / stripe * stripe;
    take(data, whole);
    if (size == whole) return;
    unsigned char last[stripe] = {};
    std::memcpy(last, static_cast<const unsigned char*>(data) + whole, size - whole);
    take(last, stripe);
  }

  std::uint64_t sum() const {
    std::uint64_t sum = size_;
    for (const std::uint64_t lane : lane_) {
      sum = (sum ^ lane) * odd;
      sum ^= sum >> 32;
    }
    return sum;
  }

 private:
  static constexpr std::size_t lanes = stripe / sizeof(std::uint64_t);
  static constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;

  static void step(std::uint64_t* lane, const unsigned char* from) {
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint64_t word;
      std::memcpy(&word, from + i * sizeof word, sizeof word);
      lane[i] = std::rotl(lane[i] ^ word, 29) * odd;
    }
  }

#if defined(__x86_64__) && defined(__GNUC__)
  // `count` steps, all lanes in one register.
  [[gnu::target("avx512f,avx512dq")]] static void wide_steps(std::uint64_t* lane,
                                                             const unsigned char* from,
                                                             std::size_t count) {
    const __m512i factor = _mm512_set1_epi64(static_cast<long long>(odd));
    __m512i all = _mm512_loadu_si512(lane);
    for (; count > 0; --count, from += stripe)
      all = _mm512_mullo_epi64(
          _mm512_maskz_rol_epi64(0xFF, _mm512_xor_si512(all, _mm512_loadu_si512(from)), 29),
          factor);
    _mm512_storeu_si512(lane, all);
  }
#endif

  // Lanes have different initial values, so that swapping two words changes the sum.
  std::uint64_t lane_[lanes] = {0xD6E8FEB86659FD93u, 0xADD1FD70CCB3FB26u, 0x84BAFC29330DF8B9u,
                                0x5BA3FAE19967F64Cu, 0x328CF999FFC1F3DFu, 0x0975F852661BF172u,
                                0xE05EF70ACC75EF05u, 0xB747F5C332CFEC98u};
  std::uint64_t size_ = 0;
};

inline std::uint64_t checksum(const void* data, std::size_t size) {
  Checksum checksum;
  checksum.take(data, size);
  return checksum.sum();
}

}  // namespace thresher::io
