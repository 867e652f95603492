// Cuts a stream of bytes into blocks of whole lines.
//
// A block begins where the one before ended, and is what of the next `block_bytes` bytes lies before the
// last newline; where there is none, of as many times as many bytes as it takes. So where it ends depends on
// where it begins and on the bytes, on nothing else, and reading can resume at any block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/io/source.hpp"

namespace thresher::io {

// The bytes of a block, with room before and behind them; used again for the next one.
class Chunk {
 public:
  std::string_view text() const { return {begin(), size}; }
  char* begin() const;
  void reserve(std::size_t capacity);  // keeps what is there

  std::size_t size = 0;
  std::uint64_t offset = 0;   // of the first byte in the file
  std::uint64_t bytes = 0;    // of the file, more than `size` where a line was skipped
  std::uint64_t skipped = 0;  // digest of the bytes that are not held
  bool too_long = false;      // one line beyond the limit, of which only the beginning is held

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
};

class Cutter {
 public:
  Cutter(ByteSource& source, std::uint64_t offset, std::size_t block_bytes, std::size_t max_line);

  // The next block, or false at the end.
  bool next(Chunk& chunk);
  std::size_t max_line() const { return max_line_; }

 private:
  std::size_t fill(char* into, std::size_t size);
  void skip_line(Chunk& chunk);

  ByteSource& source_;
  std::uint64_t offset_;
  std::size_t block_bytes_, max_line_;
  std::string carried_;  // read, but of the next block
  bool ended_ = false;
};

}  // namespace thresher::io
