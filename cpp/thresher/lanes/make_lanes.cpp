// Decides which lanes share lines and which are separate.
#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "thresher/core/registry.hpp"
#include "thresher/lanes/group.hpp"
#include "thresher/lanes/lanes.hpp"
#include "thresher/lanes/line_lanes.hpp"
#include "thresher/lanes/separate.hpp"

namespace thresher {
namespace {

using lanes::LineLanes;

// Lanes in several parts: lanes in lines, separate lanes, and lanes that were added later.
class LaneSet final : public GrowingLanes {
 public:
  LaneSet(std::string rule, std::string store, std::string dtype, std::uint64_t width,
          std::string level, std::vector<LaneSpec> specs)
      : rule_(std::move(rule)),
        lines_(registered_rule(rule_).lines),
        together_(registered_rule(rule_).together),
        store_(std::move(store)),
        dtype_(std::move(dtype)),
        width_(width),
        level_(std::move(level)) {
    add(std::move(specs));
  }

  std::size_t count() const override { return where_.size(); }

  // Learns a few rows at a time, so that they are still in the cache for the next part.
  void learn(const Batch& batch, const Visit& visit, const Told& told, double* before) override {
    if ((told.seen || told.labels) && told.clocks < clocks_)
      throw std::invalid_argument("seen and scaled need a column for each clock");
    if ((classes_ && !told.starts) || (labels_ && !batch.labels))
      throw std::invalid_argument(
          "learning needs labels, or classes if a lane's target is a class");
    const std::int64_t some = parts_.size() > 1 ? 256 : visit.last - visit.first;
    for (Visit chunk = visit; chunk.first < visit.last; chunk.first = chunk.last) {
      chunk.last = std::min(visit.last, chunk.first + some);
      learn_some(batch, chunk, told,
                 before ? before + static_cast<std::size_t>(chunk.first - visit.first) * count()
                        : nullptr);
    }
  }

  void next_pass() override {
    for (const Part& part : parts_) part.made->next_pass();
  }
  void widen(std::uint64_t width) override {
    for (const Part& part : parts_) part.made->widen(width);
    width_ = store_ == "hashed" && (width == 0 || width_ == 0) ? 0 : std::max(width_, width);
  }

  void predict(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
               bool average, double* out) const override {
    predict_with(&Lanes::predict, batch, visit, lanes, average, out);
  }
  void predict_uncut(const Batch& batch, const Visit& visit, std::span<const std::int64_t> lanes,
                     bool average, double* out) const override {
    predict_with(&Lanes::predict_uncut, batch, visit, lanes, average, out);
  }
  SparseWeights weights(std::size_t lane, bool average) const override {
    return made(lane).weights(where_[lane].lane, average);
  }
  std::vector<std::int64_t> nonzeros(bool average) const override {
    std::vector<std::int64_t> found(count());
    for (const Part& part : parts_) {
      const auto own = part.made->nonzeros(average);
      for (std::size_t i = 0; i < own.size(); ++i) found[part.lanes[i]] = own[i];
    }
    return found;
  }
  double intercept(std::size_t lane, bool average) const override {
    return made(lane).intercept(where_[lane].lane, average);
  }
  Tally tally(std::size_t lane) const override { return made(lane).tally(where_[lane].lane); }
  double rate(std::size_t lane) const override { return made(lane).rate(where_[lane].lane); }
  std::string divergence(std::size_t lane) const override {
    return made(lane).divergence(where_[lane].lane);
  }
  std::size_t bytes() const override {
    return std::accumulate(
        parts_.begin(), parts_.end(), std::size_t{0},
        [](std::size_t sum, const Part& part) { return sum + part.made->bytes(); });
  }
  std::string layout(std::size_t lane) const override {
    return made(lane).layout(where_[lane].lane);
  }

  std::vector<std::byte> state() const override {
    Saver save;
    for (const Part& part : parts_) save(part.made->state());
    return save.take();
  }
  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::vector<std::vector<std::byte>> states(parts_.size());
    for (auto& own : states) restore(own);
    if (!restore.finished())
      throw std::invalid_argument("the state of the lanes has bytes left over");
    LaneSet fresh(*this);  // if a part throws, nothing changes
    for (std::size_t i = 0; i < parts_.size(); ++i) fresh.parts_[i].made->restore(states[i]);
    parts_ = std::move(fresh.parts_);
  }

