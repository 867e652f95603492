// An array whose bytes are zero at first.
//
// Large arrays come directly from the system: pages use no memory until they are written, and have
// 2 MiB if the system allows it (1.4x at 2^24 features, where page table walks take most of a
// step).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace thresher {

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ZeroedArray(std::uint64_t size) : size_(size) {
    if (size > (PTRDIFF_MAX - huge_page) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = size * sizeof(T);
#if defined(__linux__)
    if (bytes >= huge_page) {
      mapped_ = bytes + huge_page;  // room to align to a huge page
      block_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (block_ == MAP_FAILED) throw std::bad_alloc();
      const auto address = reinterpret_cast<std::uintptr_t>(block_);
      data_ = reinterpret_cast<T*>((address + huge_page - 1) / huge_page * huge_page);
      madvise(static_cast<void*>(data_), bytes, MADV_HUGEPAGE);  // a hint: it may fail
      return;
    }
#endif
    block_ = std::calloc(bytes ? bytes : 1, 1);
    if (!block_) throw std::bad_alloc();
    data_ = static_cast<T*>(block_);
  }

  ~ZeroedArray() {
#if defined(__linux__)
    if (mapped_) {
      munmap(block_, mapped_);
      return;
    }
#endif
    std::free(block_);
  }

  ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_) {
    std::memcpy(static_cast<void*>(data_), other.data_, size_ * sizeof(T));
  }
  ZeroedArray& operator=(const ZeroedArray&) = delete;
  ZeroedArray(ZeroedArray&& other) noexcept { swap(other); }
  ZeroedArray& operator=(ZeroedArray&& other) noexcept {
    swap(other);
    return *this;
  }

  // Adds zeros at the end.
  void grow(std::uint64_t size) {
    ZeroedArray larger(size);
    if (size_ > 0) std::memcpy(static_cast<void*>(larger.data_), data_, size_ * sizeof(T));
    swap(larger);
  }

  std::uint64_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::uint64_t i) { return data_[i]; }
  const T& operator[](std::uint64_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t huge_page = std::size_t{1} << 21;

  void swap(ZeroedArray& other) noexcept {
    std::swap(size_, other.size_), std::swap(mapped_, other.mapped_);
    std::swap(block_, other.block_), std::swap(data_, other.data_);
  }

  std::uint64_t size_ = 0;
  std::size_t mapped_ = 0;  // bytes mapped; 0 if the memory is from calloc
  void* block_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace thresher
