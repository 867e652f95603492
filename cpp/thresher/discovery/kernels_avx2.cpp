// Vectors of 32 bytes. Compiled with -mavx2 and called only on machines with AVX2.
#define THRESHER_LEVEL avx2
#define THRESHER_BYTES 32
#include "thresher/discovery/kernels_of_level.hpp"

namespace thresher::discovery {

void fill_avx2(Kernels<float>& single, Kernels<double>& twice) {
  avx2::fill(single), avx2::fill(twice);
}

}  // namespace thresher::discovery
