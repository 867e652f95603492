// Targets, losses and tallies of a group of lanes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "thresher/core/tally.hpp"
#include "thresher/lanes/group.hpp"
#include "thresher/lanes/lanes.hpp"
#include "thresher/loss/losses.hpp"

namespace thresher::lanes {

class LaneLosses {
 public:
  LaneLosses(const Slots& slots, const std::vector<LaneSpec>& specs,
             const std::vector<std::size_t>& lanes, const LossKernels& kernels)
      : kernels_(kernels), logistic_(specs[lanes[0]].params.word("loss") == "logistic") {
    for (auto* numbers : {&dot, &p, &g, &reach, &y_, &value_, &slope_, &sum_, &alive_})
      numbers->assign(slots.padded(), 0.0);
    factor_.assign(slots.padded(), 1.0), product_ = factor_;
    stopped_.assign(slots.padded(), Common{});
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const Params& params = specs[lanes[i]].params;
      const std::size_t slot = slots.slot(i);
      used_.push_back(slot), alive_[slot] = 1.0;
      of.emplace_back(params.word("loss"), params.number("epsilon"), params.number("quantile"));
      if (specs[lanes[i]].target >= 0) of_class_[specs[lanes[i]].target].push_back(slot);
    }
  }

  std::vector<Loss> of;           // the loss of each lane
  std::vector<double> dot, p, g;  // per slot: inner product, prediction, weighted slope
  std::vector<double> reach;      // per slot, for steps of weight > 1

  // Sets the targets of all lanes for a row.
  void tell(const Batch& batch, std::int64_t row, std::int64_t clock, const Told& told) {
    if (of_class_.empty()) {
      std::fill(y_.begin(), y_.end(), told.label(batch, row, clock, -1));
      return;
    }
    std::fill(y_.begin(), y_.end(), told.low);
    for (std::int64_t i = told.starts[row]; i < told.starts[row + 1]; ++i)
      if (const auto found = of_class_.find(told.classes[i]); found != of_class_.end())
        for (const std::size_t slot : found->second) y_[slot] = 1.0;
  }

  // Computes losses and slopes at p; both are 0 for a lane that stopped. A step fits if |g| rate is
  // below the bound. A step of weight > 1 uses `reach`.
  Weighed take(double weight, const double* rates, double bound) {
    if (logistic_ && weight <= 1.0) return kernels_.logistic(row(), weight, rates, bound);
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const std::size_t s = used_[i];
      const Outcome outcome = of[i](p[s], y_[s]);
      value_[s] = outcome.value, slope_[s] = outcome.slope, factor_[s] = outcome.factor;
      if (weight > 1.0) slope_[s] = of[i].long_slope(p[s], y_[s], weight, reach[s]) / weight;
    }
    return kernels_.given(row(), weight, rates, bound);
  }

  // A row of several steps: its loss is that before the first step.
  void keep_first() { first_value_ = value_, first_factor_ = factor_; }
  void back_to_first() {
    for (const std::size_t s : used_)
      if (alive_[s] != 0.0) value_[s] = first_value_[s], factor_[s] = first_factor_[s];
  }

  // Adds the row to the tallies; `unit` is that of the values.
  void add(double weight, double unit) {
    common_.rows += 1, common_.weight += weight;
    if (unit != 1.0)
      for (double& value : value_) value *= unit;
    if (weight == 1.0) {
      if (kernels_.add(row(), sum_.data(), product_.data()) > 1e300) [[unlikely]]
        for (std::size_t s = 0; s < sum_.size(); ++s)
          sum_[s] += std::log(product_[s]), product_[s] = 1.0;
    } else {
      for (std::size_t s = 0; s < sum_.size(); ++s)
        sum_[s] += weight * (value_[s] + std::log(factor_[s]));
    }
  }

  void stop(std::size_t slot) {
    sum_[slot] += std::log(product_[slot]), product_[slot] = 1.0;
    stopped_[slot] = common_;
    alive_[slot] = g[slot] = value_[slot] = 0.0, factor_[slot] = 1.0;
  }

  Tally tally(std::size_t slot) const {
    const bool alive = alive_[slot] != 0.0;
    const Common& common = alive ? common_ : stopped_[slot];
    return {common.rows, common.weight, sum_[slot], alive ? product_[slot] : 1.0};
  }

  template <class Archive>
  void archive(Archive& io) {
    io(common_), io(sum_), io(product_), io(alive_), io(stopped_);
    for (const std::size_t size : {sum_.size(), product_.size(), alive_.size(), stopped_.size()})
      if (size != p.size()) throw std::invalid_argument("the state of the lanes is damaged");
  }

 private:
  struct Common {
    std::int64_t rows = 0;
    double weight = 0.0;
  };

  LossesOfRow row() {
    return {p.size(),      p.data(),      y_.data(),      alive_.data(),
            value_.data(), slope_.data(), factor_.data(), g.data()};
  }

  LossKernels kernels_;
  bool logistic_;
  std::vector<std::size_t> used_;  // slots of the lanes
  std::unordered_map<std::int64_t, std::vector<std::size_t>> of_class_;
  std::vector<double> y_, value_, slope_, factor_, sum_, product_, alive_;
  std::vector<double> first_value_, first_factor_;
  Common common_;
  std::vector<Common> stopped_;  // the totals when a lane stopped
};

// Saves or restores messages by slot.
template <class Archive>
void archive_messages(Archive& io, std::size_t count,
                      std::map<std::size_t, std::string>& messages) {
  std::vector<std::uint64_t> slots;
  std::vector<char> text;
  for (const auto& [slot, message] : messages) {
    slots.push_back(slot), slots.push_back(message.size());
    text.insert(text.end(), message.begin(), message.end());
  }
  io(slots), io(text);
  messages.clear();
  std::size_t from = 0;
  for (std::size_t i = 0; i + 1 < slots.size(); i += 2) {
    const auto length = static_cast<std::size_t>(slots[i + 1]);
    if (length > text.size() - from || slots[i] >= count)
      throw std::invalid_argument("the state of the lanes is damaged");
    messages[slots[i]] = std::string(text.data() + from, length);
    from += length;
  }
}

}  // namespace thresher::lanes
