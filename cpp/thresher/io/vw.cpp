// VW text: `[label [importance [0]]] ['tag]|namespace[:weight] feature[:value] ... |namespace ...`.
// The name of a feature with a value may be missing: it is then the number of such features before
// it in its namespace, as in VW.
//
// vw::key_of() defines the key of a feature. Interactions are made when a row is complete, from the
// features before folding and merging.
#include "thresher/io/vw.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "thresher/io/assembly.hpp"
#include "thresher/io/hash.hpp"
#include "thresher/io/marks.hpp"
#include "thresher/io/name_collector.hpp"
#include "thresher/io/number.hpp"
#include "thresher/io/scan.hpp"
#include "thresher/io/vw_plain.hpp"
#include "thresher/io/vw_scan.hpp"
#include "thresher/io/vw_vector.hpp"

namespace thresher::io {

namespace {

using vw::end_of_name, vw::ends;

// Most features of a text (the shortest is " a"); eight are written at a time.
constexpr std::size_t room_for(std::size_t bytes) { return bytes / 2 + 10; }

constexpr std::size_t most_spaces = 1000;  // whose names are reported, and one for each letter

constexpr bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

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
        names_(options),
        marks_(options.level),
        modern_(options.level != "portable" && is_modern()),
        vectors_((options.level == "auto" || options.level == "avx512") && vw::has_vectors()) {}

