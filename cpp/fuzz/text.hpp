// Parses any bytes as text: each line is an example, skipped or bad, and blocks satisfy their
// invariants. Neither the cuts between blocks nor the level of the parser change rows or messages.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "must.hpp"
#include "thresher/io/reader.hpp"
#include "thresher/io/sketch.hpp"

namespace fuzz {

using namespace thresher::io;

class TextBytes final : public ByteSource {
 public:
  explicit TextBytes(std::string_view text) : text_(text) {}

  std::size_t read(char* into, std::size_t size) override {
    // Pieces of odd sizes, as from streams that decompress.
    const std::size_t count = std::min({size, text_.size(), 1 + ++turn_ * 7 % 61});
    if (count > 0) std::memcpy(into, text_.data(), count);
    text_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view text_;
  std::size_t turn_ = 0;
};

// The results that must not depend on the cuts between blocks.
struct Found {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string>> bad;  // line, column, text
  std::vector<std::uint64_t> lines, keys;
  std::vector<std::size_t> sizes;      // of the rows
  std::vector<std::uint64_t> numbers;  // values, labels and weights, as bits
  std::string tags;
  std::vector<std::pair<std::uint64_t, std::string>> names;
  std::uint64_t line_count = 0;

  bool operator==(const Found&) const = default;

