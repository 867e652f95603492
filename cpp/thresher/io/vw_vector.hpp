// The loop of vw_plain.hpp for machines with AVX-512: eight features at a time, with and without
// values. It gives the same keys and values.
#pragma once

#include "thresher/io/vw_plain.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

namespace thresher::io::vw {

#define THRESHER_512                                                                       \
  gnu::target(                                                                             \
      "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt," \
      "popcnt")

inline bool has_vectors() {
  return is_modern() && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2");
}

namespace vectors {

[[THRESHER_512, gnu::always_inline]] inline __m512i all(std::uint64_t word) {
  return _mm512_set1_epi64(static_cast<long long>(word));
}

struct Product {
  __m512i low, high;
};

// The 128-bit products of eight pairs.
[[THRESHER_512, gnu::always_inline]] inline Product multiply(__m512i x, __m512i y) {
  const __m512i half = all(0xFFFFFFFFu);
  const __m512i x1 = _mm512_srli_epi64(x, 32), y1 = _mm512_srli_epi64(y, 32);
  const __m512i a = _mm512_mul_epu32(x, y), b = _mm512_mul_epu32(x, y1);
  const __m512i c = _mm512_mul_epu32(x1, y), d = _mm512_mul_epu32(x1, y1);
  const __m512i t = _mm512_add_epi64(c, _mm512_srli_epi64(a, 32));
  const __m512i u = _mm512_add_epi64(b, _mm512_and_si512(t, half));
  return {
      _mm512_mask_blend_epi32(0x5555, _mm512_slli_epi64(u, 32), a),
      _mm512_add_epi64(d, _mm512_add_epi64(_mm512_srli_epi64(t, 32), _mm512_srli_epi64(u, 32)))};
}

// detail::fold(), hash_words() and mix(key, 0) of eight.
[[THRESHER_512, gnu::always_inline]] inline __m512i fold(__m512i x, __m512i y) {
  const Product product = multiply(x, y);
  return _mm512_xor_si512(product.low, product.high);
}
[[THRESHER_512, gnu::always_inline]] inline __m512i hash_words(__m512i a, __m512i b, __m512i size) {
  using detail::salt;
  const __m512i h = fold(_mm512_xor_si512(a, all(salt[1])), _mm512_xor_si512(b, all(salt[4])));
  return fold(_mm512_xor_si512(h, all(salt[2])), _mm512_xor_si512(size, all(salt[3])));
}
[[THRESHER_512, gnu::always_inline]] inline __m512i mix_zero(__m512i key) {
  using detail::salt;
  const Product product = multiply(_mm512_xor_si512(key, all(salt[0])), all(salt[1]));
  return fold(_mm512_xor_si512(product.low, all(salt[2])),
              _mm512_xor_si512(product.high, all(salt[3])));
}

// The words that are chosen, at most eight, as 64-bit numbers.
[[THRESHER_512, gnu::always_inline]] inline __m512i chosen_of(__mmask16 chosen, __m256i words) {
  const __m256i found = _mm256_maskz_compress_epi16(chosen, words);
  return _mm512_cvtepu16_epi64(_mm256_castsi256_si128(found));
}

// A mask of the first `bits` bits, 0 to 64.
[[THRESHER_512, gnu::always_inline]] inline __m512i first_bits(__m512i bits) {
  return _mm512_srlv_epi64(all(~std::uint64_t{0}), _mm512_sub_epi64(all(64), bits));
}

// digits_of(), number_of() and no_digits() of eight.
[[THRESHER_512, gnu::always_inline]] inline __m512i digits_of(__m512i word, __m512i bits) {
  return _mm512_sllv_epi64(_mm512_xor_si512(word, all(0x3030303030303030u)),
                           _mm512_sub_epi64(all(64), bits));
}
[[THRESHER_512, gnu::always_inline]] inline __m512i number_of(__m512i word) {
  const __m512i mask = all(0x000000FF000000FFu);
  const __m512i ten = _mm512_add_epi64(_mm512_slli_epi64(word, 3), _mm512_slli_epi64(word, 1));
  word = _mm512_add_epi64(ten, _mm512_srli_epi64(word, 8));
  const __m512i a = _mm512_mullo_epi64(_mm512_and_si512(word, mask), all(0x000F424000000064u));
  const __m512i b = _mm512_mullo_epi64(_mm512_and_si512(_mm512_srli_epi64(word, 16), mask),
                                       all(0x0000271000000001u));
  return _mm512_srli_epi64(_mm512_add_epi64(a, b), 32);
}
[[THRESHER_512, gnu::always_inline]] inline __mmask8 no_digits(__m512i word) {
  const __m512i sum = _mm512_add_epi64(word, all(0x7676767676767676u));
  return _mm512_test_epi64_mask(_mm512_or_si512(sum, word), all(0x8080808080808080u));
}

// parse_token() of eight tokens at base + at. `good`: those that it could parse.
[[THRESHER_512, gnu::always_inline]] inline __m512d parse_tokens(const char* base, __m512i at,
                                                                 __m512i size, __mmask8 lanes,
                                                                 __mmask8& good) {
  __m512i word = _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), lanes, at, base, 1);
  const __mmask8 negative =
      _mm512_cmpeq_epi64_mask(_mm512_and_si512(word, all(0xFF)), all('-')) & lanes;
  good = lanes & _mm512_cmple_epu64_mask(size, all(8));
  word = _mm512_mask_srli_epi64(word, negative, word, 8);
  size = _mm512_mask_sub_epi64(size, negative, size, all(1));
  good &= _mm512_cmpgt_epu64_mask(size, _mm512_setzero_si512());
  __m512i bits = _mm512_slli_epi64(size, 3);
  const __m512i kept = first_bits(bits);
  word = _mm512_and_si512(word, kept);
  const __m512i other = _mm512_xor_si512(word, all(0x2E2E2E2E2E2E2E2Eu));
  __m512i point = _mm512_and_si512(
      _mm512_andnot_si512(other, _mm512_sub_epi64(other, all(0x0101010101010101u))),
      all(0x8080808080808080u));
  point = _mm512_or_si512(point, _mm512_slli_epi64(_mm512_add_epi64(kept, all(1)), 7));
  good &= _mm512_test_epi64_mask(point, point);
  const __m512i before =
      _mm512_srli_epi64(_mm512_xor_si512(point, _mm512_sub_epi64(point, all(1))), 8);
  const __m512i whole = _mm512_sub_epi64(all(64), _mm512_lzcnt_epi64(before));
  bits = _mm512_mask_sub_epi64(bits, _mm512_cmpneq_epi64_mask(whole, bits), bits, all(8));
  good &= _mm512_test_epi64_mask(bits, bits);
  const __m512i digits =
      digits_of(_mm512_or_si512(_mm512_and_si512(word, before),
                                _mm512_andnot_si512(before, _mm512_srli_epi64(word, 8))),
                bits);
  good &= static_cast<__mmask8>(~no_digits(digits));
  const __m512d powers = _mm512_loadu_pd(powers_of_ten);
  const __m512i places = _mm512_srli_epi64(_mm512_sub_epi64(bits, whole), 3);
  const __m512d value =
      _mm512_div_pd(_mm512_cvtepi64_pd(number_of(digits)), _mm512_permutexvar_pd(places, powers));
  const __m512i flipped = _mm512_mask_xor_epi64(_mm512_castpd_si512(value), negative,
                                                _mm512_castpd_si512(value), all(1ull << 63));
  return _mm512_castsi512_pd(flipped);
}

