// The parameters of a rule. Python sets them (src/thresher/rules/core_args.py).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace thresher {

class Params {
 public:
  Params(std::map<std::string, double> numbers, std::map<std::string, std::string> words)
      : numbers_(std::move(numbers)), words_(std::move(words)) {}

  bool operator==(const Params& other) const;

  // These throw if the parameter is missing.
  double number(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  bool flag(std::string_view name) const { return number(name) != 0.0; }

  double number(std::string_view name, double otherwise) const;

  // A copy with some numbers replaced or added.
  Params with(const std::map<std::string, double>& others) const;

 private:
  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> words_;
};

}  // namespace thresher