  // In a dense store each group of lanes has its own store, and a large group has several: a store
  // that fits into a cache is faster than one with the lines of all lanes. In a hashed store all
  // groups share the lookup.
  void add(std::vector<LaneSpec> specs) override {
    std::map<std::string, std::vector<std::size_t>> groups;
    std::vector<std::vector<std::size_t>> together;  // equal parameters and clock
    std::vector<std::size_t> alone;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].clock < 0) throw std::invalid_argument("a clock must be 0 or more");
      if (lines_ && lines_->joins(specs[i].params))
        groups[store_ == "hashed" ? "" : lanes::common(*lines_, specs[i])].push_back(i);
      else if (together_.float32) join(specs, i, together);
      else alone.push_back(i);
    }
    const std::size_t first = count();
    std::vector<Part> parts;
    std::vector<Where> where(specs.size());
    const auto take = [&](const std::vector<std::size_t>& numbers, Layout layout) {
      Part part;
      for (const std::size_t i : numbers) {
        where[i] = {parts_.size() + parts.size(), part.lanes.size()};
        part.lanes.push_back(first + i), part.specs.push_back(specs[i]);
      }
      part.layout = layout;
      part.made = make(part.specs, layout);
      parts.push_back(std::move(part));
    };
    for (const auto& [key, numbers] : groups) {
      const std::size_t most = store_ == "hashed" ? specs.size() : lines_->lanes_per_part;
      for (std::size_t from = 0; from < numbers.size(); from += most)
        take({numbers.begin() + static_cast<std::ptrdiff_t>(from),
              numbers.begin() + static_cast<std::ptrdiff_t>(std::min(from + most, numbers.size()))},
             Layout::lines);
    }
    for (const auto& numbers : together) {
      const std::size_t most = store_ == "hashed" ? specs.size() : outputs_per_part;
      for (std::size_t from = 0; from < numbers.size(); from += most)
        take({numbers.begin() + static_cast<std::ptrdiff_t>(from),
              numbers.begin() + static_cast<std::ptrdiff_t>(std::min(from + most, numbers.size()))},
             Layout::together);
    }
    if (!alone.empty()) take(alone, Layout::alone);
    // Nothing below throws, so all lanes are added or none.
    parts_.reserve(parts_.size() + parts.size());
    where_.reserve(where_.size() + where.size());
    for (Part& part : parts) parts_.push_back(std::move(part));
    where_.insert(where_.end(), where.begin(), where.end());
    for (const LaneSpec& spec : specs) {
      clocks_ = std::max(clocks_, spec.clock + 1);
      (spec.target < 0 ? labels_ : classes_) = true;
    }
  }

 private:
  enum class Layout { lines, together, alone };
  static constexpr std::size_t outputs_per_part = 16;  // of Layout::together: a store fits a cache

  struct Part {
    std::vector<std::size_t> lanes;  // their numbers in this set
    std::vector<LaneSpec> specs;
    Layout layout = Layout::alone;
    std::unique_ptr<Lanes> made;
  };
  struct Where {
    std::size_t part = 0, lane = 0;
  };

  // Makes a set with the same parts, which have learned nothing.
  LaneSet(const LaneSet& other)
      : rule_(other.rule_),
        lines_(other.lines_),
        together_(other.together_),
        store_(other.store_),
        dtype_(other.dtype_),
        width_(other.width_),
        level_(other.level_) {
    for (const Part& part : other.parts_)
      parts_.push_back({part.lanes, part.specs, part.layout, make(part.specs, part.layout)});
  }

  // Calls Lanes::predict or Lanes::predict_uncut of each part.
  template <class Predict>
  void predict_with(Predict how, const Batch& batch, const Visit& visit,
                    std::span<const std::int64_t> lanes, bool average, double* out) const {
    const auto rows = static_cast<std::size_t>(visit.last - visit.first);
    std::vector<double> own;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      std::vector<std::int64_t> wanted;
      std::vector<std::size_t> columns;
      for (std::size_t k = 0; k < lanes.size(); ++k) {
        const Where& at = where_[static_cast<std::size_t>(lanes[k])];
        if (at.part != i) continue;
        wanted.push_back(static_cast<std::int64_t>(at.lane)), columns.push_back(k);
      }
      if (wanted.empty()) continue;
      if (wanted.size() == lanes.size()) {
        (*parts_[i].made.*how)(batch, visit, wanted, average, out);
        return;
      }
      own.resize(rows * wanted.size());
      (*parts_[i].made.*how)(batch, visit, wanted, average, own.data());
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t k = 0; k < columns.size(); ++k)
          out[r * lanes.size() + columns[k]] = own[r * columns.size() + k];
    }
  }

  void learn_some(const Batch& batch, const Visit& visit, const Told& told, double* before) {
    Visit rest = visit;
    std::exception_ptr error;
    std::vector<double> own;
    for (const Part& part : parts_) {
      const std::size_t n = part.lanes.size();
      const auto rows = static_cast<std::size_t>(visit.last - visit.first);
      if (before) own.resize(rows * n);
      try {
        part.made->learn(batch, rest, told, before ? own.data() : nullptr);
      } catch (const DataError& bad) {  // the other parts stop at the same row
        error = std::current_exception();
        for (std::int64_t p = rest.first; p < rest.last; ++p)
          if (visit.row(p) == bad.row) rest.last = p;
      }
      if (before)
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t i = 0; i < n; ++i) before[r * count() + part.lanes[i]] = own[r * n + i];
    }
    if (error) std::rethrow_exception(error);
  }

  const Lanes& made(std::size_t lane) const { return *parts_[where_[lane].part].made; }

  // Adds lane i to the lanes with the same parameters and clock.
  static void join(const std::vector<LaneSpec>& specs, std::size_t i,
                   std::vector<std::vector<std::size_t>>& together) {
    for (auto& numbers : together)
      if (specs[numbers[0]].clock == specs[i].clock && specs[numbers[0]].params == specs[i].params)
        return numbers.push_back(i);
    together.push_back({i});
  }

  std::unique_ptr<Lanes> make(const std::vector<LaneSpec>& specs, Layout layout) const {
    if (layout == Layout::alone) return on_their_own(specs);
    if (layout == Layout::lines) return in_lines(specs);
    const auto made = dtype_ == "float32" ? together_.float32 : together_.float64;
    return made(store_ == "hashed", width_, specs, level_);
  }
  std::unique_ptr<Lanes> in_lines(const std::vector<LaneSpec>& specs) const {
    const bool hashed = store_ == "hashed";
    if (dtype_ == "float32")
      return std::make_unique<LineLanes<float>>(*lines_, hashed, width_, specs, level_);
    return std::make_unique<LineLanes<double>>(*lines_, hashed, width_, specs, level_);
  }
  std::unique_ptr<Lanes> on_their_own(const std::vector<LaneSpec>& specs) const {
    std::vector<std::unique_ptr<Learner>> learners;
    for (const LaneSpec& spec : specs)
      learners.push_back(make_learner(rule_, store_, dtype_, width_, spec.params));
    return std::make_unique<SeparateLanes>(std::move(learners), specs, width_, dtype_ == "float32");
  }

  std::string rule_;
  const lanes::LineRule* lines_;       // how lanes of the rule share lines; null: they do not
  RegisteredRule::Together together_;  // makes lanes with equal parameters
  std::string store_, dtype_;
  std::uint64_t width_;
  std::string level_;
  std::vector<Part> parts_;
  std::vector<Where> where_;               // the part of each lane, and its number there
  std::int64_t clocks_ = 0;                // number of clocks
  bool labels_ = false, classes_ = false;  // whether targets are labels, classes, or both
};

}  // namespace

std::unique_ptr<GrowingLanes> make_lanes(const std::string& rule, const std::string& store,
                                         const std::string& dtype, std::uint64_t width,
                                         std::vector<LaneSpec> specs, const std::string& level) {
  if (store != "dense" && store != "hashed")
    throw std::invalid_argument("unknown store '" + store + "'");
  if (dtype != "float32" && dtype != "float64")
    throw std::invalid_argument("unknown dtype '" + dtype + "'");
  lanes::kernels<float>(level);  // throws for an unknown level
  return std::make_unique<LaneSet>(rule, store, dtype, width, level, std::move(specs));
}

}  // namespace thresher
