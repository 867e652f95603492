// Chooses the kernels for the vector instructions of this machine.
#include "thresher/discovery/kernels.hpp"

namespace thresher::discovery {

void fill_portable(Kernels<float>&, Kernels<double>&);
#if defined(THRESHER_X86)
void fill_avx2(Kernels<float>&, Kernels<double>&);
void fill_avx512(Kernels<float>&, Kernels<double>&);
#endif

namespace {

struct Tables {
  Kernels<float> single;
  Kernels<double> twice;

  explicit Tables(void (*fill)(Kernels<float>&, Kernels<double>&)) { fill(single, twice); }

  template <class Real>
  const Kernels<Real>& of() const {
    if constexpr (sizeof(Real) == 4) return single;
    else return twice;
  }
};

}  // namespace

template <class Real>
const Kernels<Real>& kernels(const std::string& level) {
  lanes::kernels<Real>(level);  // throws if the machine does not have the level
  const std::string name = level == "auto" ? lanes::widest_level() : level;
#if defined(THRESHER_X86)
  if (name == "avx512") {
    static const Tables tables(fill_avx512);
    return tables.of<Real>();
  }
  if (name == "avx2") {
    static const Tables tables(fill_avx2);
    return tables.of<Real>();
  }
#endif
  static const Tables tables(fill_portable);
  return tables.of<Real>();
}

template const Kernels<float>& kernels<float>(const std::string&);
template const Kernels<double>& kernels<double>(const std::string&);

}  // namespace thresher::discovery
