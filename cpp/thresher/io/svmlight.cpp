// svmlight text: `label [qid:n] index:value ... [# comment]`, and `label,label,... index:value
// ...`.
//
// Most of a file consists of features like 1234:0.0567, which loop() parses fast. Everything else
// takes the slow path, which also makes the error messages.
#include "thresher/io/svmlight.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "thresher/io/assembly.hpp"
#include "thresher/io/hash.hpp"
#include "thresher/io/number.hpp"
#include "thresher/io/scan.hpp"

namespace thresher::io {

namespace {

// Whether a token may end at p.
inline bool ends(const char* p) { return is_blank(*p) || *p == '#' || at_end(p); }

class Svmlight final : public Parser {
 public:
  explicit Svmlight(const Options& options)
      : multilabel_(options.multilabel),
        single_(options.single),
        base_(options.zero_based ? 0 : 1),
        assembly_(options),
        narrow_(options.bits <= 31) {}

  void parse(std::string_view text, std::shared_ptr<Storage> storage, Block& block) override {
    assembly_.begin(text, std::move(storage), block);
    Storage& s = assembly_.storage();
    if (multilabel_) s.label_starts.push(0);
    const char* p = text.data();
    if (multilabel_ && block.offset == 0 && p < assembly_.end() && is_header(p)) {
      assembly_.next_line();
      p = end_of_line(p, assembly_.end()) + 1;
    }
    if (single_) rows<float>(p, text.size());
    else rows<double>(p, text.size());
  }

 private:
  template <class Real>
  void rows(const char* p, std::size_t size) {
    Storage& s = assembly_.storage();
    s.values<Real>().reserve(size / 4 + 2);  // the shortest feature is " 1:1"
    if (narrow_) {
      s.keys_32.reserve(size / 4 + 2);
      p = rows<std::int32_t, Real>(p);
      if (p >= assembly_.end()) return assembly_.finish<std::int32_t, Real>();
    }
    const auto count = static_cast<std::size_t>(s.starts[s.lines.size()]);
    s.keys_64.reserve(size / 4 + 2);
    if (narrow_) std::copy_n(s.keys_32.data(), count, s.keys_64.data());
    rows<std::int64_t, Real>(p);
    assembly_.finish<std::int64_t, Real>();
  }

  // Reads rows until the end, or until a row with a key that does not fit into Key.
  template <class Key, class Real>
  const char* rows(const char* p) {
    Storage& s = assembly_.storage();
    Key* const keys = s.keys<Key>().data();
    Real* const values = s.values<Real>().data();
    const char* const end = assembly_.end();
    const std::uint64_t mask = assembly_.mask();
    const std::uint32_t base = base_;
    std::uint8_t* const registers = assembly_.registers();
    auto first = static_cast<std::size_t>(s.starts[s.lines.size()]);
    Complaint complaint{};
    bool signs = false;

    while (p < end) {
      const char* const line = p;
      const std::size_t labels = s.label_values.size();
      double label = 0;
      bool blank = false;
      std::size_t count = first;
      const char* at = p;  // passed by reference instead of p, so that p stays in a register
      bool good = parse_labels(at, label, blank, complaint);
      p = at;
      while (good && !blank) {
#if defined(__SSE2__)
        const auto quickly = [&]<bool sketches>(std::bool_constant<sketches>) {
          return signs ? parse_quickly<sketches, true>(p, keys, values, count)
                       : parse_quickly<sketches, false>(p, keys, values, count);
        };
        p = registers ? quickly(std::true_type{}) : quickly(std::false_type{});
        if (*p == '\n') break;
#endif
        if (is_blank(*p)) {
          while (is_blank(*p)) ++p;
          continue;
        }
        if (at_end(p) || *p == '#') break;
        std::uint64_t index;
        double value;
        at = p;
        good = parse_feature<Real>(at, index, value, complaint);
        if (!good) break;
        p = at;
        const std::uint64_t key = index - base;
        signs |= value < 0;
        if (sizeof(Key) == 4 && (key & mask) >> 31) {
          s.label_values.resize(labels);
          return line;
        }
        if (registers) sketch_add(registers, mix(key, 0));
        keys[count] = static_cast<Key>(key & mask);
        values[count] = static_cast<Real>(value);
        ++count;
      }
      if (good && *p != '\n') {
        at = p;
        good = skip_rest(at, complaint);
        p = at;
      }
      if (good && !blank) {
        const std::size_t kept = assembly_.close(keys, values, first, count - first);
        if (kept == Assembly::npos) {
          complaint = {line, "values of a repeated index add up to infinity"}, good = false;
        } else {
          first += kept;
          if (multilabel_) s.label_starts.push(static_cast<std::int64_t>(s.label_values.size()));
          else s.labels.push(label);
        }
      }
      if (good) {
        assembly_.next_line();
        ++p;
      } else {
        s.label_values.resize(labels);
        p = assembly_.bad(line, complaint);
      }
    }
    return p;
  }

#if defined(__SSE2__)
  template <bool sketches, bool signs, class Key, class Real>
  THRESHER_MODERN const char* modern_loop(const char* p, Key* keys, Real* values,
                                          std::size_t& count) const {
    return loop<sketches, signs>(p, keys, values, count);
  }
  template <bool sketches, bool signs, class Key, class Real>
  [[gnu::noinline]] const char* other_loop(const char* p, Key* keys, Real* values,
                                           std::size_t& count) const {
    return loop<sketches, signs>(p, keys, values, count);
  }
  template <bool sketches, bool signs, class Key, class Real>
  const char* parse_quickly(const char* p, Key* keys, Real* values, std::size_t& count) const {
    return modern_ ? modern_loop<sketches, signs>(p, keys, values, count)
                   : other_loop<sketches, signs>(p, keys, values, count);
  }

