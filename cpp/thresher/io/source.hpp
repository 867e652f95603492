// Sources of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace thresher::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads at least one and up to `size` bytes into `into`; returns their number, 0 at the end.
  // Called by one thread at a time, not always the same one.
  virtual std::size_t read(char* into, std::size_t size) = 0;
};

// The bytes [offset, end) of a file.
class FileBytes final : public ByteSource {
 public:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  explicit FileBytes(const std::string& path, std::uint64_t offset = 0, std::uint64_t end = all);
  ~FileBytes() override;
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::size_t read(char* into, std::size_t size) override;

 private:
  int file_;
  std::uint64_t left_;  // number of bytes that may still be read
};

}  // namespace thresher::io
