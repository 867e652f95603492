// VW text: `[label [importance]] ['tag]|namespace[:weight] feature[:value] ... |namespace ...`.
//
// key_of() defines the key of a feature. Interactions are made when a row is complete, from the
// features before folding and merging.
#include "thresher/io/vw.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "thresher/io/assembly.hpp"
#include "thresher/io/hash.hpp"
#include "thresher/io/name_collector.hpp"
#include "thresher/io/number.hpp"
#include "thresher/io/scan.hpp"
#include "thresher/io/vw_scan.hpp"

namespace thresher::io {

namespace {

using vw::end_of_name, vw::ends, vw::is_plain, vw::parse_other;

constexpr std::size_t most_spaces = 1000;  // whose names are reported

template <class Real>
constexpr std::string_view too_large =
    sizeof(Real) == 4 ? "a number below 3.4e38" : "a number below 1.8e308";

class Vw final : public Parser {
 public:
  explicit Vw(const Options& options)
      : single_(options.single),
        narrow_(options.bits > 0 && options.bits <= 31),
        interactions_(options.interactions),
        assembly_(options),
        names_(options) {}

  void parse(std::string_view text, std::shared_ptr<Storage> storage, Block& block) override {
    assembly_.begin(text, std::move(storage), block);
    names_.begin(block);
    new_spaces_ = &block.spaces;
    if (narrow_ && single_) rows<std::int32_t, float>(text);
    else if (narrow_) rows<std::int32_t, double>(text);
    else if (single_) rows<std::int64_t, float>(text);
    else rows<std::int64_t, double>(text);
  }

 private:
  // A feature of the current row, for interactions.
  struct Term {
    std::uint64_t key;
    char letter;
    std::uint32_t space;  // index of the namespace in the row
    std::string_view name;
  };

  template <class Key, class Real>
  void rows(std::string_view text) {
    Storage& s = assembly_.storage();
    s.keys<Key>().reserve(text.size() / 2 + 2);  // the shortest feature is " a"
    s.values<Real>().reserve(text.size() / 2 + 2);
    const char *p = text.data(), *const end = assembly_.end();
    std::size_t first = 0;
    Complaint complaint{};
    while (p < end) {
      const char* const line = p;
      while (is_blank(*p)) ++p;
      if (at_end(p)) {
        assembly_.next_line();
        p += *p == '\r' ? 2 : 1;
        continue;
      }
      Head head;
      std::size_t count = first;
      bool good = parse_head(p, head, complaint) && parse_spaces<Key, Real>(p, count, complaint);
      if (good && !interactions_.empty()) good = interact<Key, Real>(line, first, count, complaint);
      if (good) {
        const std::size_t kept =
            assembly_.close(s.keys<Key>().data(), s.values<Real>().data(), first, count - first);
        if (kept == Assembly::npos)
          complaint = {line, "values of a repeated feature add up to infinity"}, good = false;
        else first += kept;
      }
      if (good) {
        s.labels.push(head.label);
        assembly_.weigh(head.weight);
        assembly_.tag(head.tag);
        assembly_.next_line();
        p += *p == '\r' ? 2 : 1;
      } else {
        p = assembly_.bad(line, complaint);
      }
    }
    names_.flush(hash_);
    assembly_.finish<Key, Real>();
  }

  struct Head {
    double label = std::numeric_limits<double>::quiet_NaN(), weight = 1;
    std::string_view tag;
  };

