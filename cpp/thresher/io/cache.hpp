// Thresher's binary cache: stores the blocks of a reader, so that later passes need no parsing.
//
// Everything is stored except lines that failed to parse. Per block, keys take 4 bytes if all fit;
// values take 0 bytes if all are 1, 2 bytes if all are short decimals (0.37), and 4 bytes if a float
// represents each exactly. The layout of the file is in cache_format.hpp.
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

// The file is not a cache, is truncated or damaged, or has another version.
struct CacheError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A system call failed; what() names the operation.
struct SystemError : std::runtime_error {
  SystemError(int code_, std::string path_, const std::string& what)
      : std::runtime_error(what), code(code_), path(std::move(path_)) {}
  int code;  // errno
  std::string path;
};

// Writes a cache to an open file, which the caller syncs and closes.
class CacheWriter {
 public:
  CacheWriter(int file, std::string path, std::string about);  // the path is for messages
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  // The rows must be CSR rows without repeated keys. The block is copied.
  void add(const Block& block);
  // Writes the index. `sketch` is the sketch of all blocks.
  void finish(std::span<const std::uint8_t> sketch = {});
  void abandon() noexcept;

 private:
  struct Open;
  Open& open();

  std::mutex mutex_;            // threads may share a writer
  std::unique_ptr<Open> open_;  // null: finished, abandoned, or after an error
};

enum class Real { float32, float64 };

// Reads blocks into memory of its own and checks them there, so that a file that changes while it is
// in use causes an error. While the caller uses one block, a thread reads and checks the next.
// Threads may share a reader.
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
  std::int64_t width() const;  // all keys are below it; 0: some key is 2^63 - 1 or larger
  bool named() const;          // whether blocks have names
  std::uint64_t file_bytes() const;
  std::span<const std::uint8_t> sketch() const;
  std::uint64_t rows_of(std::size_t block) const;

  // Arrays point into the bytes read where types agree. `names`: whether to read feature names.
  Block block(std::size_t number, Real real, bool names = true);
  // Starts to read a block in the background. Not needed when blocks are read in file order.
  void prefetch(std::size_t number, Real real, bool names = true);

 private:
  struct Open;
  explicit CacheReader(std::unique_ptr<Open> open);
  std::unique_ptr<Open> open_;
};

}  // namespace thresher::io
