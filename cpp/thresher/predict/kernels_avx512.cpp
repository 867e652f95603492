// Vectors of 64 bytes. Compiled for, and called only on, machines with AVX-512.
#define THRESHER_BYTES 64
#include "thresher/predict/kernels_of_level.hpp"

namespace thresher::predict {

void fill_avx512(Kernels& all) { all = all_kernels(); }

}  // namespace thresher::predict
