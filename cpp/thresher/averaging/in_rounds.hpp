// Adds the ability to learn in rounds (RoundLearner) to a learner whose rule is a RoundRule. The
// functions are marked as cold: they run once per round, and compile faster without inlining.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "thresher/averaging/round.hpp"
#include "thresher/core/archive.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/core/tally.hpp"

namespace thresher {

template <class Base>
class InRounds : public Base, public RoundLearner {
 protected:
  using Base::cells, Base::round_, Base::rule_, Base::tally_;

 public:
  using R = typename Base::R;
  using Cell = typename Base::Cell;
  using Base::Base;

  std::size_t numbers_per_feature() const override { return R::numbers_per_feature; }

  [[gnu::cold, gnu::noinline]] std::vector<std::byte> clock() const override {
    Saver save;
    R rule = rule_;
    if constexpr (LedgerRule<R>) rule.reset_ledger();
    rule.archive(save);
    const_cast<Tally&>(tally_).archive(save);  // a Saver only reads
    return save.take();
  }

  [[gnu::cold, gnu::noinline]] void set_clock(std::span<const std::byte> clock) override {
    Restorer restore(clock);
    R rule = rule_;
    Tally tally;
    rule.archive(restore);
    tally.archive(restore);
    if (!restore.finished()) throw std::invalid_argument("the clock has bytes left over");
    rule_ = std::move(rule), tally_ = tally;
  }

  [[gnu::cold, gnu::noinline]] void begin_round() override { round_.begin(rule_); }
  [[gnu::cold, gnu::noinline]] RoundResult end_round() override {
    return round_.end(cells(), rule_);
  }
  [[gnu::cold, gnu::noinline]] std::vector<std::byte> pending() const override {
    return round_.pending(rule_);
  }
  [[gnu::cold, gnu::noinline]] void apply_pending(std::span<const std::byte> pending,
                                                  std::span<double> numbers) const override {
    Round<R>::apply_pending(rule_, pending, numbers);
  }

  [[gnu::cold, gnu::noinline]] void set_numbers(std::span<const std::uint64_t> keys,
                                                std::span<const double> numbers) override {
    put_all(keys, numbers, [this](const auto& one) { return rule_.cell_at_start(one); });
  }

  [[gnu::cold, gnu::noinline]] std::vector<double> intercept_numbers() const override {
    const auto numbers = rule_.intercept_numbers();
    return {numbers.begin(), numbers.end()};
  }
  [[gnu::cold, gnu::noinline]] void set_intercept_numbers(
      std::span<const double> numbers) override {
    typename R::InterceptNumbers one{};
    if (numbers.size() != one.size())
      throw std::invalid_argument("wrong count of numbers for an intercept");
    std::copy(numbers.begin(), numbers.end(), one.begin());
    rule_.set_intercept_numbers(one);
  }

  [[gnu::cold, gnu::noinline]] std::int64_t nonzeros_at(std::span<const std::byte> clock,
                                                        std::span<const double> numbers,
                                                        bool average) const override {
    R rule = rule_;
    Restorer restore(clock);
    rule.archive(restore);
    if constexpr (requires { rule.end_rounds(); }) rule.end_rounds();
    std::int64_t found = 0;
    Round<R>::each(numbers, [&](const auto& one) {
      const Cell cell = rule.cell_now(one);
      found += (average ? rule.average(cell) : rule.weight(cell)) != 0.0;
    });
    return found;
  }

  [[gnu::cold, gnu::noinline]] void finish_rounds(std::span<const std::uint64_t> keys,
                                                  std::span<const double> numbers,
                                                  const Tally& tally) override {
    if constexpr (requires { rule_.end_rounds(); }) rule_.end_rounds();
    put_all(keys, numbers, [this](const auto& one) { return rule_.cell_now(one); });
    if constexpr (requires { rule_.set_nonzeros(0); }) rule_.set_nonzeros(this->nonzeros(false));
    tally_ = tally;
  }

 private:
  template <class Make>
  [[gnu::cold, gnu::noinline]] void put_all(std::span<const std::uint64_t> keys,
                                            std::span<const double> numbers, Make&& make) {
    if (numbers.size() != keys.size() * R::numbers_per_feature)
      throw std::invalid_argument("the count of numbers does not match the count of features");
    cells().reserve(keys.size());
    std::size_t i = 0;
    Round<R>::each(numbers, [&](const auto& one) { cells().put(keys[i++], make(one)); });
  }
};

}  // namespace thresher
