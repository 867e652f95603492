// Parses plain features of VW text fast: `name` or `name:number`, separated by one blank.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "thresher/io/hash.hpp"
#include "thresher/io/marks.hpp"
#include "thresher/io/name_collector.hpp"
#include "thresher/io/number.hpp"
#include "thresher/io/scan.hpp"
#include "thresher/io/sketch.hpp"
#include "thresher/io/vw_scan.hpp"

namespace thresher::io::vw {

// The key of a feature, and whether it is the hash of a name.
struct Found {
  std::uint64_t key;
  bool named;
};

// A number in the default namespace is the key itself; every other name is hashed.
inline Found key_of(PrefixHash& hash, std::string_view name) {
  std::uint64_t key;
  if (!hash.has_prefix() && is_plain(name.data(), name.data() + name.size(), key))
    return {key, false};
  return {hash(name.data(), name.size()), true};
}

// Where features go: the arrays of a block from `count` on, a sketch, and `note` or `names`.
template <class Key, class Real, class Note>
struct Target {
  Key* keys;
  Real* values;
  std::size_t& count;
  std::uint64_t mask;
  std::uint8_t* registers;  // null: no sketch
  Ranks* ranks;             // not yet in registers
  const Note& note;
  Names* names;  // for vectors
};

// The keys of `count` names without a value, which follow each other with one blank between them.
// The name k ends at the mark ends[k] after `base`, and the mark before it is ends[k - 1].
template <bool near, std::size_t count>
THRESHER_INLINE void hash_names(const PrefixHash::Short<near>& hash, const char* base,
                                const std::uint16_t* ends, std::uint64_t* out) {
#pragma GCC unroll 8
  for (std::size_t k = 0; k < count; ++k) {
    const auto start = static_cast<std::uint16_t>(ends[static_cast<std::ptrdiff_t>(k) - 1] + 1);
    const std::size_t size = ends[k] - std::size_t{start};
    out[k] = hash(load<std::uint64_t>(base + start) & first_bytes[size], size);
  }
}

// Parses features from p on. Returns the position of the first that is not plain, or the end of the
// namespace. The marks tell where names and values end, so no feature depends on the one before it,
// and eight of them are parsed without a branch. `extras`: 0 none, 1 a sketch, 2 notes and maybe a
// sketch.
template <int extras, class Key, class Real, class Note>
class PlainLoop {
 public:
  THRESHER_INLINE PlainLoop(double weight, PrefixHash& hash, Marks& marks,
                            const Target<Key, Real, Note>& target)
      : weight_(weight), hash_(hash), marks_(marks), target_(target) {}

  THRESHER_INLINE const char* operator()(const char* p) {
    marks_.seek(p);
    std::uint16_t* const at = marks_.at();
    const char* const kinds = marks_.kinds();
    const char* base = marks_.base();
    std::size_t i = marks_.next(), last = marks_.count(), n = target_.count;
    const std::size_t most = hash_.short_size();
    const bool hashes = hash_.has_prefix();
    const auto factor = static_cast<Real>(weight_);
    const auto start_of = [&](std::size_t mark) THRESHER_INLINED {
      return static_cast<std::uint16_t>(at[static_cast<std::ptrdiff_t>(mark) - 1] + 1);
    };
    std::size_t start;
    for (;;) {
      start = start_of(i);
      if (i + 8 > last && start != 0 && !marks_.last()) {
        marks_.find(base + start);
        base = marks_.base(), last = marks_.count(), i = 0, start = 0;
      }
      if (hashes && i + 8 <= last && load<std::uint64_t>(kinds + i) == 0x2020202020202020u) {
        std::uint16_t longest = 0;
        for (std::size_t k = 0; k < 8; ++k) {
          const auto size = static_cast<std::uint16_t>(at[i + k] - start_of(i + k) - 1);
          longest = size > longest ? size : longest;  // 0 bytes: wraps to a large number
        }
        if (longest < most) [[likely]] {
          put_eight(base, at + i, n, factor);
          n += 8, i += 8;
          continue;
        }
      }
      if (i >= last) break;
      const std::size_t end = at[i], size = end - start;
      const char kind = kinds[i];
      if (size == 0) [[unlikely]]
        break;
      if (kind == ' ') {
        put(base + start, size, factor, n++);
        ++i;
      } else if (kind == ':') {
        if (i + 1 >= last) break;
        const std::size_t stop = at[i + 1];
        const char* const token = base + end + 1;
        double number;
        if (!parse_token(token, stop - end - 1, number)) [[unlikely]] {
          if (!parse_other(token, base + stop, number)) break;
        }
        const auto value = static_cast<Real>(number * weight_);
        if (!std::isfinite(value)) [[unlikely]]
          break;
        if (kinds[i + 1] == ' ') [[likely]] {
          put(base + start, size, value, n++);
          i += 2;
        } else {
          if (!ends(base + stop)) break;
          put(base + start, size, value, n++);
          ++i, start = stop;
          break;
        }
      } else {
        if (!ends(base + end)) break;
        put(base + start, size, factor, n++);
        start = end;
        break;
      }
    }
    target_.count = n;
    marks_.set_next(i);
    return base + start;
  }