// Those of the keys that were not reported before; some that were may be among them.
[[THRESHER_512, gnu::always_inline]] inline __mmask8 unreported(const ReportedKeys::View& reported,
                                                                __m512i key, __mmask8 lanes) {
  const __m512i nothing = _mm512_setzero_si512();
  const __m512i place =
      reported.exact ? _mm512_srli_epi64(key, 6) : _mm512_and_si512(key, all(reported.mask));
  const __m512i word = _mm512_mask_i64gather_epi64(nothing, lanes, place, reported.words, 8);
  return reported.exact ? _mm512_mask_testn_epi64_mask(lanes, word, _mm512_rolv_epi64(all(1), key))
                        : _mm512_mask_cmpneq_epi64_mask(lanes, word, key);
}

// Note the names of features, which begin at base + begin, as Names::see() of each one does. The
// first function is for names that wait.
[[THRESHER_512, gnu::always_inline]] inline void note_later(Names& names, const PrefixHash& space,
                                                            __m512i folded, __mmask8 lanes,
                                                            const char* base, __m512i begin,
                                                            __m512i size) {
  const __mmask8 fresh = unreported(names.reported(), folded, lanes);
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(base));
  const __m512i name = _mm512_add_epi64(begin, all(address));
  SeenNames& seen = names.seen();
  const std::size_t n = seen.count;
  _mm512_storeu_si512(seen.keys.data() + n, _mm512_maskz_compress_epi64(fresh, folded));
  _mm512_storeu_si512(seen.names.data() + n, _mm512_maskz_compress_epi64(fresh, name));
  _mm512_storeu_si512(seen.sizes.data() + n, _mm512_maskz_compress_epi64(fresh, size));
  seen.count += static_cast<std::size_t>(__builtin_popcount(fresh));
  if (seen.count > SeenNames::most) [[unlikely]]
    names.flush(space);
}
[[THRESHER_512, gnu::always_inline]] inline void note_now(Names& names, const PrefixHash& space,
                                                          __m512i key, __m512i folded,
                                                          __mmask8 lanes, const char* base,
                                                          __m512i begin, __m512i size) {
  const ReportedKeys::View reported = names.reported();
  __mmask8 fresh = unreported(reported, key, lanes);
  if (fresh == 0) return;
  // If keys share a slot, the first one may make the table forget the second one.
  const __m512i slots = _mm512_and_si512(key, all(reported.mask));
  const __m512i same = _mm512_conflict_epi64(slots);
  if (_mm512_test_epi64_mask(same, same)) fresh = lanes;
  alignas(64) std::uint64_t keys[8], cells[8], starts[8], sizes[8];
  _mm512_store_si512(keys, key);
  _mm512_store_si512(cells, folded);
  _mm512_store_si512(starts, begin);
  _mm512_store_si512(sizes, size);
  for (unsigned left = fresh; left != 0; left &= left - 1) {
    const auto k = static_cast<unsigned>(__builtin_ctz(left));
    names.see(keys[k], cells[k], space, {base + starts[k], sizes[k]});
  }
}

