// Learning rates: eta_t = eta0 * f(t) * decay^pass; t = 1, 2, ... counts steps over all
// passes.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace thresher {

class Rate {
 public:
  Rate(const std::string& schedule, double eta0, double power, double decay)
      : kind_(kind_of(schedule)), eta0_(eta0), power_(power), decay_(decay) {}

  double operator()(std::int64_t t) const {
    switch (kind_) {
      case Kind::constant: return eta0_;
      case Kind::inverse: return eta0_ / static_cast<double>(t);
      case Kind::sqrt: return eta0_ / std::sqrt(static_cast<double>(t));
      case Kind::power: return eta0_ * std::pow(static_cast<double>(t), -power_);
    }
    return eta0_;
  }

  void next_pass() { eta0_ *= decay_; }

  // Whether every step has the same rate.
  bool is_constant() const { return kind_ == Kind::constant && decay_ == 1.0; }

  template <class Archive>
  void archive(Archive& io) {
    io(eta0_);
  }

 private:
  enum class Kind { constant, inverse, sqrt, power };

  static Kind kind_of(const std::string& name) {
    if (name == "constant") return Kind::constant;
    if (name == "inverse") return Kind::inverse;
    if (name == "sqrt") return Kind::sqrt;
    if (name == "power") return Kind::power;
    throw std::invalid_argument("unknown schedule '" + name + "'");
  }

  Kind kind_;
  double eta0_;  // times decay^pass
  double power_, decay_;
};

}  // namespace thresher