 private:
  THRESHER_INLINE void put(const char* name, std::size_t size, Real value, std::size_t n) {
    std::uint64_t key;
    bool named = true;
    if (size <= hash_.short_size()) [[likely]] {
      const auto word = load<std::uint64_t>(name);
      const auto hashed = [&]() THRESHER_INLINED {
        const std::uint64_t kept = word & first_bytes[size];
        return hash_.is_near() ? PrefixHash::Short<true>(hash_)(kept, size)
                               : PrefixHash::Short<false>(hash_)(kept, size);
      };
      if (!hash_.has_prefix()) {
        key = digits_of(word, size);
        named = no_digits(key) || (size > 1 && *name == '0');
        key = named ? hashed() : number_of(key);
      } else {
        key = hashed();
      }
    } else {
      const Found found = key_of(hash_, {name, size});
      key = found.key, named = found.named;
    }
    if constexpr (extras != 0)
      if (extras == 1 || target_.registers)
        sketch_add(target_.registers, named ? key : mix(key, 0));
    if constexpr (extras == 2) target_.note(key, named, {name, size});
    target_.keys[n] = static_cast<Key>(key & target_.mask);
    target_.values[n] = value;
  }

  THRESHER_INLINE void put_eight(const char* base, const std::uint16_t* marks, std::size_t n,
                                 Real value) {
    std::uint64_t found[8];
    if (hash_.is_near()) [[likely]]
      hash_names<true, 8>(PrefixHash::Short<true>(hash_), base, marks, found);
    else hash_names<false, 8>(PrefixHash::Short<false>(hash_), base, marks, found);
    if constexpr (extras != 0)
      if (extras == 1 || target_.registers)
        for (const std::uint64_t key : found) sketch_add(target_.registers, key);
    if constexpr (extras == 2)
      for (std::size_t k = 0; k < 8; ++k) {
        const auto start =
            static_cast<std::uint16_t>(marks[static_cast<std::ptrdiff_t>(k) - 1] + 1);
        target_.note(found[k], true, {base + start, marks[k] - std::size_t{start}});
      }
    Key* const keys = target_.keys + n;
    Real* const values = target_.values + n;
    for (std::size_t k = 0; k < 8; ++k) keys[k] = static_cast<Key>(found[k] & target_.mask);
    for (std::size_t k = 0; k < 8; ++k) values[k] = value;
  }

  double weight_;
  PrefixHash& hash_;
  Marks& marks_;
  const Target<Key, Real, Note>& target_;
};

// The same, compiled for machines with BMI and LZCNT, and for all.
template <int extras, class Key, class Real, class Note>
THRESHER_MODERN const char* modern_loop(const char* p, double weight, PrefixHash& hash,
                                        Marks& marks, const Target<Key, Real, Note>& target) {
  return PlainLoop<extras, Key, Real, Note>(weight, hash, marks, target)(p);
}
template <int extras, class Key, class Real, class Note>
[[gnu::noinline]] const char* other_loop(const char* p, double weight, PrefixHash& hash,
                                         Marks& marks, const Target<Key, Real, Note>& target) {
  return PlainLoop<extras, Key, Real, Note>(weight, hash, marks, target)(p);
}

}  // namespace thresher::io::vw
