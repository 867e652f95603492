// What a learner can do. The functions are virtual: one call handles a whole batch of rows.
//
// Every model in training is a Learner. What only some rules can do is an interface of its own, an
// ability: Widenable, StartsFromWeights, Centrable, Steerable, Pausable, RoundLearner. A learner
// implements the abilities that it has, and no others. require<Ability>(learner) returns the
// ability, or throws an error that says what the rule cannot do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/tally.hpp"

namespace thresher {

struct SparseWeights {
  std::vector<std::uint64_t> keys;  // increasing
  std::vector<double> values;       // none is zero
};

// Sorts pairs of a key and a weight by key.
SparseWeights sorted_weights(std::vector<std::pair<std::uint64_t, double>> pairs);

class Learner {
 public:
  virtual ~Learner() = default;

  // For callers with threads: learning and restoring change a learner, all other calls read it. A
  // thread locks `gate` while it waits for `mutex`, so that a writer gets its turn among readers.
  mutable std::mutex gate;
  mutable std::shared_mutex mutex;

  // Learns every row of the visit, in its order: a row makes as many steps as its weight says
  // (core/repeats.hpp). Returns the number of rows learned: fewer than asked if the rule pauses (see
  // Pausable). An error names the row; the rows before it have been learned, that row has not. If
  // the weights diverge, some steps of that row may have been made.
  virtual std::int64_t learn(const Batch& batch, const Visit& visit) = 0;
  virtual void next_pass() = 0;

  // The functions below change nothing. With `average`, rules that keep the mean of the iterates
  // answer with it; other rules answer with their last weights. `out` has an entry for each row.
  virtual void predict(const Batch& batch, const Visit& visit, bool average, double* out) const = 0;
  // The same with all weights, for a rule whose model leaves out small ones: to find these, predict
  // reads all weights after each row learned.
  virtual void predict_uncut(const Batch& batch, const Visit& visit, bool average,
                             double* out) const {
    predict(batch, visit, average, out);
  }
  virtual SparseWeights weights(bool average) const = 0;
  virtual std::int64_t nonzeros(bool average) const = 0;
  virtual double intercept(bool average) const = 0;
  virtual const Tally& tally() const = 0;
  virtual double rate() const = 0;  // of the last step
  virtual std::size_t bytes() const = 0;
  virtual std::map<std::string, double> facts() const { return {}; }  // numbers of this rule only

  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

// ---- abilities; `action` completes the sentence "this rule cannot ..." -------------------------

class Widenable {
 public:
  static constexpr const char* action = "take more features than it was made for";

  // Accepts feature numbers below a larger width from now on.
  virtual void widen(std::uint64_t width) = 0;

 protected:
  ~Widenable() = default;
};

class StartsFromWeights {
 public:
  static constexpr const char* action = "start from given weights";

  // To be called before the first step.
  virtual void start_from(std::span<const std::uint64_t> keys, std::span<const double> values,
                          double intercept) = 0;

 protected:
  ~StartsFromWeights() = default;
};

class Centrable {
 public:
  static constexpr const char* action = "centre the rows";

  // Sets the mean of the rows, before the first step.
  virtual void center(std::span<const std::uint64_t> keys, std::span<const double> means) = 0;

 protected:
  ~Centrable() = default;
};

class Steerable {
 public:
  static constexpr const char* action = "steer to a number of nonzero weights";

  // Sets the penalty now for the wanted number of nonzero weights (schedule/steering.hpp).
  virtual void steer() = 0;

 protected:
  ~Steerable() = default;
};

class Pausable {
 public:
  static constexpr const char* action = "pause";

  // learn() returns after a row that leaves at least this many nonzero weights.
  virtual void pause_at(std::int64_t nonzeros) = 0;
  virtual bool paused() const = 0;  // after the last row

 protected:
  ~Pausable() = default;
};

// The result of a round.
struct RoundResult {
  std::vector<std::uint64_t> keys;     // of the features that were updated, increasing
  std::vector<std::uint32_t> updates;  // of each, at least 1
  std::vector<double> numbers;         // numbers_per_feature() for each
};

// Learns in rounds: several learners start from one model, and their results are averaged
// (averaging/round.hpp).
class RoundLearner {
 public:
  static constexpr const char* action = "be averaged";

  virtual std::size_t numbers_per_feature() const = 0;  // how many numbers are averaged

  // The clock: all numbers that do not belong to a feature. It is small, and has no pending events.
  // set_clock() expects cells as they are at the start of a round.
  virtual std::vector<std::byte> clock() const = 0;
  virtual void set_clock(std::span<const std::byte> clock) = 0;

  // end_round() returns what was updated since begin_round(), and resets all cells to the start of
  // the round. It keeps the clock.
  virtual void begin_round() = 0;
  virtual RoundResult end_round() = 0;

  // A feature without an update can change in a round, too. pending() returns what is needed to
  // compute this change after the last round; apply_pending() makes the change to the numbers of
  // such features.
  virtual std::vector<std::byte> pending() const = 0;
  virtual void apply_pending(std::span<const std::byte> pending,
                             std::span<double> numbers) const = 0;

  // Sets the averaged model, between two rounds.
  virtual void set_numbers(std::span<const std::uint64_t> keys,
                           std::span<const double> numbers) = 0;
  virtual std::vector<double> intercept_numbers() const = 0;
  virtual void set_intercept_numbers(std::span<const double> numbers) = 0;

  // Returns how many of the features with these numbers have a nonzero weight at a clock.
  virtual std::int64_t nonzeros_at(std::span<const std::byte> clock,
                                   std::span<const double> numbers, bool average) const = 0;

  // Sets the whole model, after the last round. The learner then continues alone from its clock.
  virtual void finish_rounds(std::span<const std::uint64_t> keys, std::span<const double> numbers,
                             const Tally& tally) = 0;

 protected:
  ~RoundLearner() = default;
};

template <class Ability>
const Ability& require(const Learner& learner) {
  if (const auto* found = dynamic_cast<const Ability*>(&learner)) return *found;
  throw std::invalid_argument(std::string("this rule cannot ") + Ability::action);
}
template <class Ability>
Ability& require(Learner& learner) {
  return const_cast<Ability&>(require<Ability>(std::as_const(learner)));
}

}  // namespace thresher
