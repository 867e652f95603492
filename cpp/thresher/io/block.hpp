// The unit that a reader returns: some rows, their position in the file, and lines that failed to
// parse.
//
// A block owns its rows through `owner`: vectors that a parser filled, or bytes of a cache. Only the
// bytes decide where a block ends, so rows and digests do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/io/first_names.hpp"

namespace thresher::io {

// A line that failed to parse.
struct BadLine {
  std::uint64_t line;    // from 0, within the block
  std::uint64_t column;  // from 1, in bytes
  std::string what;      // what was expected, and what was found
  std::string text;      // the line, or the beginning of a long line
};

// The name of a feature in the file: "name" or "namespace^name".
struct Name {
  std::uint64_t key;
  std::string name;
};

struct Block {
  Batch batch;  // keys are distinct and below `columns` (0: no bound below 2^63)

  // Multilabel rows: the labels of row r are [label_starts[r], label_starts[r + 1]) of
  // label_values, and batch.labels is null. Otherwise these are null, and batch.labels is NaN for
  // rows without a label.
  const std::int64_t* label_starts = nullptr;
  const double* label_values = nullptr;

  // Tags of rows ('tag of VW): the tag of row r is [tag_starts[r], tag_starts[r + 1]) of tags. Null
  // if no row has a tag.
  const std::uint32_t* tag_starts = nullptr;
  const char* tags = nullptr;

  // The line of each row, from 0, within the block. Null: row r is line r.
  const std::uint32_t* lines = nullptr;

  std::uint64_t offset = 0;      // of the block's first byte in its (decompressed) file
  std::uint64_t bytes = 0;       // size of the block
  std::uint64_t first_line = 1;  // number of the block's first line in its file
  std::uint64_t line_count = 0;
  std::uint64_t digest = 0;  // of the block's bytes; of a cache: of the text it was made from
  std::uint64_t sum = 0;     // of a cache: checksum of the bytes that were read

  std::vector<BadLine> bad;
  std::vector<Name> names;          // if requested: each name at least once per file
  NameList first_names;             // if requested: each name at least once per file
  std::vector<std::string> spaces;  // with interactions: each namespace at least once per file
  // If requested: of the keys before folding, of this block and of blocks before it (sketch.hpp).
  // Together, the sketches of all blocks so far hold the keys of these blocks.
  std::vector<std::uint8_t> sketch;

  std::shared_ptr<const void> owner;  // owns the memory behind the pointers
};

}  // namespace thresher::io
