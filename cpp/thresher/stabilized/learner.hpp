// The interface of the stabilized rule, for both variants and number types.
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

  mutable std::mutex gate;  // as in Learner
  mutable std::shared_mutex mutex;

  using State = std::vector<std::byte>;

  struct Callbacks {
    // Called after each stage; false ends learning.
    std::function<bool(const Stage&)> go_on;
    // Called between two stages, where learning can be resumed. state() may be called until it
    // returns.
    std::function<void(const std::function<State()>& state)> between_stages;
  };

  // Every path makes `passes` passes over the rows, in stages. `resume` is empty, or a state
  // between two stages of a call with the same rows and arguments, to continue from.
  virtual void learn(const Batch& batch, std::int64_t passes, double tol, std::size_t jobs,
                     const Callbacks& callbacks, std::span<const std::byte> resume) = 0;

  virtual SparseWeights weights() const = 0;
  virtual double intercept() const = 0;
  virtual Findings findings() const = 0;
  // False: no model was better than the intercept alone, which is the model. (variant "robust")
  virtual bool has_signal() const = 0;

  virtual State state() const = 0;
  virtual void restore(std::span<const std::byte> state) = 0;
};

// variant: "paper" | "robust"; dtype: "float32" | "float64".
std::unique_ptr<StabilizedLearner> make_stabilized(const std::string& variant,
                                                   const std::string& dtype, std::uint64_t width,
                                                   const Params& params);

}  // namespace thresher
