// The stabilized rule as the rest of the world sees it, whatever variant and number type.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "thresher/core/batch.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/stabilized/paths.hpp"

namespace thresher {

class StabilizedLearner {
 public:
  virtual ~StabilizedLearner() = default;

  mutable std::mutex gate;  // as of Learner
  mutable std::shared_mutex mutex;

  using State = std::vector<std::byte>;

  // What happens in the course of learning.
  struct Course {
    // After each stage: false ends learning.
    std::function<bool(const Stage&)> go_on;
    // Between two stages, where learning can be resumed: state() is what `from` takes. It is to be
    // called before rest() returns.
    std::function<void(const std::function<State()>& state)> rest;
    // State at a rest of a call with the same rows and arguments, to continue from; or empty.
    std::span<const std::byte> from;
  };

  // `passes` passes over the rows by every path, in stages.
  virtual void learn(const Batch& batch, std::int64_t passes, double tol, std::size_t jobs,
                     const Course& course) = 0;

  virtual SparseWeights weights() const = 0;
  virtual double intercept() const = 0;
  virtual Findings findings() const = 0;

  virtual State state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

// variant: "paper" | "robust"; dtype: "float32" | "float64".
std::unique_ptr<StabilizedLearner> make_stabilized(const std::string& variant,
                                                   const std::string& dtype, std::uint64_t width,
                                                   const Params& params);

}  // namespace thresher
