// What holds for every block, whatever the bytes were.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "../thresher/io/bytes.hpp"
#include "../thresher/io/parser.hpp"

namespace fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

inline void check(const thresher::io::Block& block, std::size_t lines) {
  const thresher::Batch& batch = block.batch;
  require(batch.distinct, "rows are distinct");
  require(block.line_count == lines, "all lines are counted");
  require(static_cast<std::uint64_t>(batch.rows) + block.bad.size() <= lines, "a row has a line");
  const auto* const starts = std::get<const std::int64_t*>(batch.starts);
  require(starts[0] == 0, "rows start at 0");
  const auto key = [&](std::int64_t k) {
    if (const auto* narrow = std::get_if<const std::int32_t*>(&batch.keys))
      return static_cast<std::int64_t>((*narrow)[k]);
    return std::get<const std::int64_t*>(batch.keys)[k];
  };
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    require(starts[row] <= starts[row + 1], "starts do not decrease");
    std::set<std::int64_t> keys;
    for (std::int64_t k = starts[row]; k < starts[row + 1]; ++k) {
      require(keys.insert(key(k)).second, "keys of a row are distinct");
      if (batch.columns) require(key(k) >= 0 && key(k) < batch.columns, "keys are below columns");
      std::visit([&](auto values) { require(std::isfinite(values[k]), "values are finite"); },
                 batch.values);
    }
    if (batch.weights) require(batch.weights[row] >= 0, "weights are not negative");
    if (block.tag_starts) require(block.tag_starts[row] <= block.tag_starts[row + 1], "tags");
    if (block.label_starts)
      require(block.label_starts[row] <= block.label_starts[row + 1], "labels");
  }
  for (const thresher::io::BadLine& bad : block.bad) {
    require(bad.line < lines, "a bad line is one of the block");
    require(bad.column >= 1 && !bad.what.empty(), "a complaint has a place and words");
  }
}

// Parses the text in memory of just its size and padding.
inline void run(thresher::io::Parser& parser, const std::uint8_t* data, std::size_t size) {
  using thresher::io::padding;
  std::vector<char> buffer(size + 2 * padding);
  if (size) std::memcpy(buffer.data() + padding, data, size);
  char* const text = buffer.data() + padding;
  text[size] = '\n';
  std::size_t lines = 0;
  for (std::size_t i = 0; i < size; ++i) lines += text[i] == '\n';
  lines += size > 0 && text[size - 1] != '\n';
  const auto pool = std::make_shared<thresher::io::Pool>(1);
  for (int again = 0; again < 2; ++again) {  // the second time with used memory
    thresher::io::Block block;
    parser.parse({text, size}, pool->take(), block);
    check(block, lines);
  }
}

// Options from the first two bytes, which both formats share.
inline thresher::io::Options options(std::uint8_t first, std::uint8_t second) {
  thresher::io::Options options;
  options.single = first & 1, options.zero_based = first & 2, options.multilabel = first & 4;
  options.keep_going = !(first & 8), options.names = first & 16, options.sketch = first & 32;
  constexpr int bits[] = {0, 0, 1, 4, 18, 31, 32, 62};
  options.bits = bits[second & 7];
  return options;
}

}  // namespace fuzz
