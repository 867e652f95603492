// Feature names that are found while files are read: names of given keys, or of all features.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "thresher/io/block.hpp"

namespace thresher::io {

// Keys whose names are wanted. Parser threads ask which keys still lack a name. The thread that
// takes blocks in file order stores the names, so a key always gets its first name in the files.
class KeySet {
 public:
  explicit KeySet(std::span<const std::uint64_t> keys)
      : slots_(std::bit_ceil(2 * keys.size() + 2)), mask_(slots_.size() - 1) {
    for (const std::uint64_t key : keys) {
      Slot& slot = slots_[find(key)];
      if (!slot.used) slot.used = true, slot.key = key, ++missing_;
      slot.lacks.store(true, std::memory_order_relaxed);
    }
  }

  KeySet(const KeySet&) = delete;  // parsers keep pointers to it
  KeySet& operator=(const KeySet&) = delete;

  // Whether the key is wanted and has no name yet.
  bool lacks(std::uint64_t key) const {
    const Slot& slot = slots_[find(key)];
    return slot.used && slot.lacks.load(std::memory_order_relaxed);
  }

  // Stores the names of a block. Must be called for blocks in file order.
  void take(const std::vector<Name>& names) {
    for (const Name& name : names) {
      Slot& slot = slots_[find(name.key)];
      if (!slot.used || !slot.lacks.load(std::memory_order_relaxed)) continue;
      found_.push_back(name);
      slot.lacks.store(false, std::memory_order_relaxed);
      --missing_;
    }
  }

  std::vector<std::uint64_t> keys() const {
    std::vector<std::uint64_t> lacking;
    for (const Slot& slot : slots_)
      if (slot.used && slot.lacks.load(std::memory_order_relaxed)) lacking.push_back(slot.key);
    return lacking;
  }

  std::size_t missing() const { return missing_; }
  const std::vector<Name>& found() const { return found_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    bool used = false;
    std::atomic<bool> lacks = false;
  };

  std::size_t find(std::uint64_t key) const {
    std::size_t at = (key * 0x9E3779B97F4A7C15u >> 24) & mask_;
    while (slots_[at].used && slots_[at].key != key) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Slot> slots_;
  std::size_t mask_, missing_ = 0;
  std::vector<Name> found_;
};

// The names of all features seen, except those removed by retain().
class NameTable {
 public:
  void take(const std::vector<Name>& names) {
    for (const Name& name : names) names_.try_emplace(name.key, name.name);
  }

  void add(std::uint64_t key, std::string_view name) { names_.try_emplace(key, name); }

  // Removes the names of all other keys.
  void retain(std::span<const std::uint64_t> keys) {
    std::unordered_map<std::uint64_t, std::string> kept;
    for (const std::uint64_t key : keys)
      if (auto node = names_.extract(key)) kept.insert(std::move(node));
    names_ = std::move(kept);
  }

  const std::unordered_map<std::uint64_t, std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::uint64_t, std::string> names_;
};

}  // namespace thresher::io
