#include "thresher/core/registry.hpp"

#include <map>
#include <stdexcept>
#include <utility>

namespace thresher {
namespace {

// A function, so that it exists before the first registration.
std::map<std::string, RegisteredRule>& rules() {
  static std::map<std::string, RegisteredRule> rules;
  return rules;
}

}  // namespace

Registration::Registration(RegisteredRule rule) {
  std::string name = rule.name;
  rules().emplace(std::move(name), std::move(rule));
}

const RegisteredRule& registered_rule(const std::string& name) {
  const auto found = rules().find(name);
  if (found == rules().end()) throw std::invalid_argument("unknown rule '" + name + "'");
  return found->second;
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  return names;
}

std::unique_ptr<Learner> make_learner(const std::string& rule, const std::string& store,
                                      const std::string& dtype, std::uint64_t width,
                                      const Params& params) {
  const RegisteredRule& found = registered_rule(rule);
  if (dtype == "float32") return found.make_float32(store, width, params);
  if (dtype == "float64") return found.make_float64(store, width, params);
  throw std::invalid_argument("unknown dtype '" + dtype + "'");
}

}  // namespace thresher
