// Chooses the kernels for the vector instructions of this machine.
#include "thresher/predict/kernels.hpp"

#include "thresher/lanes/kernels.hpp"

namespace thresher::predict {

void fill_portable(Kernels&);
#if defined(THRESHER_X86)
void fill_avx2(Kernels&);
void fill_avx512(Kernels&);
#endif

namespace {

Kernels filled(void (*fill)(Kernels&)) {
  Kernels kernels;
  fill(kernels);
  return kernels;
}

}  // namespace

const Kernels& kernels(const std::string& level) {
  lanes::kernels<double>(level);  // throws if the machine does not have the level
  const std::string name = level == "auto" ? lanes::widest_level() : level;
#if defined(THRESHER_X86)
  if (name == "avx512") {
    static const Kernels all = filled(fill_avx512);
    return all;
  }
  if (name == "avx2") {
    static const Kernels all = filled(fill_avx2);
    return all;
  }
#endif
  static const Kernels all = filled(fill_portable);
  return all;
}

}  // namespace thresher::predict
