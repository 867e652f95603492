#include "thresher/stabilized/paper/part.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "thresher/core/archive.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/core/threads.hpp"
#include "thresher/loss/loss.hpp"
#include "thresher/stores/pages.hpp"

namespace thresher {
namespace {

// A copy of rows: values of repeated keys are added, zeros removed, numbers in the learner's type.
template <class Real>
class HeldRows {
 public:
  explicit HeldRows(std::uint64_t width) : width_(width) {
    keys_.reserve(1);  // a null pointer would mean a dense array
  }

  std::int64_t count() const { return static_cast<std::int64_t>(labels_.size()); }

  void add(const Batch& batch) {
    if (batch.weights && weights_.empty()) weights_.assign(labels_.size(), 1.0);
    Rows<Real> rows(batch, Visit{nullptr, 0, batch.rows}, width_);
    while (rows.next()) {
      const Real* x = rows.values();
      rows.with_keys([&](const auto* keys) {
        for (std::size_t k = 0; k < rows.count(); ++k)
          if (x[k] != 0)
            keys_.push_back(static_cast<std::int32_t>(keys[k])), values_.push_back(x[k]);
      });
      starts_.push_back(static_cast<std::int64_t>(values_.size()));
      labels_.push_back(rows.label());
      if (batch.weights || !weights_.empty()) weights_.push_back(rows.weight());
    }
  }

  // Valid until more rows are added.
  Batch batch() const {
    Batch batch;
    batch.rows = count();
    batch.columns = static_cast<std::int64_t>(width_);
    batch.starts = starts_.data();
    batch.keys = keys_.data();
    batch.values = values_.data();
    batch.labels = labels_.data();
    batch.weights = weights_.empty() ? nullptr : weights_.data();
    batch.distinct = true;
    return batch;
  }

  FeatureCounts documents() const {
    ZeroedArray<std::uint32_t> rows(width_);
    for (const std::int32_t key : keys_) ++rows[static_cast<std::uint64_t>(key)];
    FeatureCounts found{{}, std::vector<std::vector<std::uint32_t>>(1)};
    for (std::uint64_t j = 0; j < width_; ++j)
      if (rows[j] > 0)
        found.keys.push_back(static_cast<std::uint32_t>(j)), found.columns[0].push_back(rows[j]);
    return found;
  }

 private:
  std::uint64_t width_;
  std::vector<std::int64_t> starts_{0};
  std::vector<std::int32_t> keys_;
  std::vector<Real> values_;
  std::vector<double> labels_, weights_;
};

// Counts of a stage, summed over the paths. Groups of 64 features belong to one worker, as in
// CountLists; a word of bits for each group says which features were seen.
class StageCounts {
 public:
  explicit StageCounts(std::uint64_t width) : totals_(width), seen_((width + 63) / 64) {}

  void fetch(std::uint64_t j) const { __builtin_prefetch(totals_.data() + j, 1); }

  [[gnu::always_inline]] void add(std::uint64_t j, std::uint32_t b, std::uint32_t kb,
                                  std::uint32_t k) {
    Totals& sum = totals_[j];
    sum.b += b, sum.kb += kb, sum.k += k;
    seen_[j / 64] |= std::uint64_t{1} << j % 64;
  }

  // Returns all counts and resets them.
  FeatureCounts take() {
    std::size_t count = 0;
    for (const std::uint64_t word : seen_) count += static_cast<std::size_t>(std::popcount(word));
    FeatureCounts found{std::vector<std::uint32_t>(count), {3, std::vector<std::uint32_t>(count)}};
    std::size_t n = 0;
    for (std::size_t group = 0; group < seen_.size(); ++group) {
      for (std::uint64_t word = seen_[group]; word != 0; word &= word - 1, ++n) {
        const std::uint64_t j = 64 * group + static_cast<std::size_t>(std::countr_zero(word));
        Totals& sum = totals_[j];
        found.keys[n] = static_cast<std::uint32_t>(j);
        found.columns[0][n] = sum.b, found.columns[1][n] = sum.kb, found.columns[2][n] = sum.k;
        sum = {};
      }
      seen_[group] = 0;
    }
    return found;
  }

 private:
  struct Totals {
    std::uint32_t b, kb, k;
  };
  ZeroedArray<Totals> totals_;
  std::vector<std::uint64_t> seen_;
};

template <class Real>
class PathsOfPart final : public PaperPart {
 public:
  PathsOfPart(std::uint64_t width, std::size_t first, std::size_t count, std::size_t threads,
              const Params& params)
      : paths_(width,
               Loss(params.word("loss"), params.number("epsilon"), params.number("quantile")),
               params, first, count),
        rule_(params),
        rows_(width),
        counts_(width),
        team_(std::min(std::max<std::size_t>(threads, 1), std::max<std::size_t>(count, 1))) {}

