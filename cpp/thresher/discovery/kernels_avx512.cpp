// Vectors of 64 bytes. Compiled with -mavx512f and related flags, and called only on machines with
// AVX-512.
#define THRESHER_LEVEL avx512
#define THRESHER_BYTES 64
#include "thresher/discovery/kernels_of_level.hpp"

namespace thresher::discovery {

void fill_avx512(Kernels<float>& single, Kernels<double>& twice) {
  avx512::fill(single), avx512::fill(twice);
}

}  // namespace thresher::discovery
