// Chooses the kernels for the vector instructions of this machine.
#include "thresher/lanes/kernels.hpp"

#include <stdexcept>

namespace thresher::lanes {

void fill_portable(Table<float>&, Table<double>&);
#if defined(THRESHER_X86)
void fill_avx2(Table<float>&, Table<double>&);
void fill_avx512(Table<float>&, Table<double>&);
#endif

namespace {

struct Tables {
  Table<float> single;
  Table<double> twice;

  explicit Tables(void (*fill)(Table<float>&, Table<double>&)) { fill(single, twice); }

  template <class Real>
  const Table<Real>& of() const {
    if constexpr (sizeof(Real) == 4) return single;
    else return twice;
  }
};

bool has(const std::string& level) {
#if defined(THRESHER_X86)
  if (level == "avx512")
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
  if (level == "avx2") return __builtin_cpu_supports("avx2");
#endif
  return level == "portable";
}

}  // namespace

std::string widest_level() {
  for (const char* level : {"avx512", "avx2"})
    if (has(level)) return level;
  return "portable";
}

template <class Real>
const Table<Real>& kernels(const std::string& level) {
  if (level == "auto") return kernels<Real>(widest_level());
  if (!has(level))
    throw std::invalid_argument(
        "level must be 'auto', 'portable', or a vector level of this machine; not '" + level + "'");
#if defined(THRESHER_X86)
  if (level == "avx512") {
    static const Tables tables(fill_avx512);
    return tables.of<Real>();
  }
  if (level == "avx2") {
    static const Tables tables(fill_avx2);
    return tables.of<Real>();
  }
#endif
  static const Tables tables(fill_portable);
  return tables.of<Real>();
}

template const Table<float>& kernels<float>(const std::string&);
template const Table<double>& kernels<double>(const std::string&);

}  // namespace thresher::lanes