  void clear() {  // keeps the memory: the next input needs it again
    bad.clear(), lines.clear(), keys.clear(), sizes.clear(), numbers.clear(), tags.clear();
    names.clear(), line_count = 0;
  }
};

inline std::uint64_t bits_of(double number) { return std::bit_cast<std::uint64_t>(number); }

template <class Key, class Real>
void add_rows(const Block& block, const std::int64_t* starts, const Key* keys, const Real* values,
              const Options& options, Found& found) {
  const auto& batch = block.batch;
  must(starts[0] == 0 && batch.distinct);
  static std::vector<std::uint64_t> row_keys;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    must(starts[row] <= starts[row + 1]);
    const std::uint64_t line = block.lines ? block.lines[row] : static_cast<std::uint64_t>(row);
    must(line < block.line_count);
    found.lines.push_back(block.first_line + line);
    found.sizes.push_back(static_cast<std::size_t>(starts[row + 1] - starts[row]));
    row_keys.clear();
    for (auto k = starts[row]; k < starts[row + 1]; ++k) {
      const auto key = static_cast<std::uint64_t>(std::int64_t{keys[k]});
      must(batch.columns == 0 || key < static_cast<std::uint64_t>(batch.columns));
      must(options.bits == 0 || key >> options.bits == 0);
      must(std::isfinite(values[k]));
      row_keys.push_back(key);
      found.numbers.push_back(bits_of(double{values[k]}));
    }
    found.keys.insert(found.keys.end(), row_keys.begin(), row_keys.end());
    std::sort(row_keys.begin(), row_keys.end());
    must(std::adjacent_find(row_keys.begin(), row_keys.end()) == row_keys.end());

    must((batch.labels != nullptr) != (block.label_starts != nullptr));
    if (batch.labels) {
      must(!std::isinf(batch.labels[row]));
      found.numbers.push_back(std::isnan(batch.labels[row]) ? 1 : bits_of(batch.labels[row]));
    } else {
      must(block.label_starts[0] == 0 && block.label_starts[row] <= block.label_starts[row + 1]);
      for (auto i = block.label_starts[row]; i < block.label_starts[row + 1]; ++i) {
        must(std::isfinite(block.label_values[i]));
        found.numbers.push_back(bits_of(block.label_values[i]));
      }
    }
    const double weight = batch.weights ? batch.weights[row] : 1;
    must(std::isfinite(weight) && weight >= 0);
    found.numbers.push_back(bits_of(weight));
    if (block.tag_starts) {
      must(block.tag_starts[0] == 0 && block.tag_starts[row] <= block.tag_starts[row + 1]);
      found.tags.append(block.tags + block.tag_starts[row], block.tags + block.tag_starts[row + 1]);
    }
    found.tags += '\n';
  }
}

inline void add(const Block& block, const Options& options, Found& found) {
  must(block.first_line == found.line_count + 1);
  found.line_count += block.line_count;
  must(static_cast<std::uint64_t>(block.batch.rows) + block.bad.size() <= block.line_count);
  for (const BadLine& bad : block.bad) {
    must(bad.line < block.line_count && !bad.what.empty() && bad.column >= 1);
    found.bad.emplace_back(block.first_line + bad.line, bad.column, bad.text);
  }
  std::visit(
      [&](auto starts, auto keys, auto values) {
        if constexpr (std::is_same_v<decltype(starts), const std::int64_t*> &&
                      !std::is_same_v<decltype(keys), std::monostate>)
          add_rows(block, starts, keys, values, options, found);
        else must(false);
      },
      block.batch.starts, block.batch.keys, block.batch.values);
  for (const Name& name : block.names) {
    must(options.bits == 0 || name.key >> options.bits == 0);
    found.names.emplace_back(name.key, name.name);
  }
  must(block.sketch.size() == (options.sketch ? sketch_size : 0));
}

inline const Found& read(std::string_view text, const Reader::MakeParser& make_parser,
                         const Options& options, const Reading& reading, Found& found) {
  Reader reader(std::make_unique<TextBytes>(text), make_parser, reading, options.keep_going);
  found.clear();
  std::uint64_t bytes = 0;
  bool whole = true;
  while (const auto block = reader.next()) {
    must(block->offset == bytes);
    bytes += block->bytes;
    whole = options.keep_going || block->bad.empty();
    add(*block, options, found);
  }
  must(whole ? bytes == text.size() : bytes <= text.size());
  // Parsers remember a bounded number of names, so a name may be reported more than once.
  std::sort(found.names.begin(), found.names.end());
  found.names.erase(std::unique(found.names.begin(), found.names.end()), found.names.end());
  return found;
}

// Reads the text in one block and in another way, which `turn` chooses: all ways for every input
// would take several times as long. `make(options)` makes a parser.
template <class Make>
void read_two_ways(std::string_view text, const Make& make, Options options, std::size_t turn) {
  const Reader::MakeParser make_parser = [&] { return make(options); };
  static Found whole, other;
  const auto read_other = [&](const Reading& reading) -> const Found& {
    return read(text, make_parser, options, reading, other);
  };
  const Reading one_block{.block_bytes = text.size() + 1};
  read(text, make_parser, options, one_block, whole);
  switch (turn % 4) {
    case 0: {  // other levels of the parser; "none" looks at one feature at a time
      static constexpr std::array levels{"none", "portable", "avx2"};
      options.level = levels[turn / 4 % levels.size()];
      return must(whole == read_other(one_block));
    }
    case 1:  // in many blocks
      return must(whole == read_other({.block_bytes = 1 + text.size() / 5}));
    case 2: {  // Lines beyond a limit are bad; all other lines give the same rows.
      options.names = options.sketch = false;  // slow in many small blocks
      const Found& some = read_other({.block_bytes = 16, .max_line = 40});
      must(some.line_count == whole.line_count && some.lines.size() <= whole.lines.size());
      return must(std::includes(whole.lines.begin(), whole.lines.end(), some.lines.begin(),
                                some.lines.end()));
    }
    default: {  // Without keep_going, the first bad line and all rows before it are the same.
      options.keep_going = false;
      const Found& begun = read_other(one_block);
      must(begun.bad.size() == std::min<std::size_t>(whole.bad.size(), 1));
      if (!begun.bad.empty()) must(std::get<1>(begun.bad[0]) == std::get<1>(whole.bad[0]));
      must(begun.lines.size() <= whole.lines.size() &&
           std::equal(begun.lines.begin(), begun.lines.end(), whole.lines.begin()));
    }
  }
}

}  // namespace fuzz
