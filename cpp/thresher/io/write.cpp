#include "thresher/io/write.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "thresher/core/error.hpp"
#include "thresher/io/hash.hpp"

namespace thresher::io {

namespace {

constexpr std::size_t longest_number = 32;  // of a double or a key, with its separators

// Powers of ten that a double represents exactly. An integer below 2^53 divided by one of them is
// the double nearest to that decimal, the same value that a reader parses from the text.
constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                             1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};

// Writes digits / 10^decimals in plain notation. Writes up to 40 bytes, more than the text, because
// copies have fixed sizes.
char* decimal(char* to, std::uint64_t digits, int decimals) {
  char text[32];
  const auto count = static_cast<int>(std::to_chars(text, text + 20, digits).ptr - text);
  const int whole = count - decimals;
  if (whole > 0) {
    std::memcpy(to, text, 16);
    if (decimals == 0) return to + whole;
    to[whole] = '.';
    std::memcpy(to + whole + 1, text + whole, 16);
    return to + count + 1;
  }
  std::memcpy(to, "0.000000", 8);
  std::memcpy(to + 2 - whole, text, 16);
  return to + 2 - whole + count;
}

// Writes the shortest decimal that reads back to the same value; null if it needs more digits than
// are tried here. Branches that depend on single digits are avoided: they would be mispredicted.
template <class Real>
char* short_number(char* to, Real value) {
  constexpr bool narrow = sizeof(Real) == 4;
  constexpr int kept = narrow ? 6 : 15;  // a Real preserves numbers of this many digits
  const double size = std::fabs(static_cast<double>(value));
  if (!(size >= 1e-4 && size < 1e6)) return nullptr;
  int whole = -3;  // digits before the point, minus the leading zeros after it
  for (const double step : {1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5}) whole += size >= step;
  const auto nearest = [&](int digits) {
    return static_cast<std::int64_t>(size * powers[digits - whole] + 0.5);
  };
  const auto reads_back = [&](int digits, std::int64_t number) {
    return static_cast<Real>(static_cast<double>(number) / powers[digits - whole]) ==
           static_cast<Real>(size);
  };
  int digits = kept;
  std::int64_t found = nearest(kept);
  if (reads_back(kept, found)) {
    // A shorter decimal equals this one without its trailing zeros.
    while (digits - whole >= 4 && found % 10000 == 0) found /= 10000, digits -= 4;
    while (digits > whole && found % 10 == 0) found /= 10, --digits;
  } else if constexpr (narrow) {
    const std::int64_t seven = nearest(7), eight = nearest(8), nine = nearest(9);
    const bool by_seven = reads_back(7, seven), by_eight = reads_back(8, eight);
    if (!reads_back(9, nine)) return nullptr;
    found = by_seven ? seven : by_eight ? eight : nine;
    digits = by_seven ? 7 : by_eight ? 8 : 9;
  } else {
    return nullptr;
  }
  *to = '-';
  to += std::signbit(value);
  return decimal(to, static_cast<std::uint64_t>(found), digits - whole);
}

// Readers parse the nearest double and round it to the value type. In rare cases that is not the
// nearest float; then all digits of the double are written.
template <class Real>
char* number(char* to, Real value) {
  if (value == 0 || value == 1) {
    if (std::signbit(value)) *to++ = '-';
    *to++ = value == 0 ? '0' : '1';
    return to;
  }
  if (char* end = short_number(to, value)) return end;
  char* end = std::to_chars(to, to + longest_number, value).ptr;
  if constexpr (sizeof(Real) == 4) {
    double read = 0;
    std::from_chars(to, end, read);
    if (static_cast<float>(read) != value)
      end = std::to_chars(to, to + longest_number, static_cast<double>(value)).ptr;
  }
  return end;
}

char* put(char* to, std::string_view text) {
  return std::copy(text.begin(), text.end(), to);  // memcpy may not read an empty view
}

std::string_view tag_of(const Block& block, std::int64_t row) {
  if (!block.tag_starts) return {};
  return {block.tags + block.tag_starts[row], block.tag_starts[row + 1] - block.tag_starts[row]};
}

template <class Real>
void must_be_finite(std::int64_t row, const char* what, Real value) {
  if (!std::isfinite(value))
    throw DataError(row, std::string(what) + " is " + shown(static_cast<double>(value)) +
                             "; text formats only take finite numbers");
}

// Calls f(row, keys, values, count, to) with room for the row's features and head(row, count) more bytes;
// f returns the end of what it wrote.
template <class Head, class F>
Text each_row(const Block& block, Head&& head, F&& f) {
  Text text;
  const auto rows = [&](auto starts, auto keys, auto values) {
    // An estimate; memory that is never written costs nothing.
    text.room(24 * static_cast<std::size_t>(starts[block.batch.rows] + 2 * block.batch.rows));
    for (std::int64_t row = 0; row < block.batch.rows; ++row) {
      const auto count = static_cast<std::size_t>(starts[row + 1] - starts[row]);
      char* to = text.room(2 * longest_number * count + head(row, count));
      text.end_at(f(row, keys + starts[row], values + starts[row], count, to));
    }
  };
  std::visit(
      [&](auto starts, auto keys, auto values) {
        if constexpr (std::is_same_v<decltype(starts), std::monostate> ||
                      std::is_same_v<decltype(keys), std::monostate>)
          throw std::invalid_argument("only CSR rows can be written as text");
        else rows(starts, keys, values);
      },
      block.batch.starts, block.batch.keys, block.batch.values);
  return text;
}

template <class Key>
std::uint64_t unsigned_key(Key key) {
  return static_cast<std::uint64_t>(std::int64_t{key});
}

char* svmlight_label(char* to, const Block& block, std::int64_t row, std::size_t count) {
  if (!block.label_starts) {
    const double label = block.batch.labels ? block.batch.labels[row] : NAN;
    if (std::isnan(label)) throw DataError(row, "there is no label; svmlight needs one");
    must_be_finite(row, "the label", label);
    return number(to, label);
  }
  const std::int64_t from = block.label_starts[row], end = block.label_starts[row + 1];
  if (from == end && count == 0)
    throw DataError(row, "no labels and no features: the svmlight line would be empty");
  for (std::int64_t i = from; i < end; ++i) {
    must_be_finite(row, "a label", block.label_values[i]);
    if (i > from) *to++ = ',';
    to = number(to, block.label_values[i]);
  }
  return to;
}

char* vw_head(char* to, const Block& block, std::int64_t row) {
  const double label = block.batch.labels ? block.batch.labels[row] : NAN;
  const double weight = block.batch.weights ? block.batch.weights[row] : 1;
  const std::string_view tag = tag_of(block, row);
  if (std::any_of(tag.begin(), tag.end(), [](char c) {
        return c == ' ' || c == '|' || (c >= '\t' && c <= '\r') || c == '\0';
      }))
    throw DataError(row, "the tag has a space or a bar; VW text does not allow it");
  if (!std::isnan(label)) {
    must_be_finite(row, "the label", label);
    to = number(to, label);
    *to++ = ' ';
  }
  if (weight != 1) {
    if (std::isnan(label))
      throw DataError(row, "a weight without a label: VW text does not allow it");
    must_be_finite(row, "the weight", weight);
    to = number(to, weight);
    *to++ = ' ';
  }
  if (!tag.empty()) {
    *to++ = '\'';
    to = put(to, tag);
  }
  *to++ = '|';
  return to;
}

}  // namespace