  // Parses plain features separated by one blank. Returns the position of the first feature that is
  // not plain, or the end of the line. It finds the colons, points and blanks of a whole window at
  // once, so that no feature depends on the previous one.
  template <bool sketches, bool signs, class Key, class Real>
  THRESHER_INLINE const char* loop(const char* p, Key* keys, Real* values,
                                   std::size_t& count) const {
    const auto mask = static_cast<Key>(assembly_.mask());
    const std::uint32_t base = base_;
    std::uint8_t* const registers = assembly_.registers();
    std::size_t n = count, start = 0;
    for (p += *p == ' ';; p += start) {
      const std::uint64_t digits = window(p, [](__m128i bytes) { return are_digits(bytes); });
      std::uint64_t points = window(p, [](__m128i bytes) { return are('.', bytes); });
      // The addition carries a bit from each point to the end of the digits after it; a point there
      // is a second point in the number.
      if (((points << 1) + digits) & points) [[unlikely]]
        return count = n, p;
      std::uint64_t marks = ~(digits | points), minuses = 0;
      if constexpr (signs) {
        minuses = window(p, [](__m128i bytes) { return are(':', bytes); }) << 1 &
                  window(p, [](__m128i bytes) { return are('-', bytes); });
        marks &= ~minuses;
      }
      points |= std::uint64_t{1} << 63;  // guarantees a point, beyond all numbers of the window
      for (start = 0; marks != 0;) {
        const std::size_t colon = place(marks);
        marks &= marks - 1;
        if (marks == 0) break;
        const std::size_t stop = place(marks), point = place(points);
        const std::size_t pointed = point < stop, negative = signs && (minuses >> (colon + 1) & 1);
        const std::size_t behind = (stop - point) & (0 - pointed);  // branch-free
        const std::size_t size = colon - start, figures = stop - colon - 1 - pointed - negative;
        if (p[colon] != ':' || point < colon || size - 1 >= 8) [[unlikely]]
          return count = n, p + start;
        std::uint32_t index;
        double value;
        if (figures - 1 < 7) [[likely]] {
          const __m128i words = _mm_unpacklo_epi64(
              _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + colon - 8)),
              _mm_cvtsi64_si128(static_cast<long long>(without_point(p + stop, behind))));
          const auto [a, b] = two_numbers(words, size, figures);
          index = a, value = static_cast<std::int32_t>(b) / powers_of_ten[behind - pointed];
        } else {
          index = static_cast<std::uint32_t>(digits_before(p + colon, size));
          value = parse_digits(p + stop - behind, figures - behind + pointed, p + stop,
                               behind - pointed);
          if (value < 0) return count = n, p + start;
        }
        if constexpr (signs)
          value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^
                                        std::uint64_t{negative} << 63);
        if (index < base) [[unlikely]]
          return count = n, p + start;
        const std::uint32_t key = index - base;
        keys[n] = static_cast<Key>(key) & mask;
        values[n] = static_cast<Real>(value);
        if (p[stop] != ' ' && !ends(p + stop)) [[unlikely]]
          return count = n, p + start;
        if constexpr (sketches) sketch_add(registers, mix(key, 0));
        ++n;
        if (p[stop] != ' ') [[unlikely]]
          return count = n, p + stop;
        start = stop + 1;
        marks &= marks - 1, points &= points - pointed;
      }
      if (start == 0) return count = n, p;  // the feature is longer than the window
    }
  }
