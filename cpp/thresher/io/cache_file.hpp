// The bytes of a cache file, which are copied when they are read.
//
// The file is not mapped: another process could change mapped bytes after they were checked, or
// shorten the file, which kills a process that uses the mapping (SIGBUS).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "thresher/io/cache.hpp"
#include "thresher/io/retry.hpp"

namespace thresher::io {

class CacheFile {
 public:
  explicit CacheFile(const std::string& path) : path_(path) {
    file_ = retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
    if (file_ < 0) throw SystemError(errno, path_, "cannot open");
    struct stat about;
    const bool known = ::fstat(file_, &about) == 0;
    const int code = errno;
    if (known && S_ISREG(about.st_mode)) {
      size_ = static_cast<std::size_t>(about.st_size);
      return;
    }
    ::close(file_);
    if (!known) throw SystemError(code, path_, "cannot read");
    throw CacheError(path + ": a cache must be a regular file");
  }

  // A file in memory.
  explicit CacheFile(std::span<const std::byte> bytes)
      : path_("memory"), size_(bytes.size()), memory_(bytes.begin(), bytes.end()) {}

  ~CacheFile() {
    if (file_ >= 0) ::close(file_);
  }
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }  // when the file was opened

  // Copies the bytes [at, at + size), which are within the size, to `into`. Threads may share a
  // file. Throws CacheError if the file is shorter now.
  void read(std::size_t at, std::size_t size, void* into) const {
    auto* to = static_cast<std::byte*>(into);
    if (file_ < 0) {
      if (size > 0) std::memcpy(to, memory_.data() + at, size);
      return;
    }
    while (size > 0) {
      const ssize_t count = ::pread(file_, to, size, static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw SystemError(errno, path_, "cannot read");
      if (count == 0)
        throw CacheError(path_ + ": the cache has changed while it is in use: it had " +
                         std::to_string(size_) + " bytes, and has fewer now; create it again");
      const auto got = static_cast<std::size_t>(count);
      at += got, to += got, size -= got;
    }
  }

  // Starts reading from the disk without waiting.
  void expect([[maybe_unused]] std::size_t at, [[maybe_unused]] std::size_t size) const {
#if defined(POSIX_FADV_WILLNEED)
    if (file_ >= 0)
      ::posix_fadvise(file_, static_cast<off_t>(at), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
#endif
  }

 private:
  std::string path_;
  int file_ = -1;
  std::size_t size_ = 0;
  std::vector<std::byte> memory_;
};

}  // namespace thresher::io
