// Vectors of 16 bytes, available on every 64-bit machine.
#define THRESHER_LEVEL portable
#define THRESHER_BYTES 16
#include "thresher/lanes/kernels_of_level.hpp"

namespace thresher::lanes {

void fill_portable(Table<float>& single, Table<double>& twice) {
  portable::fill(single), portable::fill(twice);
}

}  // namespace thresher::lanes