  void parse(std::string_view text, std::shared_ptr<Storage> storage, Block& block) override {
    assembly_.begin(text, std::move(storage), block);
    names_.begin(block);
    marks_.begin(assembly_.end());
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
    s.keys<Key>().reserve(room_for(text.size())), s.values<Real>().reserve(room_for(text.size()));
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
      if (numbers == 3) return fail(first, "'|' or a tag");
      const char* q = first;
      double initial = 0;
      double& number = numbers == 0 ? head.label : numbers == 1 ? head.weight : initial;
      const Number status = parse_double(q, number);
      if (status == Number::too_large) return fail(first, "a number below 1.8e308");
      if (status == Number::none)
        return fail(first, numbers == 0   ? "a label or '|'"
                           : numbers == 1 ? "an importance weight or '|'"
                                          : "'|' or a tag");
      if (q != p) return fail(q, "a blank after the number");
      if (numbers == 2 && initial != 0)
        return fail(first, "no initial prediction other than 0, '|' or a tag");
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
    const char* p = at + is_blank(*at);
    for (;;) {
      if (marks_.on()) {
        p = parse_quickly<Key, Real>(p, weight, count);
        if (*p == '|' || *p == '\n') break;
      }
      const char* const first = p;
      p = end_of_name(p);
      std::string_view name(first, static_cast<std::size_t>(p - first));
      auto value = static_cast<Real>(weight);
      if (*p == ' ' && p != first) [[likely]] {
        ++p;  // usual case: the processor predicts it, and parses the next name at the same time
      } else if (is_blank(*p)) {
        ++p;
        if (name.empty()) continue;
      } else if (*p == ':') {
        if (name.empty()) name = nameless(hash_.next_nameless());
        const char* const begin = ++p;
        double number;
        if (!parse_short(p, number)) {
          const Number status = parse_double(p, number);
          if (status == Number::none) {
            complaint = complain(begin, "a finite number");
            if (is_letter(*begin)) complaint.what += "; a word belongs to the name: color=red";
            return false;
          }
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
      const auto [key, named] = vw::key_of(hash_, name);
      if (registers) sketch_add(registers, named ? key : mix(key, 0));
      note(key, named, name);
      keys[count] = static_cast<Key>(key & mask);
      values[count] = value;
      ++count;
    }
    at = p;
    return true;
  }

  // The name of a feature that has only a value. It stays valid as long as the parser.
  std::string_view nameless(std::size_t number) {
    while (number >= numbers_.size()) {
      Digits& text = numbers_.emplace_back();
      std::to_chars(text.data(), text.data() + text.size(), numbers_.size() - 1);
    }
    return numbers_[number].data();
  }

  // Records what feature names and interactions need.
  void note(std::uint64_t key, bool named, std::string_view name) {
    const std::uint64_t folded = key & assembly_.mask();
    if (named) names_.see(key, folded, hash_, name);
    if (!interactions_.empty())
      terms_.push_back({key, letter_, static_cast<std::uint32_t>(spaces_.size() - 1), name});
  }

  // Parses plain features; see plain_loop().
  template <class Key, class Real>
  const char* parse_quickly(const char* p, double& weight, std::size_t& count) {
    const auto noted = [this](std::uint64_t key, bool named, std::string_view name) {
      note(key, named, name);
    };
    Storage& s = assembly_.storage();
    const vw::Target<Key, Real, decltype(noted)> target{
        s.keys<Key>().data(),  s.values<Real>().data(), count, assembly_.mask(),
        assembly_.registers(), &assembly_.ranks(),      noted, &names_};
    const auto run = [&]<int extras>(std::integral_constant<int, extras>) {
#if defined(__x86_64__) && defined(__GNUC__)
      if (vectors_) return vw::vector_loop<extras>(p, weight, hash_, marks_, target);
#endif
      return modern_ ? vw::modern_loop<extras>(p, weight, hash_, marks_, target)
                     : vw::other_loop<extras>(p, weight, hash_, marks_, target);
    };
#if defined(__x86_64__) && defined(__GNUC__)
    if (vectors_ && names_.on() && interactions_.empty())
      return names_.waits() ? vw::vector_loop<3>(p, weight, hash_, marks_, target)
                            : vw::vector_loop<4>(p, weight, hash_, marks_, target);
#endif
    if (names_.on() || !interactions_.empty()) return run(std::integral_constant<int, 2>{});
    return assembly_.registers() ? run(std::integral_constant<int, 1>{})
                                 : run(std::integral_constant<int, 0>{});
  }

  void set_space(std::string_view space) {
    letter_ = space.empty() ? ' ' : space.front();
    names_.flush(hash_);
    hash_.set_space(space);
    if (interactions_.empty()) return;
    spaces_.push_back(hash_.prefix());
    bool& letter_is_known = letters_[static_cast<unsigned char>(letter_)];
    if ((seen_spaces_.size() < most_spaces || !letter_is_known) &&
        seen_spaces_.emplace(space).second)
      new_spaces_->emplace_back(space);
    letter_is_known = true;
  }

  // Appends the product of each pair of features that an interaction matches. If it matches both
  // (a, b) and (b, a), only one is appended: the one ordered by namespace letter (bytes from 0x80 on
  // come first), then by position.
  template <class Key, class Real>
  bool interact(const char* line, std::size_t first, std::size_t& count, Complaint& complaint) {
    Storage& s = assembly_.storage();
    const std::uint64_t mask = assembly_.mask();
    names_.flush(hash_);
    using Place = std::pair<signed char, std::size_t>;  // the same order on all machines
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
          if (a_right && matches(left, b.letter) && Place(b.letter, j) < Place(a.letter, i))
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
    const std::size_t left = room_for(static_cast<std::size_t>(assembly_.end() - line));
    s.keys<Key>().reserve(count + left), s.values<Real>().reserve(count + left);
    return true;
  }

  bool single_, narrow_;
  std::vector<std::array<char, 2>> interactions_;
  Assembly assembly_;
  Names names_;
  Marks marks_;
  bool modern_;      // the machine has BMI
  bool vectors_;     // and AVX-512
  PrefixHash hash_;  // hashes names in the current namespace
  char letter_ = ' ';
  // Numbers as names. PrefixHash reads 16 bytes of a name.
  using Digits = std::array<char, 24>;
  std::deque<Digits> numbers_;
  std::vector<Term> terms_;
  std::vector<std::string> spaces_;  // of the current row
  std::unordered_set<std::string> seen_spaces_;
  std::array<bool, 256> letters_{};  // first letters of the namespaces seen
  std::vector<std::string>* new_spaces_ = nullptr;
};

}  // namespace

std::unique_ptr<Parser> make_vw(const Options& options) { return std::make_unique<Vw>(options); }

}  // namespace thresher::io
