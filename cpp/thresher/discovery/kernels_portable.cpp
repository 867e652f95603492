// Vectors of 16 bytes, available on every 64-bit machine.
#define THRESHER_LEVEL portable
#define THRESHER_BYTES 16
#include "thresher/discovery/kernels_of_level.hpp"

namespace thresher::discovery {

void fill_portable(Kernels<float>& single, Kernels<double>& twice) {
  portable::fill(single), portable::fill(twice);
}

}  // namespace thresher::discovery
