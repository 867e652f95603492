// What a reader hands over at a time: some rows, where they came from, and the lines that were none.
//
// A block owns its rows through `owner`: vectors that a parser filled, or a mapped file. Blocks are cut by
// bytes alone, so neither their rows nor their digests depend on how many threads parsed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"

namespace thresher::io {

// A line that is no example.
struct BadLine {
  std::uint64_t line;    // from 0, of the block
  std::uint64_t column;  // from 1, in bytes
  std::string what;      // what was expected, and what stands there
  std::string text;      // the line, or the beginning of a long one
};

// A feature as the file calls it: "name", or "namespace^name".
struct Name {
  std::uint64_t key;
  std::string name;
};

struct Block {
  Batch batch;  // `distinct`, and `columns` a bound of its keys (0: none below 2^63)

  // Rows with any number of labels: those of row r are [label_starts[r], label_starts[r + 1]) of
  // label_values, and batch.labels is none. Elsewhere none, and batch.labels is NaN where a row has no label.
  const std::int64_t* label_starts = nullptr;
  const double* label_values = nullptr;

  // Text that names a row ('tag of VW): that of row r is [tag_starts[r], tag_starts[r + 1]) of tags.
  // None where no row has one.
  const std::uint32_t* tag_starts = nullptr;
  const char* tags = nullptr;

  const std::uint32_t* lines =
      nullptr;  // the line of each row, from 0, of the block; none: row by row

  std::uint64_t offset = 0;      // of the block's first byte in its (unpacked) file
  std::uint64_t bytes = 0;       // of the block
  std::uint64_t first_line = 1;  // of the block, in its file
  std::uint64_t line_count = 0;
  std::uint64_t digest = 0;  // of the block's bytes

  std::vector<BadLine> bad;
  std::vector<Name> names;           // where they were asked for: each at least once in a file
  std::vector<std::uint8_t> sketch;  // of the keys before folding (sketch.hpp), where asked for

  std::shared_ptr<const void> owner;  // of what the pointers point to
};

}  // namespace thresher::io
