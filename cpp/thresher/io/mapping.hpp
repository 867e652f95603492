// A memory-mapped file, with prefetching and release of pages.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>

#include "thresher/io/cache.hpp"
#include "thresher/io/retry.hpp"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older kernels return EINVAL
#endif

namespace thresher::io {

class Mapping {
 public:
  explicit Mapping(const std::string& path) : path_(path) {
    const int file =
        retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
    if (file < 0) fail("cannot open");
    struct stat about;
    const bool known = ::fstat(file, &about) == 0;
    const bool regular = known && S_ISREG(about.st_mode);
    if (regular && about.st_size > 0) {
      size_ = static_cast<std::size_t>(about.st_size);
      void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
      if (memory != MAP_FAILED) data_ = static_cast<const std::byte*>(memory);
    }
    const int code = errno;
    ::close(file);
    errno = code;
    if (!known || (size_ > 0 && !data_)) fail("cannot map");
    if (!regular) throw CacheError(path + ": a cache must be a regular file");
  }

  // A copy of the bytes, aligned like a mapped file.
  explicit Mapping(std::span<const std::byte> bytes) : path_("memory"), size_(bytes.size()) {
    owned_ = static_cast<std::byte*>(::operator new(size_ + 1, std::align_val_t(64)));
    if (size_ > 0) std::memcpy(owned_, bytes.data(), size_);
    data_ = owned_;
  }

  ~Mapping() {
    if (owned_) ::operator delete(owned_, std::align_val_t(64));
    else if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }
  const std::byte* data() const { return data_; }

  // Reads from the disk now. Otherwise a disk error, or a file truncated by another process, would
  // kill this process (SIGBUS) when the memory is accessed.
  void read(std::size_t at, std::size_t size) const {
    if (owned_ || size == 0) return;
    const auto [from, length] = pages(at, size);
    while (::madvise(from, length, MADV_POPULATE_READ) != 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      if (errno == EFAULT || errno == EIO || errno == EHWPOISON) {
        errno = EIO;
        fail("cannot read");
      }
      ::madvise(from, length, MADV_WILLNEED);  // kernels before 5.14
      return;
    }
  }

  // Starts reading from the disk without waiting.
  void expect(std::size_t at, std::size_t size) const {
    if (owned_ || size == 0) return;
    const auto [from, length] = pages(at, size);
    ::madvise(from, length, MADV_WILLNEED);
  }

  // Releases the pages. A later access reads them again.
  void release(std::size_t at, std::size_t size) const noexcept {
    if (owned_ || size == 0) return;
    const auto [from, length] = pages(at, size);
    ::madvise(from, length, MADV_DONTNEED);
  }

 private:
  struct Pages {
    void* from;
    std::size_t length;
  };
  // Includes the first and the last page in full; partial pages would otherwise stay in memory.
  Pages pages(std::size_t at, std::size_t size) const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t from = at / page * page;
    return {const_cast<std::byte*>(data_) + from, at + size - from};
  }
  [[noreturn]] void fail(const char* what) const { throw SystemError(errno, path_, what); }

  std::string path_;
  std::size_t size_ = 0;
  const std::byte* data_ = nullptr;
  std::byte* owned_ = nullptr;
};

}  // namespace thresher::io