  // Parses everything before the first bar and moves p to it.
  bool parse_head(const char*& p, Head& head, Complaint& complaint) const {
    const auto fail = [&](const char* at, std::string_view expected) {
      complaint = complain(at, expected);
      return false;
    };
    for (int numbers = 0;; ++numbers) {
      while (is_blank(*p)) ++p;
      if (*p == '|') return true;
      const char* const first = p;
      while (!ends(p) && *p != '\0') ++p;
      if (*p == '\0') return fail(p, "text without NUL bytes");
      if (p == first) return fail(p, "'|'");
      if (*p == '|' || *first == '\'') {
        const char* const begin = first + (*first == '\'');
        head.tag = {begin, static_cast<std::size_t>(p - begin)};
        while (is_blank(*p)) ++p;
        return *p == '|' || fail(p, "'|' after the tag");
      }
      if (numbers == 2) return fail(first, "'|' or a tag");
      const char* q = first;
      double& number = numbers == 0 ? head.label : head.weight;
      const Number status = parse_double(q, number);
      if (status == Number::too_large) return fail(first, "a number below 1.8e308");
      if (status == Number::none)
        return fail(first, numbers == 0 ? "a label or '|'" : "an importance weight or '|'");
      if (q != p) return fail(q, "a blank after the number");
      if (numbers == 1 && number < 0) return fail(first, "an importance weight of at least 0");
    }
  }

  // Parses from the first bar to the end of the line.
  template <class Key, class Real>
  bool parse_spaces(const char*& p, std::size_t& count, Complaint& complaint) {
    const auto fail = [&](const char* at, std::string_view expected) {
      complaint = complain(at, expected);
      return false;
    };
    terms_.clear(), spaces_.clear();
    while (*p == '|') {
      const char* const first = ++p;
      p = end_of_name(p);
      set_space({first, static_cast<std::size_t>(p - first)});
      double weight = 1;
      if (*p == ':') {
        const char* const begin = ++p;
        const Number status = parse_double(p, weight);
        if (status == Number::too_large) return fail(begin, "a number below 1.8e308");
        if (status == Number::none) return fail(begin, "the namespace's weight, a finite number");
        if (!ends(p)) return fail(p, "a blank after the weight");
        if (!std::isfinite(static_cast<Real>(weight))) return fail(begin, too_large<Real>);
      }
      if (!parse_features<Key, Real>(p, weight, count, complaint)) return false;
    }
    return at_end(p) || fail(p, "text without NUL bytes");
  }

  // Parses features up to the next bar or the end of the line.
  template <class Key, class Real>
  bool parse_features(const char*& at, double weight, std::size_t& count, Complaint& complaint) {
    const auto fail = [&](const char* p, std::string_view expected) {
      complaint = complain(p, expected);
      return false;
    };
    Key* const keys = assembly_.storage().keys<Key>().data();
    Real* const values = assembly_.storage().values<Real>().data();
    const std::uint64_t mask = assembly_.mask();
    std::uint8_t* const registers = assembly_.registers();
    const bool interacts = !interactions_.empty();
    const auto factor = static_cast<Real>(weight);
    const char* p = at + is_blank(*at);
    for (;;) {
#if defined(__SSE2__)
      p = !names_.on() && !interacts ? registers ? parse_quickly<1>(p, keys, values, weight, count)
                                                 : parse_quickly<0>(p, keys, values, weight, count)
                                     : parse_quickly<2>(p, keys, values, weight, count);
      if (*p == '|' || *p == '\n') break;
#endif
      const char* const first = p;
      p = end_of_name(p);
      const std::string_view name(first, static_cast<std::size_t>(p - first));
      Real value = factor;
      if (*p == ' ' && p != first) [[likely]] {
        ++p;  // usual case: the processor predicts it, and parses the next name at the same time
      } else if (is_blank(*p)) {
        ++p;
        if (name.empty()) continue;
      } else if (*p == ':') {
        if (name.empty()) return fail(p, "a feature's name");
        const char* const begin = ++p;
        double number;
        if (!parse_short(p, number)) {
          const Number status = parse_double(p, number);
          if (status == Number::none) return fail(begin, "a finite number");
          if (status == Number::too_large) return fail(begin, "a number below 1.8e308");
        }
        if (*p == ' ') [[likely]]
          ++p;
        else if (!ends(p)) return fail(p, "a blank after the value");
        value = static_cast<Real>(number * weight);
        if (!std::isfinite(value)) return fail(begin, too_large<Real>);
      } else if (*p == '\0') {
        return fail(p, "text without NUL bytes");
      } else if (name.empty()) {
        break;
      }
      const auto [key, named] = key_of(name);
      if (registers) sketch_add(registers, named ? key : mix(key, 0));
      note(key, named, name);
      keys[count] = static_cast<Key>(key & mask);
      values[count] = value;
      ++count;
    }
    at = p;
    return true;
  }