  void add(const Batch& batch) override {
    if (work_) throw std::invalid_argument("add rows before the first stage");
    if (!batch.labels) throw std::invalid_argument("learning needs labels");
    paths_.check(batch, 0, batch.rows, [](std::uint64_t) {});
    rows_.add(batch);
  }
  std::int64_t rows() const override { return rows_.count(); }
  FeatureCounts documents() const override { return rows_.documents(); }

  PartStage stage(const StagePlan& plan, double low, double high, std::size_t most) override {
    begin();
    work_->run(team_, plan, static_cast<Real>(low), static_cast<Real>(high));
    team_.together([this](std::size_t w) {
      work_->each_count(
          w, [this](std::uint64_t j) { counts_.fetch(j); },
          [this](std::uint64_t j, std::uint32_t b, std::uint32_t kb, std::uint32_t k)
              __attribute__((always_inline)) { counts_.add(j, b, kb, k); },
          false, [](std::uint64_t) {});
    });
    taken_ += plan.K * rule_.n_K;
    PartStage report;
    for (const Walk<Real>& walk : work_->walks())
      report.loss_sum += walk.tally().loss(), report.weight_sum += walk.tally().weight();
    for (std::size_t w = 0; w < team_.size(); ++w) {
      const Ratios<Real>& ratios = work_->ratios(w);
      report.ratios += static_cast<std::int64_t>(ratios.size);
      report.below += static_cast<std::int64_t>(ratios.below);
      report.within += static_cast<std::int64_t>(ratios.n_within);
    }
    if (report.within <= static_cast<std::int64_t>(most)) report.values = values_within();
    return report;
  }

  FeatureCounts counts() override { return counts_.take(); }

  std::vector<std::int64_t> histogram(std::uint64_t first, int shift) override {
    begin();
    const auto bits = checked(first, shift);
    team_.together([&](std::size_t w) { work_->ratios(w).count_bins(bits, shift); });
    std::vector<std::int64_t> sum(Ratios<Real>::bins);
    for (std::size_t w = 0; w < team_.size(); ++w)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += work_->ratios(w).histogram[i];
    return sum;
  }
  std::vector<double> values(std::uint64_t first, int shift) override {
    begin();
    const auto bits = checked(first, shift);
    team_.together([&](std::size_t w) { work_->ratios(w).take_bin(0, bits, shift); });
    return values_within();
  }

  void freeze(std::span<const std::uint32_t> keys) override {
    for (const std::uint32_t j : keys)
      if (j >= paths_.width()) throw std::invalid_argument("a feature is not below the width");
    team_.each(paths_.count(), [&](std::size_t m, std::size_t) {
      for (const std::uint32_t j : keys) paths_.freeze(m, j);
    });
  }

  void sums(std::vector<std::uint32_t>& keys, std::vector<double>& values) const override {
    constexpr std::uint64_t block = 4096;
    for (std::uint64_t from = 0; from < paths_.width(); from += block) {
      const std::vector<double> sum = paths_.sum(from, std::min(from + block, paths_.width()));
      for (std::size_t i = 0; i < sum.size(); ++i)
        if (sum[i] != 0.0)
          keys.push_back(static_cast<std::uint32_t>(from + i)), values.push_back(sum[i]);
    }
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature_of<PathsOfPart>());
    save(taken_);
    std::vector<Tally> tallies(paths_.count());
    if (work_)
      for (std::size_t m = 0; m < tallies.size(); ++m) tallies[m] = work_->walks()[m].tally();
    save(tallies);
    std::vector<std::uint32_t> keys;
    for (std::uint64_t j = 0; j < paths_.width(); ++j)  // the same in all paths
      if (paths_.is_frozen(0, j)) keys.push_back(static_cast<std::uint32_t>(j));
    save(keys);
    for (std::size_t m = 0; m < paths_.count(); ++m) save_weights(save, m);
    return save.take();
  }

  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0;
    restore(saved);
    if (saved != signature_of<PathsOfPart>())
      throw std::invalid_argument("the state is of a part of another number type");
    std::int64_t taken = 0;
    std::vector<Tally> tallies;
    std::vector<std::uint32_t> frozen;
    restore(taken), restore(tallies), restore(frozen);
    if (taken < 0 || tallies.size() != paths_.count()) throw damaged();
    std::vector<Weights> weights;
    for (std::size_t m = 0; m < paths_.count(); ++m) weights.push_back(restored_weights(restore));
    if (!restore.finished()) throw damaged();
    for (const std::uint32_t j : frozen)
      if (j >= paths_.width()) throw damaged();
    begin();  // from here on nothing throws
    for (std::size_t m = 0; m < paths_.count(); ++m) put(weights[m], m);
    freeze(frozen);
    taken_ = taken;
    for (std::size_t m = 0; m < paths_.count(); ++m) work_->walk(m).resume(taken_, tallies[m]);
  }

 private:
  using Bits = typename Ratios<Real>::Bits;
  using Weights = std::pair<std::vector<std::uint32_t>, std::vector<Real>>;