// The hash of names in a namespace.
struct Space {
  [[THRESHER_512, gnu::always_inline]] explicit Space(const PrefixHash& hash)
      : numbers(!hash.has_prefix()),
        near(hash.is_near()),
        most(all(hash.short_size())),
        before(all(hash.before())),
        shift(all(8 * hash.before() & 63)),
        first(all(hash.first())),
        second(all(hash.second())) {}

  // Names of up to `most` bytes, padded with zeros.
  [[THRESHER_512, gnu::always_inline]] __m512i operator()(__m512i name, __m512i size) const {
    const __m512i low = _mm512_sllv_epi64(name, shift);
    size = _mm512_add_epi64(before, size);
    if (!near) [[unlikely]]
      return hash_words(first, _mm512_or_si512(second, low), size);
    const __m512i high = _mm512_srlv_epi64(name, _mm512_sub_epi64(all(64), shift));
    return hash_words(_mm512_or_si512(first, low), high, size);
  }

  bool numbers, near;
  __m512i most, before, shift, first, second;
};

}  // namespace vectors

// A number that the compiler does not replace by another way to compute it.
THRESHER_INLINE std::size_t constant(std::size_t number) {
  asm volatile("" : "+r"(number));
  return number;
}

// The largest number that becomes a finite Real.
template <class Real>
constexpr double largest_of = sizeof(Real) == 4 ? 0x1.FFFFFEFFFFFFFp127 : 0x1.FFFFFFFFFFFFFp1023;

