// Blocks as text that the readers read back to the same rows.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "thresher/io/block.hpp"

namespace thresher::io {

// Not a string, which would clear its memory first.
class Text {
 public:
  std::string_view view() const { return {bytes_.get(), size_}; }

  // Where the next bytes go, with room for so many.
  char* room(std::size_t bytes);
  void end_at(const char* end) { size_ = static_cast<std::size_t>(end - bytes_.get()); }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0, capacity_ = 0;
};

// Throw DataError, with the row of the block, for what the format cannot carry: svmlight no missing label and
// no weights; VW no lists of labels, no weight without a label, no tag with spaces or bars in it; neither
// anything that is not finite. svmlight drops tags. Numbers are the shortest that read back to the same.
Text svmlight_text(const Block& block, bool zero_based);
Text vw_text(const Block& block);

}  // namespace thresher::io