  // Call it after the last row.
  void begin() {
    if (work_) return;
    if (rows_.count() == 0) throw std::invalid_argument("a part needs rows");
    batch_ = rows_.batch();
    work_.emplace(batch_, paths_, rule_, team_.size(), false);
  }

  static Bits checked(std::uint64_t first, int shift) {
    if (first >> (8 * sizeof(Real) - 1) || shift < 0 || shift > Ratios<Real>::widest)
      throw std::invalid_argument("first and shift must be within the bits of the number type");
    return static_cast<Bits>(first);
  }

  std::vector<double> values_within() {
    std::vector<double> found;
    for (std::size_t w = 0; w < team_.size(); ++w) {
      const Ratios<Real>& ratios = work_->ratios(w);
      found.insert(found.end(), ratios.within.begin(),
                   ratios.within.begin() + static_cast<std::ptrdiff_t>(ratios.n_within));
    }
    return found;
  }

  // Saves the nonzero weights with their features, or all weights, whichever is smaller.
  void save_weights(Saver& save, std::size_t path) const {
    const PathCell<Real>* cells = paths_.cells(path).data();
    std::vector<std::uint32_t> keys;
    std::vector<Real> w;
    for (std::uint64_t j = 0; j < paths_.width(); ++j)
      if (cells[j].first() != 0)
        keys.push_back(static_cast<std::uint32_t>(j)), w.push_back(cells[j].first());
    if (keys.size() * (sizeof(Real) + 4) >= paths_.width() * sizeof(Real)) {
      keys.clear(), w.clear();
      for (std::uint64_t j = 0; j < paths_.width(); ++j) w.push_back(cells[j].first());
    }
    save(keys), save(w);
  }

  Weights restored_weights(Restorer& restore) const {
    Weights weights;
    auto& [keys, w] = weights;
    restore(keys), restore(w);
    const bool whole = keys.empty() && !w.empty();
    if (w.size() != (whole ? paths_.width() : keys.size())) throw damaged();
    for (const std::uint32_t j : keys)
      if (j >= paths_.width()) throw damaged();
    for (const Real value : w)
      if (!std::isfinite(value)) throw damaged();
    return weights;
  }

  void put(const Weights& weights, std::size_t path) {
    const auto& [keys, w] = weights;
    PathCell<Real>* cells = paths_.cells(path).data();
    for (std::uint64_t j = 0; j < paths_.width(); ++j) cells[j] = {};
    for (std::size_t i = 0; i < w.size(); ++i)
      cells[keys.empty() ? i : keys[i]] = PathCell<Real>(w[i], 0);
  }

  static std::invalid_argument damaged() {
    return std::invalid_argument("the state of a part is damaged");
  }

  Paths<Real> paths_;
  BurstRule rule_;
  HeldRows<Real> rows_;
  Batch batch_;  // of these rows
  std::optional<StageWork<Real>> work_;
  StageCounts counts_;
  std::int64_t taken_ = 0;  // rows, by each path
  Team team_;
};

}  // namespace

FeatureCounts sum_of(const FeatureCounts& a, const FeatureCounts& b) {
  const std::size_t columns = a.columns.size();
  if (columns != b.columns.size()) throw std::invalid_argument("counts have different columns");
  FeatureCounts sum{{}, std::vector<std::vector<std::uint32_t>>(columns)};
  sum.keys.reserve(a.keys.size() + b.keys.size());
  for (auto& column : sum.columns) column.reserve(a.keys.size() + b.keys.size());
  for (std::size_t i = 0, k = 0; i < a.keys.size() || k < b.keys.size();) {
    const bool of_a = k == b.keys.size() || (i < a.keys.size() && a.keys[i] <= b.keys[k]);
    const bool of_b = i == a.keys.size() || (k < b.keys.size() && b.keys[k] <= a.keys[i]);
    sum.keys.push_back(of_a ? a.keys[i] : b.keys[k]);
    for (std::size_t c = 0; c < columns; ++c)
      sum.columns[c].push_back((of_a ? a.columns[c][i] : 0) + (of_b ? b.columns[c][k] : 0));
    i += of_a, k += of_b;
  }
  return sum;
}

std::unique_ptr<PaperPart> make_paper_part(const std::string& dtype, std::uint64_t width,
                                           std::size_t first, std::size_t count,
                                           std::size_t threads, const Params& params) {
  if (count == 0) throw std::invalid_argument("a part needs a path");
  if (width > 1u << 31) throw std::invalid_argument("width must be 2^31 or less");
  if (dtype == "float32")
    return std::make_unique<PathsOfPart<float>>(width, first, count, threads, params);
  if (dtype == "float64")
    return std::make_unique<PathsOfPart<double>>(width, first, count, threads, params);
  throw std::invalid_argument("unknown dtype '" + dtype + "'");
}

}  // namespace thresher
