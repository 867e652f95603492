#include "thresher/io/source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "thresher/io/retry.hpp"

namespace thresher::io {

FileBytes::FileBytes(const std::string& path, std::uint64_t offset, std::uint64_t end)
    : file_(retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); })),
      left_(end > offset ? end - offset : 0) {
  if (file_ < 0) throw std::system_error(errno, std::generic_category(), path);
#if defined(POSIX_FADV_SEQUENTIAL)
  ::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
  if (offset != 0 && ::lseek(file_, static_cast<off_t>(offset), SEEK_SET) < 0) {
    const int error = errno;
    ::close(file_);
    throw std::system_error(error, std::generic_category(), path);
  }
}

FileBytes::~FileBytes() { ::close(file_); }

std::size_t FileBytes::read(char* into, std::size_t size) {
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
  const ssize_t count = retried([&] { return ::read(file_, into, size); });
  if (count < 0) throw std::system_error(errno, std::generic_category(), "read");
  left_ -= static_cast<std::uint64_t>(count);
  return static_cast<std::size_t>(count);
}

}  // namespace thresher::io
