// Vectors of 32 bytes. Compiled with -mavx2 and called only on machines with AVX2.
#define THRESHER_BYTES 32
#include "thresher/predict/kernels_of_level.hpp"

namespace thresher::predict {

void fill_avx2(Kernels& all) { all = all_kernels(); }

}  // namespace thresher::predict
