// Registers dual averaging; the rule is in rules/dual_averaging.hpp.
#include "thresher/rules/dual_averaging.hpp"

#include "thresher/core/make_learner.hpp"

namespace thresher {

const Registration dual_averaging({"dual_averaging", in_store<DualAveraging<float>>,
                                   in_store<DualAveraging<double>>, nullptr});

}  // namespace thresher
