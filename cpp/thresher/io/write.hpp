// Blocks as text that the readers read back to the same rows.
#pragma once

#include <string>

#include "block.hpp"

namespace thresher::io {

// Throw DataError, with the row of the block, for what the format cannot carry: svmlight no missing label and
// no weights; VW no lists of labels, no weight without a label, no tag with spaces or bars in it; neither
// anything that is not finite. svmlight drops tags. Numbers are the shortest that read back to the same.
std::string svmlight_text(const Block& block, bool zero_based);
std::string vw_text(const Block& block);

}  // namespace thresher::io
