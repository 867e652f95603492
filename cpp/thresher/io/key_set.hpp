// A set of 64-bit keys that is made once and asked often.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace thresher::io {

class KeySet {
 public:
  explicit KeySet(std::span<const std::uint64_t> keys)
      : slots_(std::bit_ceil(2 * keys.size() + 2)), mask_(slots_.size() - 1) {
    for (const std::uint64_t key : keys) {
      if (key == 0) {
        has_zero_ = true;
        continue;
      }
      std::size_t slot = place(key);
      while (slots_[slot] != 0 && slots_[slot] != key) slot = (slot + 1) & mask_;
      slots_[slot] = key;
    }
  }

  bool contains(std::uint64_t key) const {
    if (key == 0) return has_zero_;
    std::size_t slot = place(key);
    while (slots_[slot] != 0 && slots_[slot] != key) slot = (slot + 1) & mask_;
    return slots_[slot] == key;
  }

 private:
  std::size_t place(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u >> 24) & mask_; }

  std::vector<std::uint64_t> slots_;  // 0: free
  std::size_t mask_;
  bool has_zero_ = false;
};

}  // namespace thresher::io
