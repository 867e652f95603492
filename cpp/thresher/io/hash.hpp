// The hash of feature names and the digest of blocks. It must never change: models store its keys.
//
// Both repeat one step: multiply two 64-bit words to 128 bits and xor the halves. Up to 16 bytes
// take two steps; long texts are processed in four lanes of 16 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "thresher/io/bytes.hpp"

namespace thresher::io {

namespace detail {

__extension__ using Wide = unsigned __int128;

inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Fractional parts of the square roots of 2, 3, 5, 7, 11 and 13, made odd.
inline constexpr std::uint64_t salt[6] = {0x6A09E667F3BCC909u, 0xBB67AE8584CAA73Bu,
                                          0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
                                          0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu};

}  // namespace detail

// a and b: a text of up to 16 bytes, padded with zeros; for a longer text, its last 16 bytes.
inline std::uint64_t hash_words(std::uint64_t a, std::uint64_t b, std::size_t size,
                                std::uint64_t h = detail::salt[4]) {
  using detail::fold, detail::salt;
  return fold(fold(a ^ salt[1], b ^ h) ^ salt[2], size ^ salt[3]);
}

inline std::uint64_t hash64(const char* p, std::size_t size) {
  using detail::fold, detail::salt;
  std::uint64_t a = 0, b = 0;
  if (size <= 16) [[likely]] {
    if (size > 8) {
      a = load<std::uint64_t>(p), b = load<std::uint64_t>(p + size - 8) >> (128 - 8 * size);
    } else if (size >= 4) {
      a = load<std::uint32_t>(p);
      a |= std::uint64_t{load<std::uint32_t>(p + size - 4)} << (8 * size - 32);
    } else if (size > 0) {
      for (const std::size_t i : {std::size_t{0}, size / 2, size - 1})
        a |= static_cast<std::uint64_t>(static_cast<unsigned char>(p[i])) << (8 * i);
    }
    return hash_words(a, b, size);
  }
  std::uint64_t h = salt[4];
  std::size_t left = size;
  if (left > 64) {
    std::uint64_t lane[4] = {h, salt[1], salt[2], salt[3]};
    for (; left > 64; p += 64, left -= 64)
      for (int i = 0; i < 4; ++i)
        lane[i] = fold(load<std::uint64_t>(p + 16 * i) ^ salt[i],
                       load<std::uint64_t>(p + 16 * i + 8) ^ lane[i]);
    h = fold(lane[0] ^ salt[5], lane[1]) ^ fold(lane[2] ^ salt[5], lane[3]);
  }
  for (; left > 16; p += 16, left -= 16)
    h = fold(load<std::uint64_t>(p) ^ salt[0], load<std::uint64_t>(p + 8) ^ h);
  // the last 16 bytes, which may overlap with bytes hashed above
  return hash_words(load<std::uint64_t>(p + left - 16), load<std::uint64_t>(p + left - 8), size, h);
}

inline std::uint64_t hash64(std::string_view bytes) { return hash64(bytes.data(), bytes.size()); }

// hash64(prefix + name) for many names. At least 16 bytes must be readable at a name and at the
// text of the prefix, whatever their size. The text of the prefix must stay valid.
class PrefixHash {
 public:
  void set_prefix(std::string_view prefix) { set(prefix, 0); }
  void set_space(std::string_view space) { set(space, space.empty() ? 0 : '^'); }  // space + '^'
  bool has_prefix() const { return before_ != 0; }
  // The number of calls before this one since the prefix was set.
  std::size_t next_nameless() { return nameless_++; }
  std::string prefix() const {
    std::string text(text_);
    if (bar_) text += bar_;
    return text;
  }

  // The same hash for names of up to short_size() bytes, given as a word padded with zeros. A
  // separate object, so that its members stay in registers. `near`: is_near().
  template <bool near>
  class Short {
   public:
    explicit Short(const PrefixHash& hash)
        : first_(hash.first_),
          second_(hash.second_),
          shift_(static_cast<int>(8 * hash.before_ & 63)),
          before_(hash.before_) {}
    [[gnu::always_inline]] std::uint64_t operator()(std::uint64_t word, std::size_t size) const {
      if constexpr (near)
        return hash_words(first_ | word << shift_, word >> 1 >> (63 - shift_), before_ + size);
      else return hash_words(first_, second_ | word << shift_, before_ + size);
    }

   private:
    std::uint64_t first_, second_;
    int shift_;
    std::size_t before_;
  };
  std::size_t before() const { return before_; }
  std::uint64_t first() const { return first_; }
  std::uint64_t second() const { return second_; }
  bool is_near() const { return before_ < 8; }  // names begin in the first word
  std::size_t short_size() const { return before_ <= 8 ? 8 : before_ < 16 ? 16 - before_ : 0; }

  std::uint64_t operator()(const char* name, std::size_t size) {
    const std::size_t before = before_;
    if (before + size > 16) [[unlikely]]
      return joined(name, size);
    constexpr auto kept = [](std::uint64_t word, std::size_t bytes) {  // bytes > 0
      return word & ~std::uint64_t{0} >> (64 - 8 * bytes);
    };
    const std::uint64_t a = kept(load<std::uint64_t>(name), std::min<std::size_t>(size, 8));
    if (before >= 8)
      return hash_words(first_, second_ | (before < 16 ? a << (8 * before - 64) : 0),
                        before + size);
    const std::uint64_t b = size > 8 ? kept(load<std::uint64_t>(name + 8), size - 8) : 0;
    if (before == 0) return hash_words(a, b, size);
    return hash_words(first_ | a << (8 * before), a >> (64 - 8 * before) | b << (8 * before),
                      before + size);
  }

 private:
  std::uint64_t joined(const char* name, std::size_t size) {
    if (before_ == 0) return hash64(name, size);
    if (joined_.empty()) joined_ = prefix();
    joined_.append(name, size);
    const std::uint64_t hash = hash64(joined_);
    joined_.resize(before_);
    return hash;
  }

  void set(std::string_view text, char bar) {
    const std::size_t size = text.size();
    // the first bytes of a word, then the bar, then zeros
    const auto cut = [bar](std::uint64_t word, std::size_t bytes) {
      return (word & ((std::uint64_t{1} << 8 * bytes) - 1)) | static_cast<std::uint64_t>(bar)
                                                                  << 8 * bytes;
    };
    text_ = text, bar_ = bar, before_ = size + (bar != 0), first_ = second_ = 0;
    nameless_ = 0;
    joined_.clear();
    if (size == 0) return;
    first_ = load<std::uint64_t>(text.data());
    if (size < 8) {
      first_ = cut(first_, size);
    } else {
      second_ = load<std::uint64_t>(text.data() + 8);
      if (size < 16) second_ = cut(second_, size - 8);
    }
  }

  std::string_view text_;
  char bar_ = 0;            // follows the text unless it is 0
  std::size_t before_ = 0;  // size of text and bar
  std::size_t nameless_ = 0;
  std::uint64_t first_ = 0, second_ = 0;  // bytes of text and bar, padded with zeros
  std::string joined_;                    // text and bar, built at first use
};

// Combines two keys into one; the order matters.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  using detail::salt;
  const detail::Wide product = static_cast<detail::Wide>(a ^ salt[0]) * (b ^ salt[1]);
  return detail::fold(static_cast<std::uint64_t>(product) ^ salt[2],
                      static_cast<std::uint64_t>(product >> 64) ^ salt[3]);
}

}  // namespace thresher::io
