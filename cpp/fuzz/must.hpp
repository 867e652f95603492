// What a fuzz target asserts, with or without NDEBUG.
#pragma once

#include <cstdlib>

namespace fuzz {

inline void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fuzz
