// Vectors of 16 bytes, which every 64-bit machine has.
#define THRESHER_LEVEL portable
#define THRESHER_BYTES 16
#include "thresher/lanes/kernels_of_level.hpp"

namespace thresher::lanes {

void fill_portable(Table<float>& single, Table<double>& twice) {
  portable::fill(single), portable::fill(twice);
}

}  // namespace thresher::lanes
