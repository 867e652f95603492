// Cuts a stream of bytes into blocks of whole lines.
//
// A block begins where the previous one ended and ends at the last newline within the next
// `block_bytes` bytes. If they contain no newline, the window grows by `block_bytes` until there is
// one. So the end of a block depends only on its beginning and on the bytes, and reading can resume
// at any block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/io/source.hpp"

namespace thresher::io {

// The bytes of a block, with padding before and after them. Reused for the next block.
class Chunk {
 public:
  std::string_view text() const { return {begin(), size}; }
  char* begin() const;
  void reserve(std::size_t capacity);  // keeps the contents

  std::size_t size = 0;
  std::uint64_t offset = 0;   // of the first byte in the file
  std::uint64_t bytes = 0;    // size in the file: more than `size` if a line was skipped
  std::uint64_t skipped = 0;  // digest of the bytes that were skipped
  bool too_long = false;      // one line beyond the limit, of which only the beginning is stored

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
};

class Cutter {
 public:
  Cutter(ByteSource& source, std::uint64_t offset, std::size_t block_bytes, std::size_t max_line);

  // Reads the next block; false at the end.
  bool next(Chunk& chunk);
  std::size_t max_line() const { return max_line_; }

 private:
  std::size_t fill(char* into, std::size_t size);
  void skip_line(Chunk& chunk);

  ByteSource& source_;
  std::uint64_t offset_;
  std::size_t block_bytes_, max_line_;
  std::string carried_;  // bytes that were read and belong to the next block
  bool ended_ = false;
};

}  // namespace thresher::io