  // Records what feature names and interactions need.
  void note(std::uint64_t key, bool named, std::string_view name) {
    const std::uint64_t folded = key & assembly_.mask();
    if (named) names_.see(key, folded, hash_, name);
    if (!interactions_.empty())
      terms_.push_back({key, letter_, static_cast<std::uint32_t>(spaces_.size() - 1), name});
  }

#if defined(__SSE2__)
  template <int extras, class Key, class Real>
  THRESHER_MODERN const char* modern_loop(const char* p, Key* keys, Real* values, double weight,
                                          std::size_t& count) {
    return loop<extras>(p, keys, values, weight, count);
  }
  template <int extras, class Key, class Real>
  [[gnu::noinline]] const char* other_loop(const char* p, Key* keys, Real* values, double weight,
                                           std::size_t& count) {
    return loop<extras>(p, keys, values, weight, count);
  }
  template <int extras, class Key, class Real>
  const char* parse_quickly(const char* p, Key* keys, Real* values, double weight,
                            std::size_t& count) {
    return modern_ ? modern_loop<extras>(p, keys, values, weight, count)
                   : other_loop<extras>(p, keys, values, weight, count);
  }

  // Parses plain features and returns the position of the first that is not plain, or the end of
  // the namespace. It finds the ends of names and values of a whole window at once, so that no
  // feature depends on the previous one. `extras`: 0 none, 1 a sketch, 2 names, interactions and
  // maybe a sketch.
  template <int extras, class Key, class Real>
  THRESHER_INLINE const char* loop(const char* p, Key* keys, Real* values, double weight,
                                   std::size_t& count) {
    const std::uint64_t mask = assembly_.mask();
    std::uint8_t* const registers = assembly_.registers();
    const auto factor = static_cast<Real>(weight);
    const PrefixHash::Short hash(hash_);
    const std::size_t short_size = hash_.is_short() ? 8 : 0;
    const bool numbers = !hash_.has_prefix();
    std::size_t n = count, start = 0;
    for (;; p += start) {
      std::uint64_t marks = window(p, [](__m128i bytes) {
        return _mm_or_si128(are_stops(bytes), _mm_or_si128(are(':', bytes), are('|', bytes)));
      });
      for (start = 0; marks != 0;) {
        const std::size_t end = place(marks), size = end - start;
        std::size_t next = end + 1;
        if (size == 0) [[unlikely]]
          return count = n, p + start;
        marks &= marks - 1;
        Real value = factor;
        if (p[end] == ':') {
          if (marks == 0) break;
          const std::size_t stop = place(marks);
          double number;
          if (!parse_token(p + next, stop - next, number)) [[unlikely]] {
            if (!parse_other(p + next, p + stop, number)) return count = n, p + start;
          }
          value = static_cast<Real>(number * weight);
          if (!std::isfinite(value)) [[unlikely]]
            return count = n, p + start;
          next = stop + 1;
          if (p[stop] == ' ') [[likely]]
            marks &= marks - 1;
          else if (ends(p + stop)) next = stop;
          else return count = n, p + start;
        } else if (p[end] != ' ') [[unlikely]] {
          if (!ends(p + end)) return count = n, p + start;
          marks |= std::uint64_t{1} << end, next = end;
        }
        const char* const name = p + start;
        std::uint64_t key;
        bool named = true;
        if (size <= short_size) [[likely]] {
          const auto word = load<std::uint64_t>(name);
          if (numbers) {
            key = digits_of(word, size);
            named = no_digits(key) || (size > 1 && *name == '0');
            key = named ? hash(word & first_bytes[size], size) : number_of(key);
          } else {
            key = hash(word & first_bytes[size], size);
          }
        } else {
          const Found long_name = key_of({name, size});
          key = long_name.key, named = long_name.named;
        }
        if constexpr (extras != 0)
          if (extras == 1 || registers) sketch_add(registers, named ? key : mix(key, 0));
        if constexpr (extras == 2) note(key, named, {name, size});
        keys[n] = static_cast<Key>(key & mask);
        values[n] = value;
        ++n;
        start = next;
      }
      if (start == 0) return count = n, p;  // the feature is longer than the window
    }
  }
#endif

