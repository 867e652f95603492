// Calls of the system that a signal may interrupt.
#pragma once

#include <cerrno>

namespace thresher::io {

// Repeats a call until no signal interrupts it; returns its result.
template <class F>
auto retried(F&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace thresher::io
