// Thresher's own binary cache: blocks as a reader made them, to be read again without parsing.
//
// Nothing is lost but the lines that were none: keys take 4 bytes where all of a block's fit, values none where
// all are 1 and 4 bytes where a float holds each exactly. See cache_format.hpp for the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "thresher/io/block.hpp"

namespace thresher::io {

// The file is no cache, or cut, or damaged, or of another version.
struct CacheError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The system refused: what() says what was tried.
struct SystemError : std::runtime_error {
  SystemError(int code_, std::string path_, const std::string& what)
      : std::runtime_error(what), code(code_), path(std::move(path_)) {}
  int code;  // errno
  std::string path;
};

// Writes beside the final place, and moves there when it is finished. A writer that is not finished, for
// whatever reason, leaves nothing, and whatever stood at the final place stays.
class CacheWriter {
 public:
  CacheWriter(std::string path, std::string about);
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  // Rows must be distinct CSR rows. The block is copied.
  void add(const Block& block);
  // What is written is on the disk, and at its place, when this returns. `sketch`: of all blocks.
  void finish(std::span<const std::uint8_t> sketch = {});
  void abandon() noexcept;

 private:
  struct Open;
  Open& open();

  std::mutex mutex_;            // threads may share a writer
  std::unique_ptr<Open> open_;  // none: finished or abandoned
};

enum class Real { float32, float64 };

// Reads from a mapped file. While one block is learned from, a thread reads and checks the next; pages of blocks
// that nobody holds any more are given back. Threads may share a reader.
class CacheReader {
 public:
  explicit CacheReader(const std::string& path);
  static CacheReader from_memory(std::span<const std::byte> bytes);
  ~CacheReader();
  CacheReader(CacheReader&&) noexcept;
  CacheReader& operator=(CacheReader&&) = delete;

  const std::string& about() const;
  std::size_t blocks() const;
  std::uint64_t rows() const;
  std::uint64_t nonzeros() const;
  std::int64_t width() const;  // all keys are below it; 0: there are keys of 2^63 - 1 and above
  bool named() const;          // whether blocks have names
  std::uint64_t file_bytes() const;
  std::span<const std::uint8_t> sketch() const;
  std::uint64_t rows_of(std::size_t block) const;

  // Arrays point into the file where types agree. `names`: whether the names of features are wanted.
  Block block(std::size_t number, Real real, bool names = true);
  // Starts to read a block that will be asked for. Not needed for blocks in the order of the file.
  void prefetch(std::size_t number, Real real, bool names = true);

 private:
  struct Open;
  explicit CacheReader(std::unique_ptr<Open> open);
  std::unique_ptr<Open> open_;
};

}  // namespace thresher::io
