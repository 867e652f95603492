// The one virtual interface the rest of the world sees. A call is made once a batch, so it may be virtual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/tally.hpp"

namespace thresher {

struct SparseWeights {
  std::vector<std::uint64_t> keys;  // increasing
  std::vector<double> values;       // none is zero
};

// What a round of learning gives, see averaging/round.hpp.
struct SharedNumbers {
  std::vector<std::uint64_t> keys;     // increasing
  std::vector<std::uint32_t> updates;  // of each, at least 1
  std::vector<double> numbers;         // `shares` of each
};

class Learner {
 public:
  virtual ~Learner() = default;

  // For callers with threads: learning and restoring change a learner, everything else reads it. Who
  // waits for `mutex` holds `gate`, so that readers in a queue do not keep a writer out for ever.
  mutable std::mutex gate;
  mutable std::shared_mutex mutex;

  // One step for every row of the visit, in its order; returns how many were made: fewer than asked
  // for where the rule pauses (pause_at). An error names the row; the rows before it have been
  // learned, that row has not.
  virtual std::int64_t learn(const Batch& batch, const Visit& visit) = 0;
  virtual void next_pass() = 0;

  // Takes feature numbers up to a larger width from now on.
  virtual void widen(std::uint64_t width) = 0;

  // All that follows reads, and changes nothing. `out` has a place for each row of the visit. `average`
  // asks for the mean of the iterates where the rule keeps it; other rules answer with their last weights.
  virtual void predict(const Batch& batch, const Visit& visit, bool average, double* out) const = 0;
  virtual SparseWeights weights(bool average) const = 0;
  virtual std::int64_t nonzeros(bool average) const = 0;
  virtual double intercept(bool average) const = 0;
  virtual const Tally& tally() const = 0;
  virtual double rate() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual std::map<std::string, double> facts() const = 0;  // numbers only this rule keeps

  virtual std::vector<std::byte> state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;

  // Before the first step: weights to start from, or the mean of the rows for centring.
  virtual void plant(std::span<const std::uint64_t> keys, std::span<const double> values,
                     double intercept) = 0;
  virtual void center(std::span<const std::uint64_t> keys, std::span<const double> means) = 0;

  // Sets gravity so that the number of nonzero weights comes to what was asked for, now.
  virtual void steer() = 0;

  // Learning pauses when so many weights are not zero; it did so after the last step.
  virtual void pause_at(std::int64_t nonzeros) = 0;
  virtual bool paused() const = 0;

  // ---- learning in rounds, whose results are combined with those of others; see averaging/round.hpp -------

  virtual std::size_t shares() const = 0;  // numbers a feature

  // The numbers that are not of a feature: small, and nothing is owed in it. `set_clock` goes with cells as
  // they are at the beginning of a round.
  virtual std::vector<std::byte> clock() const = 0;
  virtual void set_clock(std::span<const std::byte> clock) = 0;

  // From here on updates are counted. The end gives what was updated, and puts all cells back; the clock
  // stays. The debt is of the round that has ended.
  virtual void begin_round() = 0;
  virtual SharedNumbers end_round() = 0;
  virtual std::vector<std::byte> debt() const = 0;
  virtual void fade(std::span<const std::byte> debt, std::span<double> numbers) const = 0;

  // Between two rounds: the combined model.
  virtual void adopt(std::span<const std::uint64_t> keys, std::span<const double> numbers) = 0;
  virtual std::vector<double> bias_share() const = 0;
  virtual void adopt_bias(std::span<const double> numbers) = 0;

  // How many of features with these numbers have a weight that is not zero, at a clock.
  virtual std::int64_t nonzeros_at(std::span<const std::byte> clock,
                                   std::span<const double> numbers, bool average) const = 0;

  // After the last round: the whole model, in a learner that goes on alone from its clock.
  virtual void settle_down(std::span<const std::uint64_t> keys, std::span<const double> numbers,
                           const Tally& tally) = 0;

 protected:
  [[noreturn]] static void cannot(const char* what) {
    throw std::invalid_argument(std::string("this rule cannot ") + what);
  }
};

}  // namespace thresher
