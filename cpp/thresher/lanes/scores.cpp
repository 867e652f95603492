#include "thresher/lanes/scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "thresher/lanes/kernels.hpp"

namespace thresher {
namespace {

constexpr std::int64_t some_rows = 512;     // predicted at once
constexpr std::int64_t rows_of_a_log = 16;  // a probability is at least 2^-52: no underflow

enum class Kind { hits, log_losses, squares, absolutes };

Kind kind_of(const std::string& name) {
  if (name == "hits") return Kind::hits;
  if (name == "log losses") return Kind::log_losses;
  if (name == "squares") return Kind::squares;
  if (name == "absolutes") return Kind::absolutes;
  throw std::invalid_argument("unknown score '" + name + "'");
}

// The sums of one call, a few rows at a time.
class Sums {
 public:
  Sums(std::size_t models, const RowScore& score)
      : score_(score),
        kind_(kind_of(score.kind)),
        likelihoods_(lanes::kernels<double>("auto").losses.likelihoods),
        models_(models),
        padded_((models + lanes::widest - 1) / lanes::widest * lanes::widest),
        sum_(padded_),
        product_(padded_, 1.0),
        mark_(padded_),
        row_(padded_) {}

  void add(const double* predictions, std::int64_t first, std::int64_t rows) {
    const std::size_t columns = models_ * score_.outputs;
    for (std::int64_t r = 0; r < rows; ++r, predictions += columns) {
      add_row(predictions, score_.truth[first + r]);
      if (kind_ == Kind::log_losses && (r + 1 == rows || (r + 1) % rows_of_a_log == 0))
        for (std::size_t i = 0; i < models_; ++i)
          sum_[i] -= std::log(product_[i]), product_[i] = 1.0;
    }
  }

  void write(double* sums) const {
    for (std::size_t i = 0; i < models_; ++i)
      sums[i] = mark_[i] == 0.0 ? sum_[i] : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  void add_row(const double* p, double truth) {
    if (kind_ == Kind::log_losses) {
      std::copy_n(p, models_, row_.data());  // the kernel reads up to a multiple of 16
      likelihoods_(row_.data(), padded_, truth > 0.0, product_.data(), mark_.data());
      return;
    }
    for (std::size_t i = 0; i < models_ * score_.outputs; ++i)
      mark_[i / score_.outputs] += p[i] * 0.0;
    if (score_.outputs > 1) {
      const auto wanted = static_cast<std::ptrdiff_t>(truth);
      for (std::size_t i = 0; i < models_; ++i, p += score_.outputs)
        sum_[i] += std::max_element(p, p + score_.outputs) - p == wanted;
    } else if (kind_ == Kind::hits) {
      const bool one = truth > 0.0;
      for (std::size_t i = 0; i < models_; ++i) sum_[i] += (p[i] - score_.middle >= 0.0) == one;
    } else if (kind_ == Kind::squares) {
      for (std::size_t i = 0; i < models_; ++i) sum_[i] += (p[i] - truth) * (p[i] - truth);
    } else {
      for (std::size_t i = 0; i < models_; ++i) sum_[i] += std::fabs(p[i] - truth);
    }
  }

  const RowScore& score_;
  Kind kind_;
  decltype(lanes::LossKernels::likelihoods) likelihoods_;
  std::size_t models_, padded_;
  std::vector<double> sum_, product_, mark_, row_;
};

}  // namespace

void score_lanes(const Lanes& from, const Batch& batch, const Visit& visit,
                 std::span<const std::int64_t> lanes, bool average, const RowScore& score,
                 double* sums) {
  if (score.outputs == 0 || lanes.size() % score.outputs != 0 ||
      (score.outputs > 1 && score.kind != "hits"))
    throw std::invalid_argument("this score needs one lane for each model");
  Sums found(lanes.size() / score.outputs, score);
  std::vector<double> predictions(lanes.size() * some_rows);
  for (Visit chunk = visit; chunk.first < visit.last; chunk.first = chunk.last) {
    chunk.last = std::min(visit.last, chunk.first + some_rows);
    from.predict(batch, chunk, lanes, average, predictions.data());
    found.add(predictions.data(), chunk.first - visit.first, chunk.last - chunk.first);
  }
  found.write(sums);
}

}  // namespace thresher