char* Text::room(std::size_t bytes) {
  if (capacity_ - size_ < bytes) {
    const std::size_t larger = std::max(capacity_ + capacity_ / 2, size_ + bytes);
    auto moved = std::make_unique_for_overwrite<char[]>(larger);
    if (size_ > 0) std::memcpy(moved.get(), bytes_.get(), size_);
    bytes_ = std::move(moved), capacity_ = larger;
  }
  return bytes_.get() + size_;
}

Text svmlight_text(const Block& block, bool zero_based) {
  const auto head = [&](std::int64_t row, std::size_t) {
    const auto labels =
        block.label_starts
            ? static_cast<std::size_t>(block.label_starts[row + 1] - block.label_starts[row])
            : std::size_t{1};
    return 2 * longest_number * (labels + 1);
  };
  const std::uint64_t shift = zero_based ? 0 : 1;
  return each_row(
      block, head, [&](std::int64_t row, auto keys, auto values, std::size_t count, char* to) {
        if (block.batch.weights && block.batch.weights[row] != 1)
          throw DataError(row, "the weight is " + shown(block.batch.weights[row]) +
                                   "; svmlight has no weights: write VW text");
        to = svmlight_label(to, block, row, count);
        for (std::size_t k = 0; k < count; ++k) {
          must_be_finite(row, "a value", values[k]);
          const std::uint64_t index = unsigned_key(keys[k]) + shift;
          if (index < shift)
            throw DataError(row, "a key of 2^64 - 1 has no 1-based index: write a zero-based file");
          *to++ = ' ';
          to = std::to_chars(to, to + longest_number, index).ptr;
          *to++ = ':';
          to = number(to, values[k]);
        }
        *to++ = '\n';
        return to;
      });
}

