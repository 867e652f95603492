// Writes blocks as text that the readers parse back to the same rows.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

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

}  // namespace thresher::io
