// Which lanes share lines, and which stand alone.
#include <memory>
#include <utility>
#include <vector>

#include "../registry.hpp"
#include "lanes.hpp"
#include "separate.hpp"

namespace thresher {

std::unique_ptr<Lanes> make_lanes(const std::string& rule, const std::string& store,
                                  const std::string& dtype, std::uint64_t width,
                                  std::vector<LaneSpec> specs, const std::string&) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (const LaneSpec& spec : specs)
    learners.push_back(make_learner(rule, store, dtype, width, spec.params));
  return std::make_unique<SeparateLanes>(std::move(learners), std::move(specs));
}

}  // namespace thresher
