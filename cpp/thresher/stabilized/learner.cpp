#include "thresher/stabilized/learner.hpp"

#include <stdexcept>

#include "thresher/core/archive.hpp"
#include "thresher/stabilized/paper/stabilized.hpp"
#include "thresher/stabilized/robust/robust.hpp"

namespace thresher {
namespace {

template <class Rule>
class VariantLearner final : public StabilizedLearner {
 public:
  VariantLearner(std::uint64_t width, const Params& params)
      : width_(width), params_(params), rule_(width, loss_of(params), params) {}

  void learn(const Batch& batch, std::int64_t passes, double tol, std::size_t jobs,
             const Callbacks& callbacks, std::span<const std::byte> resume) override {
    const auto learn_with = [&](Rule& rule) {
      rule.learn(batch, passes, tol, jobs, callbacks.go_on, !resume.empty(),
                 [&] { callbacks.between_stages([&] { return saved(rule, true); }); });
    };
    // An error leaves the learner unchanged. A rule that has learned nothing is simply made again:
    // copying the weights of all paths would be expensive.
    if (rule_.is_new()) {
      try {
        if (!resume.empty()) take(rule_, resume, true);
        learn_with(rule_);
      } catch (...) {
        rule_ = Rule(width_, loss_of(params_), params_);
        throw;
      }
      return;
    }
    if (!resume.empty())
      throw std::invalid_argument("only a learner that has learned nothing can be resumed");
    Rule rule = rule_;
    learn_with(rule);
    rule_ = std::move(rule);
  }

  SparseWeights weights() const override {
    SparseWeights found;
    const std::vector<double> w = rule_.mean();
    for (std::uint64_t j = 0; j < w.size(); ++j)
      if (w[j] != 0.0) found.keys.push_back(j), found.values.push_back(w[j]);
    return found;
  }
  double intercept() const override { return rule_.intercept(); }
  Findings findings() const override { return rule_.findings(); }
  bool has_signal() const override {
    if constexpr (requires { rule_.has_signal(); }) return rule_.has_signal();
    else return true;
  }

  State state() const override {
    return saved(const_cast<Rule&>(rule_), false);  // a Saver only reads
  }

  void restore(std::span<const std::byte> state) override {
    Rule rule = rule_;
    take(rule, state, false);
    rule_ = std::move(rule);
  }

 private:
  // The state of a rule, between two stages of a call or after it. The name of the rule's class is
  // part of it (signature_of).
  static State saved(Rule& rule, bool in_call) {
    Saver save;
    save(signature_of<Rule>());
    rule.archive(save);
    if (in_call) rule.archive_call(save);
    return save.take();
  }
  static void take(Rule& rule, std::span<const std::byte> state, bool in_call) {
    Restorer restore(state);
    std::uint64_t signature = 0;
    restore(signature);
    if (signature != signature_of<Rule>())
      throw std::invalid_argument("the state is of a learner of another rule or number type");
    rule.archive(restore);
    if (in_call) rule.archive_call(restore);
    if (!restore.finished()) throw std::invalid_argument("the learner state has bytes left over");
  }

  static Loss loss_of(const Params& params) {
    return Loss(params.word("loss"), params.number("epsilon"), params.number("quantile"));
  }

  std::uint64_t width_;
  Params params_;
  Rule rule_;
};

template <class Real>
std::unique_ptr<StabilizedLearner> with_dtype(const std::string& variant, std::uint64_t width,
                                              const Params& params) {
  if (variant == "paper") return std::make_unique<VariantLearner<Stabilized<Real>>>(width, params);
  if (variant == "robust") return std::make_unique<VariantLearner<Robust<Real>>>(width, params);
  throw std::invalid_argument("unknown variant '" + variant + "'");
}

}  // namespace

std::unique_ptr<StabilizedLearner> make_stabilized(const std::string& variant,
                                                   const std::string& dtype, std::uint64_t width,
                                                   const Params& params) {
  if (dtype == "float32") return with_dtype<float>(variant, width, params);
  if (dtype == "float64") return with_dtype<double>(variant, width, params);
  throw std::invalid_argument("unknown dtype '" + dtype + "'");
}

}  // namespace thresher