#endif

  // Skips from the end of a row to the newline, over a comment.
  bool skip_rest(const char*& p, Complaint& complaint) const {
    const char* const stop = end_of_line(p, assembly_.end());
    const void* nul = std::memchr(p, '\0', static_cast<std::size_t>(stop - p));
    if (nul) complaint = complain(static_cast<const char*>(nul), "text without NUL bytes");
    p = stop;
    return !nul;
  }

  // Parses everything before the first feature. `blank`: the line is empty or a comment.
  bool parse_labels(const char*& p, double& label, bool& blank, Complaint& complaint) {
    const bool indented = is_blank(*p);
    while (is_blank(*p)) ++p;
    if (at_end(p) || *p == '#') return blank = true;
    if (multilabel_) {
      if (!indented && !parse_label_list(p, complaint)) return false;
    } else if (!parse_label(p, label, complaint)) {
      return false;
    }
    while (is_blank(*p)) ++p;
    if (std::string_view(p, 4) == "qid:") {
      const char* q = p + 4;
      std::uint64_t query;
      if (parse_whole(q, query) != Number::ok || !ends(q)) {
        complaint = complain(p + 4, "a whole number");
        return false;
      }
      p = q;
    }
    return true;
  }

  bool parse_label(const char*& p, double& label, Complaint& complaint) const {
    const char* const first = p;
    const Number status = parse_double(p, label);
    if (status == Number::ok && ends(p)) return true;
    if (status == Number::ok && *p == ',')
      complaint = complain(p, "one label (several: --multilabel)");
    else if (status == Number::too_large) complaint = complain(first, "a label below 1.8e308");
    else if (status == Number::ok && *p != ':') complaint = complain(p, "a blank after the label");
    else complaint = complain(first, "a label");
    return false;
  }

  bool parse_label_list(const char*& p, Complaint& complaint) {
    const char* const first = p;
    for (;; ++p) {
      double label;
      const char* const begin = p;
      const Number status = parse_double(p, label);
      if (status == Number::ok && begin == first && *p == ':') {
        p = first;
        return true;
      }
      if (status != Number::ok) {
        complaint = complain(begin, status == Number::none ? "a label" : "a label below 1.8e308");
        return false;
      }
      assembly_.storage().label_values.push(label);
      if (*p == ',') continue;
      if (ends(p)) return true;
      complaint = complain(p, "a comma or a blank after the label");
      return false;
    }
  }

  template <class Real>
  bool parse_feature(const char*& p, std::uint64_t& index, double& value, Complaint& complaint) {
    const char* const first = p;
    const auto fail = [&](const char* at, std::string_view expected) {
      complaint = complain(at, expected);
      return false;
    };
    const Number status = parse_whole(p, index);
    if (status == Number::none) return fail(first, "index:value");
    if (status == Number::too_large) return fail(first, "an index below 2^64");
    if (index < base_)
      return fail(first, "an index from 1 on (from 0: zero_based=True, --zero-based)");
    if (*p != ':') return fail(p, "':' after the index");
    const char* const begin = ++p;
    switch (parse_double(p, value)) {
      case Number::ok: break;
      case Number::none: return fail(begin, "a finite number");
      case Number::too_large: return fail(begin, "a number below 1.8e308");
    }
    if (!ends(p)) return fail(p, "a blank after the value");
    if (!std::isfinite(static_cast<Real>(value))) return fail(begin, "a number below 3.4e38");
    return true;
  }

  // The header "rows features labels" of extreme classification datasets.
  static bool is_header(const char* p) {
    for (int i = 0; i < 3; ++i) {
      while (is_blank(*p)) ++p;
      if (!is_digit(*p)) return false;
      while (is_digit(*p)) ++p;
    }
    while (is_blank(*p)) ++p;
    return at_end(p);
  }

  bool multilabel_, single_;
  std::uint32_t base_;
  Assembly assembly_;
  bool narrow_;  // keys are 32 bits wide as long as all fit
#if defined(__SSE2__)
  bool modern_ = is_modern();
#endif
};

}  // namespace

std::unique_ptr<Parser> make_svmlight(const Options& options) {
  return std::make_unique<Svmlight>(options);
}

}  // namespace thresher::io
