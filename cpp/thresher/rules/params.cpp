#include "thresher/rules/params.hpp"

#include <stdexcept>

namespace thresher {
namespace {

template <class Value>
const Value& at(const std::map<std::string, Value>& values, std::string_view name) {
  const auto found = values.find(std::string(name));
  if (found == values.end())
    throw std::invalid_argument("the parameter '" + std::string(name) + "' is missing");
  return found->second;
}

}  // namespace

bool Params::operator==(const Params& other) const = default;

double Params::number(std::string_view name) const { return at(numbers_, name); }

const std::string& Params::word(std::string_view name) const { return at(words_, name); }

double Params::number(std::string_view name, double otherwise) const {
  const auto found = numbers_.find(std::string(name));
  return found == numbers_.end() ? otherwise : found->second;
}

Params Params::with(const std::map<std::string, double>& others) const {
  Params changed = *this;
  for (const auto& [name, value] : others) changed.numbers_[name] = value;
  return changed;
}

}  // namespace thresher
