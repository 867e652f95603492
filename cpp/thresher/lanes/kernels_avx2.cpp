// Vectors of 32 bytes; compiled with -mavx2, and called only where the machine has it.
#define THRESHER_LEVEL avx2
#define THRESHER_BYTES 32
#include "thresher/lanes/kernels_of_level.hpp"

namespace thresher::lanes {

void fill_avx2(Table<float>& single, Table<double>& twice) {
  avx2::fill(single), avx2::fill(twice);
}

}  // namespace thresher::lanes