  void set_space(std::string_view space) {
    letter_ = space.empty() ? ' ' : space.front();
    names_.flush(hash_);
    hash_.set_space(space);
    if (interactions_.empty()) return;
    spaces_.push_back(hash_.prefix());
    if (seen_spaces_.size() < most_spaces && seen_spaces_.emplace(space).second)
      new_spaces_->emplace_back(space);
  }

  // A number in the default namespace is the key itself; every other name is hashed.
  struct Found {
    std::uint64_t key;
    bool named;
  };
  Found key_of(std::string_view name) {
    std::uint64_t key;
    if (!hash_.has_prefix() && is_plain(name.data(), name.data() + name.size(), key))
      return {key, false};
    return {hash_(name.data(), name.size()), true};
  }

  // Appends the product of each pair of features that an interaction matches. If it matches both
  // (a, b) and (b, a), only one is appended: the one ordered by namespace letter, then by position.
  template <class Key, class Real>
  bool interact(const char* line, std::size_t first, std::size_t& count, Complaint& complaint) {
    Storage& s = assembly_.storage();
    const std::uint64_t mask = assembly_.mask();
    names_.flush(hash_);
    const auto matches = [](char pattern, char letter) {
      return pattern == ':' || pattern == letter;
    };
    for (const auto& [left, right] : interactions_) {
      for (std::size_t i = 0; i < terms_.size(); ++i) {
        const Term& a = terms_[i];
        if (!matches(left, a.letter)) continue;
        s.keys<Key>().resize(count), s.values<Real>().resize(count);
        s.keys<Key>().reserve(count + terms_.size());
        s.values<Real>().reserve(count + terms_.size());
        Key* const keys = s.keys<Key>().data();
        Real* const values = s.values<Real>().data();
        const bool a_right = matches(right, a.letter);
        for (std::size_t j = 0; j < terms_.size(); ++j) {
          const Term& b = terms_[j];
          if (!matches(right, b.letter)) continue;
          if (a_right && matches(left, b.letter) && std::pair(b.letter, j) < std::pair(a.letter, i))
            continue;
          const std::uint64_t key = mix(a.key, b.key);
          const auto value =
              static_cast<Real>(double{values[first + i]} * double{values[first + j]});
          if (!std::isfinite(value)) {
            complaint = {line, "the product of two features is infinite"};
            return false;
          }
          if (assembly_.registers()) sketch_add(assembly_.registers(), key);
          if (names_.wants(key, key & mask))
            names_.add(key & mask, spaces_[a.space], a.name, spaces_[b.space], b.name);
          keys[count] = static_cast<Key>(key & mask);
          values[count] = value;
          ++count;
        }
      }
    }
    // reserve room for the rest of the text again
    s.keys<Key>().resize(count), s.values<Real>().resize(count);
    const auto left = static_cast<std::size_t>(assembly_.end() - line) / 2 + 2;
    s.keys<Key>().reserve(count + left), s.values<Real>().reserve(count + left);
    return true;
  }

  bool single_, narrow_;
#if defined(__SSE2__)
  bool modern_ = is_modern();
#endif
  std::vector<std::array<char, 2>> interactions_;
  Assembly assembly_;
  Names names_;
  PrefixHash hash_;  // hashes names in the current namespace
  char letter_ = ' ';
  std::vector<Term> terms_;
  std::vector<std::string> spaces_;  // of the current row
  std::unordered_set<std::string> seen_spaces_;
  std::vector<std::string>* new_spaces_ = nullptr;
};

}  // namespace

std::unique_ptr<Parser> make_vw(const Options& options) { return std::make_unique<Vw>(options); }

}  // namespace thresher::io
