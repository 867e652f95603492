// Writes blocks as text that the readers parse back to the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "thresher/io/block.hpp"

namespace thresher::io {

// A growing text. Unlike std::string it does not clear new memory.
class Text {
 public:
  std::string_view view() const { return {bytes_.get(), size_}; }

  // Position of the next byte, with room for at least `bytes` bytes.
  char* room(std::size_t bytes);
  void end_at(const char* end) { size_ = static_cast<std::size_t>(end - bytes_.get()); }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0, capacity_ = 0;
};

// Both throw DataError, with the row in the block, for what the format does not allow. svmlight: a
// missing label, weights. VW: lists of labels, a weight without a label, a tag with spaces or bars.
// Both: numbers that are not finite. svmlight omits tags. Each number is the shortest text that
// reads back to the same value.
Text svmlight_text(const Block& block, bool zero_based);
Text vw_text(const Block& block);

// The names of features by key, for VW text with names and namespaces.
class VwNames {
 public:
  // Adds the names of a block. A name is left out if VW text does not allow it, or if its hash is
  // not the key: the name of a product, or of a key that was cut to fewer bits.
  void add(const Block& block);

  struct Name {
    std::string space, name;
  };
  const Name* find(std::uint64_t key) const;
  std::size_t longest() const { return longest_; }  // bytes of a namespace and a name

 private:
  std::unordered_map<std::uint64_t, Name> names_;
  std::size_t longest_ = 0;
};

// As above; features without a name are numbers in the default namespace, as in the other text.
Text vw_text(const Block& block, const VwNames& names);

}  // namespace thresher::io
