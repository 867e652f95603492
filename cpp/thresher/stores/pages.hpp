// An array whose bytes are zero at first.
//
// Large arrays come directly from the system: pages use no memory until they are written, and have
// 2 MiB if the system allows it (1.4x at 2^24 features, where page table walks take most of a
// step). An array that grows takes addresses for eight times its bytes, so that it grows in place
// later: nothing is copied, and no page is cleared twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/resource.h>
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
    if (grow_in_place(size)) return;
    ZeroedArray larger(0);
    if (!larger.reserve(size)) larger = ZeroedArray(size);
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

#if defined(__linux__)
  // Takes addresses without memory, and opens the first ones for `size` items. Does nothing and
  // returns false if the array is small, or if the addresses of the process are limited.
  bool reserve(std::uint64_t size) {
    if (size < huge_page / sizeof(T) || size > PTRDIFF_MAX / 16 / sizeof(T)) return false;
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return false;
    const std::size_t bytes = 8 * size * sizeof(T) + huge_page;
    void* const block =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return false;
    ZeroedArray reserved(0);
    std::free(reserved.block_);
    reserved.block_ = block, reserved.mapped_ = bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    reserved.data_ = reinterpret_cast<T*>((address + huge_page - 1) / huge_page * huge_page);
    madvise(block, bytes, MADV_HUGEPAGE);
    reserved.last_ = static_cast<char*>(block) + bytes;
    if (!reserved.grow_in_place(size)) return false;
    swap(reserved);
    return true;
  }

  // Opens more of the reserved addresses; returns false if there are too few.
  bool grow_in_place(std::uint64_t size) {
    if (!last_) return false;
    const auto room = static_cast<std::size_t>(last_ - reinterpret_cast<char*>(data_));
    if (size > room / sizeof(T)) return false;
    // Whole huge pages, because the system makes no huge page of a part of one.
    const std::size_t whole = (size * sizeof(T) + huge_page - 1) / huge_page * huge_page;
    if (mprotect(data_, std::min(whole, room), PROT_READ | PROT_WRITE) != 0) return false;
    size_ = size;
    return true;
  }
#else
  bool reserve(std::uint64_t) { return false; }
  bool grow_in_place(std::uint64_t) { return false; }
#endif

  void swap(ZeroedArray& other) noexcept {
    std::swap(size_, other.size_), std::swap(mapped_, other.mapped_);
    std::swap(block_, other.block_), std::swap(data_, other.data_);
    std::swap(last_, other.last_);
  }

  std::uint64_t size_ = 0;
  std::size_t mapped_ = 0;  // bytes mapped; 0 if the memory is from calloc
  void* block_ = nullptr;
  T* data_ = nullptr;
  char* last_ = nullptr;  // end of the addresses that were reserved; null: none were
};

}  // namespace thresher
