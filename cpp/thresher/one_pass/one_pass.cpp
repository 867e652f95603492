// Registers the rule one-pass; one_pass/bank.hpp has its formulas.
#include "thresher/core/learner.hpp"
#include "thresher/core/registry.hpp"
#include "thresher/one_pass/learner.hpp"

namespace thresher {
namespace one_pass {

// One output as a learner.
template <class Real>
class OnePassLearner final : public Learner, public Widenable {
 public:
  OnePassLearner(bool hashed, std::uint64_t width, const Params& params)
      : lanes_(hashed, width, {{params, 0, -1}}, "auto") {}

  std::int64_t learn(const Batch& batch, const Visit& visit) override {
    try {
      lanes_.learn(batch, visit, {}, nullptr);
    } catch (...) {  // rows before a bad one are learned
      tally_ = lanes_.tally(0);
      throw;
    }
    tally_ = lanes_.tally(0);
    return visit.last - visit.first;
  }
  void next_pass() override { lanes_.next_pass(); }
  void widen(std::uint64_t width) override { lanes_.widen(width); }

  void predict(const Batch& batch, const Visit& visit, bool average, double* out) const override {
    const std::int64_t only = 0;
    lanes_.predict(batch, visit, {&only, 1}, average, out);
  }
  void predict_uncut(const Batch& batch, const Visit& visit, bool average,
                     double* out) const override {
    const std::int64_t only = 0;
    lanes_.predict_uncut(batch, visit, {&only, 1}, average, out);
  }
  SparseWeights weights(bool average) const override { return lanes_.weights(0, average); }
  std::int64_t nonzeros(bool average) const override { return lanes_.nonzeros(average)[0]; }
  double intercept(bool average) const override { return lanes_.intercept(0, average); }
  const Tally& tally() const override { return tally_; }
  double rate() const override { return lanes_.rate(0); }
  std::size_t bytes() const override { return lanes_.bytes(); }
  std::map<std::string, double> facts() const override { return lanes_.facts(); }

  std::vector<std::byte> state() const override { return lanes_.state(); }
  void restore(std::span<const std::byte> state) override {
    lanes_.restore(state);
    tally_ = lanes_.tally(0);
  }

 private:
  OnePassLanes<Real> lanes_;
  Tally tally_;
};

template <class Real>
std::unique_ptr<Learner> make(const std::string& store, std::uint64_t width, const Params& params) {
  if (store != "dense" && store != "hashed")
    throw std::invalid_argument("unknown store '" + store + "'");
  return std::make_unique<OnePassLearner<Real>>(store == "hashed", width, params);
}

template <class Real>
std::unique_ptr<Lanes> make_outputs(bool hashed, std::uint64_t width,
                                    const std::vector<LaneSpec>& specs, const std::string& level) {
  return std::make_unique<OnePassLanes<Real>>(hashed, width, specs, level);
}

}  // namespace one_pass

const Registration registered_one_pass({"one_pass",
                                        one_pass::make<float>,
                                        one_pass::make<double>,
                                        nullptr,
                                        {one_pass::make_outputs<float>,
                                         one_pass::make_outputs<double>}});

}  // namespace thresher
