// An assertion that also works with NDEBUG.
#pragma once

#include <cstdlib>

namespace fuzz {

inline void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fuzz
