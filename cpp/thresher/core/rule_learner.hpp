// RuleLearner<rule, store>: a BasicRuleLearner with the abilities of its rule. Each ability is a
// class that adds one interface of core/learner.hpp to a learner; code for abilities that the rule
// does not have is not compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "thresher/averaging/in_rounds.hpp"
#include "thresher/core/basic_rule_learner.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

template <class Base>
class Starting : public Base, public StartsFromWeights {
 public:
  using Base::Base;

  void start_from(std::span<const std::uint64_t> keys, std::span<const double> values,
                  double intercept) override {
    this->store_.reserve(keys.size(), [](const auto&) { return false; });
    for (std::size_t i = 0; i < keys.size(); ++i)
      this->store_.put(keys[i], this->rule_.cell_with_weight(values[i]));
    this->rule_.set_intercept(intercept);
  }
};

template <class Base>
class Centring : public Base, public Centrable {
 public:
  using Base::Base;

  void center(std::span<const std::uint64_t> keys, std::span<const double> means) override {
    this->store_.reserve(keys.size(), [](const auto&) { return false; });
    for (std::size_t i = 0; i < keys.size(); ++i)
      this->store_.put(keys[i], this->rule_.cell_with_mean(means[i]));
  }
};

template <class Base>
class Steered : public Base, public Steerable {
 public:
  using Base::Base;

  void steer() override { this->steer_rule(); }
};

template <class Base>
class Pausing : public Base, public Pausable {
 public:
  using Base::Base;

  void pause_at(std::int64_t nonzeros) override { this->rule_.pause_at(nonzeros); }
  bool paused() const override { return this->rule_.pausing(); }
};

// Ability<Base> if the rule has the ability, else Base itself.
template <bool Has, template <class> class Ability, class Base>
using With = std::conditional_t<Has, Ability<Base>, Base>;

template <class R, template <class> class Store>
using WithAbilities =
    With<StartingRule<R>, Starting,
         With<CentringRule<R>, Centring,
              With<SteeringRule<R>, Steered,
                   With<PausingRule<R>, Pausing,
                        With<RoundRule<R>, InRounds, BasicRuleLearner<R, Store>>>>>>;

template <Rule R, template <class> class Store>
class RuleLearner final : public WithAbilities<R, Store> {
 public:
  using WithAbilities<R, Store>::WithAbilities;
};

}  // namespace thresher
