// The rules, by name.
//
// A rule NAME has a header rules/NAME.hpp, perhaps lanes/NAME_lanes.hpp, and a file rules/NAME.cpp
// that compiles its learners and registers them. Nothing else lists the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thresher/core/learner.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

class Lanes;
struct LaneSpec;

namespace lanes {
struct LineRule;
}

struct RegisteredRule {
  using Make = std::unique_ptr<Learner> (*)(const std::string& store, std::uint64_t width,
                                            const Params& params);
  std::string name;
  Make make_float32, make_float64;
  const lanes::LineRule* lines;  // how lanes share lines (lanes/group.hpp); nullptr: they do not

  // Makes lanes with equal parameters and one clock that share more than lines; or nullptr.
  using MakeTogether = std::unique_ptr<Lanes> (*)(bool hashed, std::uint64_t width,
                                                  const std::vector<LaneSpec>& specs,
                                                  const std::string& level);
  struct Together {
    MakeTogether float32 = nullptr, float64 = nullptr;
  } together = {};
};

// A global variable of this type in rules/NAME.cpp registers the rule when the module is loaded.
struct Registration {
  explicit Registration(RegisteredRule rule);
};

// Throws for a name that no rule has.
const RegisteredRule& registered_rule(const std::string& name);

// The names of all rules, sorted.
std::vector<std::string> rule_names();

// rule: one of rule_names(); store: "dense" | "hashed"; dtype: "float32" | "float64"; width: the
// number of features, or 0 for any 64-bit key (hashed only).
std::unique_ptr<Learner> make_learner(const std::string& rule, const std::string& store,
                                      const std::string& dtype, std::uint64_t width,
                                      const Params& params);

}  // namespace thresher