// `extras` as in PlainLoop; 3: names that wait, 4: names that do not, and maybe a sketch.
template <int extras, class Key, class Real, class Note>
[[THRESHER_512]] const char* vector_loop(const char* p, double& weight, PrefixHash& hash,
                                         Marks& marks, const Target<Key, Real, Note>& target) {
  using vectors::all;
  marks.seek(p);
  std::uint16_t* const at = marks.at();
  const char* const kinds = marks.kinds();
  const char* base = marks.base();
  std::size_t i = marks.next(), last = marks.count(), n = target.count;
  vectors::Space space(hash);
  __m512d factor = _mm512_set1_pd(weight);
  const __m512i mask = all(target.mask);
  std::size_t start;
  for (;;) {
    start = static_cast<std::uint16_t>(at[static_cast<std::ptrdiff_t>(i) - 1] + 1);
    if (i + 16 > last && start != 0 && !marks.last()) {
      marks.find(base + start);
      base = marks.base(), last = marks.count(), i = 0, start = 0;
    }
    // The features of the next 16 marks: each ends with a blank, the last one of a line with a
    // newline. A colon may come before.
    const __m128i kind = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kinds + i));
    const std::uint32_t blanks = _mm_cmpeq_epi8_mask(kind, _mm_set1_epi8(' '));
    const std::uint32_t colons = _mm_cmpeq_epi8_mask(kind, _mm_set1_epi8(':'));
    const std::uint32_t lines = _mm_cmpeq_epi8_mask(kind, _mm_set1_epi8('\n'));
    const std::uint32_t bars = _mm_cmpeq_epi8_mask(kind, _mm_set1_epi8('|'));
    const std::uint32_t known =
        last - i < 16 ? ~std::uint32_t{0} << (last - i) : ~std::uint32_t{0} << 16;
    const std::uint32_t others = ~(blanks | colons) | (colons & colons << 1) | known;
    const std::uint32_t rest = others & (0 - others);  // the first mark that is not plain
    std::uint32_t stops = (blanks & (rest - 1)) | (rest & lines & ~known);
    stops = _pdep_u32(0xFF, stops);
    auto lanes = static_cast<__mmask8>(_pext_u32(stops, stops));
    const auto valued = static_cast<__mmask8>(_pext_u32(colons << 1, stops));

    const __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + i));
    const __m256i previous = _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(at + static_cast<std::ptrdiff_t>(i) - 1));
    const auto chosen = static_cast<__mmask16>(stops);
    const __m512i stop = vectors::chosen_of(chosen, places);
    const __m512i colon = vectors::chosen_of(chosen, previous);
    const __m512i end = _mm512_mask_blend_epi64(valued, stop, colon);
    const __m512i begin = _mm512_add_epi64(_mm512_alignr_epi64(stop, all(start - 1), 7), all(1));
    const __m512i size = _mm512_sub_epi64(end, begin);
    // Stop before an empty name.
    const __mmask8 empty = _mm512_mask_cmpeq_epi64_mask(lanes, size, _mm512_setzero_si512());
    bool cut = false;
    if (empty) [[unlikely]]
      lanes &= static_cast<__mmask8>((empty & -empty) - 1), cut = true;
    if (lanes == 0) break;

    const __m512i word = _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), lanes, begin, base, 1);
    const __m512i bits = _mm512_slli_epi64(size, 3);
    const __m512i name = _mm512_and_si512(word, vectors::first_bits(bits));
    __m512i key = space(name, size);
    __mmask8 named = 0xFF;
    if (space.numbers) {
      const __m512i digits = vectors::digits_of(name, bits);
      const __mmask8 zeros = _mm512_cmpeq_epi64_mask(_mm512_and_si512(name, all(0xFF)), all('0')) &
                             _mm512_cmpgt_epu64_mask(size, all(1));
      named = vectors::no_digits(digits) | zeros;
      key = _mm512_mask_blend_epi64(named, vectors::number_of(digits), key);
    }
    if (const __mmask8 longer = _mm512_mask_cmpgt_epu64_mask(lanes, size, space.most))
        [[unlikely]] {
      alignas(64) std::uint64_t found[8], starts[8], sizes[8];
      _mm512_store_si512(found, key);
      _mm512_store_si512(starts, begin);
      _mm512_store_si512(sizes, size);
      for (unsigned left = longer; left != 0; left &= left - 1) {
        const auto k = static_cast<unsigned>(__builtin_ctz(left));
        const Found long_name = key_of(hash, {base + starts[k], sizes[k]});
        found[k] = long_name.key;
        named = static_cast<__mmask8>((named & ~(1u << k)) | unsigned{long_name.named} << k);
      }
      key = _mm512_load_si512(found);
    }

    __m512d value = factor;
    if (valued & lanes) {
      __mmask8 good;
      const __m512i from = _mm512_add_epi64(end, all(1)), digits = _mm512_sub_epi64(stop, from);
      const __mmask8 wanted = valued & lanes;
      __m512d number = vectors::parse_tokens(base, from, digits, wanted, good);
      if (good != wanted) [[unlikely]] {
        alignas(64) double parsed[8];
        alignas(64) std::uint64_t starts[8], ends[8];
        _mm512_store_pd(parsed, number);
        _mm512_store_si512(starts, from);
        _mm512_store_si512(ends, stop);
        for (unsigned left = wanted & ~good; left != 0; left &= left - 1) {
          const auto k = static_cast<unsigned>(__builtin_ctz(left));
          const char* const token = base + starts[k];
          if (!parse_token(token, ends[k] - starts[k], parsed[k]) &&
              !parse_other(token, base + ends[k], parsed[k])) {
            lanes &= static_cast<__mmask8>((1u << k) - 1), cut = true;
            break;
          }
        }
        number = _mm512_load_pd(parsed);
      }
      value = _mm512_mask_mul_pd(value, wanted, number, factor);
      // Numbers that Real cannot hold.
      const __m512d largest = _mm512_set1_pd(largest_of<Real>);
      const __mmask8 infinite = _mm512_mask_cmp_pd_mask(static_cast<__mmask8>(wanted & lanes),
                                                        _mm512_abs_pd(value), largest, _CMP_NLE_UQ);
      if (infinite) [[unlikely]]
        lanes &= static_cast<__mmask8>((infinite & -infinite) - 1), cut = true;
      if (cut && lanes == 0) break;
    }

    if constexpr (extras != 0)
      if (extras == 1 || target.registers) {
        const __m512i mixed =
            space.numbers ? _mm512_mask_blend_epi64(named, vectors::mix_zero(key), key) : key;
        const __m512i rest_bits =
            _mm512_or_si512(_mm512_slli_epi64(mixed, sketch_bits), all(1u << (sketch_bits - 1)));
        const __m512i rank = _mm512_lzcnt_epi64(rest_bits);
        Ranks& ranks = *target.ranks;
        const __mmask8 high = _mm512_mask_cmpge_epu64_mask(lanes, rank, all(ranks.least));
        _mm512_storeu_si512(ranks.hashes + ranks.count, _mm512_maskz_compress_epi64(high, mixed));
        ranks.count += static_cast<std::uint32_t>(__builtin_popcount(high));
        if (ranks.count > Ranks::most) [[unlikely]]
          ranks.flush(target.registers);
      }
    if constexpr (extras == 2) {
      alignas(64) std::uint64_t found[8], starts[8], sizes[8];
      _mm512_store_si512(found, key);
      _mm512_store_si512(starts, begin);
      _mm512_store_si512(sizes, size);
      for (unsigned k = 0; k < 8 && (lanes >> k & 1); ++k)
        target.note(found[k], named >> k & 1, {base + starts[k], sizes[k]});
    }
    const __m512i folded = _mm512_and_si512(key, mask);
    const auto noted = static_cast<__mmask8>(lanes & named);
    if constexpr (extras == 3)
      vectors::note_later(*target.names, hash, folded, noted, base, begin, size);
    if constexpr (extras == 4)
      vectors::note_now(*target.names, hash, key, folded, noted, base, begin, size);
    if constexpr (sizeof(Key) == 4)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(target.keys + n),
                          _mm512_cvtepi64_epi32(folded));
    else _mm512_storeu_si512(target.keys + n, folded);
    if constexpr (sizeof(Real) == 4) _mm256_storeu_ps(target.values + n, _mm512_cvtpd_ps(value));
    else _mm512_storeu_pd(target.values + n, value);

    if (cut) [[unlikely]]  // the marks after the last feature that was taken stay
      stops &= (_pdep_u32(1u << (__builtin_popcount(lanes) - 1), stops) << 1) - 1;
    // The next turn needs to know where it begins. In the two usual cases this is a constant, which
    // the processor uses before it has seen the kinds, as it predicts the branch.
    auto taken = static_cast<std::size_t>(__builtin_popcount(stops));
    auto final = static_cast<std::size_t>(31 - __builtin_clz(stops));
    if (stops == 0xFF) taken = constant(8), final = constant(7);
    else if (stops == 0xAAAA) taken = constant(8), final = constant(15);
    n += taken;
    i += final;
    if (lines >> final & 1) {
      start = at[i];
      break;
    }
    ++i;
    if (extras != 2 && bars >> final & 2) {
      // The next namespace, if it has no weight: `|name `.
      start = at[i - 1] + std::size_t{1};
      if (start != at[i] || i + 1 >= last || kinds[i + 1] != ' ') break;
      if constexpr (extras == 3) target.names->flush(hash);
      hash.set_space({base + start + 1, static_cast<std::size_t>(at[i + 1] - at[i] - 1)});
      space = vectors::Space(hash);
      weight = 1, factor = _mm512_set1_pd(1);
      i += 2;
    }
  }
  target.count = n;
  marks.set_next(i);
  return base + start;
}

}  // namespace thresher::io::vw

#else

namespace thresher::io::vw {

inline bool has_vectors() { return false; }

}  // namespace thresher::io::vw

#endif
