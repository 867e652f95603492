#include "thresher/loss/loss.hpp"

#include <iterator>
#include <stdexcept>

namespace thresher {

Loss::Kind Loss::kind_of(const std::string& name) {
  for (std::size_t i = 0; i < std::size(table); ++i)
    if (name == table[i].name) return static_cast<Kind>(i);
  throw std::invalid_argument("unknown loss '" + name + "'");
}

}  // namespace thresher