Text vw_text(const Block& block) { return vw_text(block, VwNames()); }

Text vw_text(const Block& block, const VwNames& names) {
  if (block.label_starts)
    throw std::invalid_argument("VW text has one label per row, not a list: write svmlight");
  const auto head = [&](std::int64_t row, std::size_t count) {
    return 4 * longest_number + tag_of(block, row).size() + count * (names.longest() + 2);
  };
  return each_row(
      block, head, [&](std::int64_t row, auto keys, auto values, std::size_t count, char* to) {
        to = vw_head(to, block, row);
        std::string_view space;  // the current namespace; the default one first
        for (std::size_t k = 0; k < count; ++k) {
          must_be_finite(row, "a value", values[k]);
          const VwNames::Name* const known = names.find(unsigned_key(keys[k]));
          const std::string_view own = known ? known->space : std::string_view();
          if (own != space) {
            if (k != 0) to = put(to, " |");
            to = put(to, own);
            space = own;
          }
          *to++ = ' ';
          to = known ? put(to, known->name)
                     : std::to_chars(to, to + longest_number, unsigned_key(keys[k])).ptr;
          if (values[k] == 1) continue;
          *to++ = ':';
          to = number(to, values[k]);
        }
        *to++ = '\n';
        return to;
      });
}

namespace {

/// The text whose hash is the key: categories are shown as "column=value", and their keys are
/// hashes of "column^value". Empty if there is none.
std::string hashed_text(const std::string& shown, std::uint64_t key) {
  if (hash64(shown) == key) return shown;
  for (std::size_t at = shown.find('='); at != std::string::npos; at = shown.find('=', at + 1)) {
    std::string text = shown;
    text[at] = '^';
    if (hash64(text) == key) return text;
  }
  return "";
}

}  // namespace

void VwNames::add(const Block& block) {
  for (const auto& [key, shown] : block.names) {
    if (names_.count(key) != 0) continue;
    const std::string text = hashed_text(shown, key);
    if (text.empty()) continue;
    const std::size_t mark = text.find('^');
    const bool spaced = mark != std::string::npos;
    Name made{spaced ? text.substr(0, mark) : "", spaced ? text.substr(mark + 1) : text};
    const auto allowed = [](std::string_view word) {
      return std::none_of(word.begin(), word.end(), [](char c) {
        return c == ' ' || c == '|' || c == ':' || (c >= '\t' && c <= '\r') || c == '\0';
      });
    };
    if (made.name.empty() || (spaced && made.space.empty())) continue;
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool is_key = text.size() == 1 || text.front() != '0';  // if it is a number
    if (!spaced && is_key && std::all_of(text.begin(), text.end(), digit)) continue;
    if (!allowed(made.space) || !allowed(made.name)) continue;
    longest_ = std::max(longest_, text.size() + 2);
    names_.emplace(key, std::move(made));
  }
}

const VwNames::Name* VwNames::find(std::uint64_t key) const {
  if (names_.empty()) return nullptr;
  const auto found = names_.find(key);
  return found == names_.end() ? nullptr : &found->second;
}

}  // namespace thresher::io
