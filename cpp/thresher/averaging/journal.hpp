// The cells of features at the start of a round, as bytes: compiled once for all rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "thresher/stores/hashed.hpp"

namespace thresher {

class Journal {
 public:
  explicit Journal(std::size_t cell_size) : cell_size_(cell_size), entries_(0) {}

  // Counts the updates of a feature. Returns where its cell is to be copied to, or nullptr if the
  // journal has it. The place is valid until the next call.
  std::byte* add(std::uint64_t key, bool updated);

  struct Saved {
    std::uint64_t key;
    std::uint32_t updates;
    const std::byte* cell;
  };
  std::vector<Saved> sorted() const;  // by key

 private:
  struct Entry {
    std::uint32_t number = 0, updates = 0;  // number: 1 + its place in cells_
    bool operator==(const Entry&) const = default;
  };

  std::size_t cell_size_;
  HashedStore<Entry> entries_;
  std::vector<std::byte> cells_;
};

}  // namespace thresher
