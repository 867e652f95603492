// Vectors of 16 bytes, for every machine.
#define THRESHER_BYTES 16
#include "thresher/predict/kernels_of_level.hpp"

namespace thresher::predict {

void fill_portable(Kernels& all) { all = all_kernels(); }

}  // namespace thresher::predict
