#include "thresher/stabilized/robust/pieces.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

namespace thresher {
namespace {

template <class T>
std::vector<T> permuted(const std::vector<T>& values, const std::vector<std::uint32_t>& order) {
  std::vector<T> result;
  result.reserve(order.size());
  for (const std::uint32_t i : order) result.push_back(values[i]);
  return result;
}

template <class Real>
class PartOf final : public RobustPart {
  using Rows = CandidateRows<Real>;

 public:
  PartOf(std::uint64_t width, const Params& params, std::size_t first, std::size_t count)
      : width_(width),
        paths_(loss_of(params), params, first, count),
        sizing_(loss_of(params), params) {}

  void add(const Batch& batch) override {
    check(Phase::adding);
    phase_ = Phase::broken;  // if an error follows
    const auto see = [this](std::uint64_t j, double x, double weight, double label) {
      const std::uint32_t at = place(j);
      ++counts_.rows[at], ++counts_.documents[at], counts_.squares[at] += x * x;
      counts_.sums[at].add(weight, x, label);
    };
    rows_.count_in(batch, width_, see, [this](std::uint64_t j) { ++counts_.documents[place(j)]; });
    rows_.copy_to(batch, width_, [this](std::uint64_t j) { return places_.find(j)->second; });
    phase_ = Phase::adding;
  }

  RowsOfFeatures end() override {
    check(Phase::adding);
    for (std::size_t r = 0; r < rows_.count(); ++r) {
      norms_ += rows_.weights[r] * rows_.norms[r];
      totals_.add(rows_.weights[r], rows_.labels[r]);
    }
    places_ = {};
    std::vector<std::uint32_t> order(counts_.keys.size()), now(order.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      return counts_.keys[a] < counts_.keys[b];
    });
    for (std::uint32_t i = 0; i < order.size(); ++i) now[order[i]] = i;
    for (std::uint32_t& key : rows_.keys) key = now[key];
    rows_.ids = permuted(counts_.keys, order);
    RowsOfFeatures found{rows_.ids, permuted(counts_.rows, order),
                         permuted(counts_.documents, order), permuted(counts_.squares, order),
                         permuted(counts_.sums, order)};
    counts_ = {}, phase_ = Phase::ended;
    std::size_t i = 0;  // drops features that only rows of weight 0 have
    rows_.drop([&](std::uint64_t) { return found.rows[i++] == 0; });
    return found;
  }

  std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.count()); }
  std::int64_t refit_steps() const override { return paths_.refit_steps(); }
  double norms() const override { return norms_; }
  const RowTotals& totals() const override { return totals_; }

  void retain(std::span<const std::uint64_t> keys) override {
    check(Phase::ended);
    rows_.drop([&](std::uint64_t j) { return !std::binary_search(keys.begin(), keys.end(), j); });
  }
  void drop(std::span<const std::uint64_t> keys) override {
    check(Phase::ended);
    rows_.drop([&](std::uint64_t j) { return std::binary_search(keys.begin(), keys.end(), j); });
  }
  const std::vector<std::uint64_t>& features() const override { return rows_.ids; }

  SizeTable sizes(double mean_norm, std::size_t features, std::size_t jobs,
                  const CheckInterrupt& check_interrupt) const override {
    check(Phase::ended);
    return sizing_.measure(jobs, check_interrupt, rows_, mean_norm, features);
  }

  PathSums halves(std::int64_t stage, double mean_norm, double bias, std::size_t jobs,
                  const CheckInterrupt& check_interrupt) const override {
    check(Phase::ended);
    if (rows_.count() == 0) return PathSums(rows_.ids.size());
    Team team(workers(jobs));
    const std::int64_t passes = paths_.stage_passes(rows_);
    return paths_.halves(team, check_interrupt, rows_, mean_norm, stage, passes, bias);
  }

  PathSums whole(std::int64_t stage, double mean_norm, std::int64_t passes,
                 std::span<const double> start, double bias, const RefitPenalty& penalty,
                 std::size_t jobs, const CheckInterrupt& check_interrupt) const override {
    check(Phase::ended);
    if (passes < 1) throw std::invalid_argument("passes must be at least 1");
    if (!start.empty() && start.size() != rows_.ids.size())
      throw std::invalid_argument("start must have one weight for each feature that is left");
    if (rows_.count() == 0) return PathSums(rows_.ids.size());
    Team team(workers(jobs));
    typename RobustPaths<Real>::Start from;
    if (!start.empty()) from.weights = [&](std::size_t i) { return start[i]; };
    from.bias = bias;
    if (penalty.strength > 0)
      from.l2 = scale_free_l2(penalty.strength, sizing_.spread(rows_), penalty.weight);
    return paths_.whole(team, check_interrupt, rows_, mean_norm, stage, passes, from);
  }

 private:
  enum class Phase { adding, broken, ended };

  void check(Phase wanted) const {
    if (phase_ == wanted) return;
    throw std::invalid_argument(phase_ == Phase::broken  ? "the part had a bad row"
                                : phase_ == Phase::ended ? "add rows before end()"
                                                         : "call end() after the last rows");
  }

  static Loss loss_of(const Params& params) {
    return Loss(params.word("loss"), params.number("epsilon"), params.number("quantile"));
  }

  std::size_t workers(std::size_t jobs) const {
    return std::min(std::max<std::size_t>(jobs, 1), paths_.count());
  }

  // The position of a feature, in the order of first occurrence.
  std::uint32_t place(std::uint64_t j) {
    const auto [found, is_new] =
        places_.try_emplace(j, static_cast<std::uint32_t>(counts_.keys.size()));
    if (is_new) {
      if (found->second == Rows::none) throw std::length_error("a part has too many features");
      counts_.keys.push_back(j), counts_.rows.push_back(0), counts_.documents.push_back(0);
      counts_.squares.push_back(0.0), counts_.sums.emplace_back();
    }
    return found->second;
  }

  std::uint64_t width_;
  RobustPaths<Real> paths_;
  RobustSizing<Real> sizing_;
  Rows rows_;
  double norms_ = 0.0;
  RowTotals totals_;
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  // while rows are added
  RowsOfFeatures counts_;                                    // also, in the order of positions
  Phase phase_ = Phase::adding;
};

}  // namespace

std::unique_ptr<RobustPart> make_robust_part(const std::string& dtype, std::uint64_t width,
                                             const Params& params, std::size_t first,
                                             std::size_t count) {
  if (first % 2 || count % 2 || count == 0)
    throw std::invalid_argument("first and count must be even: paths come in pairs");
  if (dtype == "float32") return std::make_unique<PartOf<float>>(width, params, first, count);
  if (dtype == "float64") return std::make_unique<PartOf<double>>(width, params, first, count);
  throw std::invalid_argument("unknown dtype '" + dtype + "'");
}

// ---- a range -----------------------------------------------------------------------------------

void RobustRange::count(std::span<const std::uint64_t> keys, std::span<const std::int64_t> rows,
                        std::span<const std::int64_t> documents, std::span<const double> squares,
                        std::span<const LabelSums> sums, std::uint32_t paths) {
  if (!std::is_sorted(keys.begin(), keys.end(), std::less_equal<>()))
    throw std::invalid_argument("keys must increase");
  RobustRange both;
  std::size_t a = 0, b = 0;
  while (a < keys_.size() || b < keys.size()) {
    const bool known = b == keys.size() || (a < keys_.size() && keys_[a] <= keys[b]);
    const bool here = a == keys_.size() || (b < keys.size() && keys[b] <= keys_[a]);
    both.keys_.push_back(known ? keys_[a] : keys[b]);
    both.features_.push_back(known ? features_[a] : RobustFeature{});
    both.documents_.push_back(known ? documents_[a] : 0);
    both.paths_.push_back(known ? paths_[a] : 0);
    both.label_sums_.push_back(known ? label_sums_[a] : LabelSums{});
    if (here) {
      RobustFeature& feature = both.features_.back();
      feature.rows += rows[b], feature.squares += squares[b];
      both.documents_.back() += documents[b];
      both.label_sums_.back().add(sums[b]);
      if (rows[b] > 0) both.paths_.back() += paths;
    }
    a += known, b += here;
  }
  *this = std::move(both);
}

std::vector<std::uint64_t> RobustRange::admit(double least_rows) {
  std::vector<std::uint64_t> found;
  admitted_.assign(keys_.size(), 0);
  left_.clear();
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (features_[i].often_enough(least_rows))
      admitted_[i] = 1, left_.push_back(i), found.push_back(keys_[i]);
  sums_ = PathSums(left_.size());
  return found;
}

void RobustRange::add(const Found& found) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < found.keys.size(); ++i) {
    while (at < left_.size() && keys_[left_[at]] < found.keys[i]) ++at;
    if (at == left_.size() || keys_[left_[at]] != found.keys[i])
      throw std::invalid_argument("feature " + std::to_string(found.keys[i]) +
                                  " is not left, or occurs twice");
    sums_.w[at] += found.w[i], sums_.updates[at] += found.updates[i];
    if (!found.z.empty())
      sums_.z[at] += found.z[i], sums_.plus[at] += found.plus[i], sums_.minus[at] += found.minus[i];
    ++at;
  }
}

std::size_t RobustRange::judge(double rows, double keep) {
  ranks_.assign(left_.size(), 0);
  std::size_t may_stay = 0;
  for (std::size_t i = 0; i < left_.size(); ++i) {
    RobustFeature& feature = features_[left_[i]];
    feature.updates += sums_.updates[i];
    feature.judge(sums_.z[i], sums_.w[i], sums_.plus[i], sums_.minus[i],
                  static_cast<double>(paths_[left_[i]]));
    // The bits of doubles >= 0 have the same order as the doubles.
    if (feature.may_stay(keep))
      ++may_stay, ranks_[i] = std::bit_cast<std::uint64_t>(feature.score(rows)) + 1;
  }
  sums_ = PathSums(left_.size());
  return may_stay;
}

std::vector<std::int64_t> RobustRange::histogram(std::uint64_t tied, std::uint64_t prefix,
                                                 unsigned shift, unsigned bits) const {
  if (bits == 0 || bits > 20 || shift > 64 - bits)
    throw std::invalid_argument("bits must be 1 to 20, and bits + shift at most 64");
  std::vector<std::int64_t> counts(std::size_t{1} << bits);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i] == 0 || (tied != 0 && ranks_[i] != tied)) continue;
    const std::uint64_t value = tied != 0 ? ~keys_[left_[i]] : ranks_[i];
    const std::uint64_t leading = value >> shift;
    if (shift + bits == 64 || leading >> bits == prefix) ++counts[leading & (counts.size() - 1)];
  }
  return counts;
}

std::vector<std::uint64_t> RobustRange::purge(std::int64_t stage, std::uint64_t rank,
                                              std::uint64_t last) {
  if (ranks_.size() != left_.size()) throw std::invalid_argument("call judge() before purge()");
  std::vector<std::uint64_t> gone;
  std::size_t stay = 0;
  for (std::size_t i = 0; i < left_.size(); ++i) {
    const std::size_t place = left_[i];
    const bool stays =
        ranks_[i] != 0 && (ranks_[i] > rank || (ranks_[i] == rank && keys_[place] <= last));
    if (stays) left_[stay++] = place;
    else features_[place].purged = stage, gone.push_back(keys_[place]);
  }
  left_.resize(stay), ranks_.clear();
  sums_ = PathSums(stay);
  return gone;
}

void RobustRange::set_weights() {
  for (std::size_t i = 0; i < left_.size(); ++i) {
    RobustFeature& feature = features_[left_[i]];
    feature.updates += sums_.updates[i];
    feature.weight = sums_.w[i] / static_cast<double>(paths_[left_[i]]);
  }
  sums_ = PathSums(left_.size());
}

SparseWeights RobustRange::weights() const {
  SparseWeights found;
  for (const std::size_t place : left_)
    if (features_[place].weight != 0.0)
      found.keys.push_back(keys_[place]), found.values.push_back(features_[place].weight);
  return found;
}

Findings RobustRange::findings(const RowTotals& rows) const {
  Findings found;
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (const RobustFeature& feature = features_[i]; feature.rows > 0) {
      found.add(keys_[i], std::max(0.0, feature.probability), feature.updates, feature.purged);
      found.z.push_back(label_sums_.empty() ? unknown : label_sums_[i].z(rows));
    }
  return found;
}

std::vector<std::int64_t> RobustRange::documents() const {
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (features_[i].rows > 0) found.push_back(documents_[i]);
  return found;
}

RobustRange::State RobustRange::state() const {
  State state{keys_, {}, documents_, admitted_, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  for (const LabelSums& sums : label_sums_) {
    state.label_x.push_back(sums.x), state.label_squares.push_back(sums.squares);
    state.label_positive.push_back(sums.positive);
  }
  for (const RobustFeature& feature : features_) state.rows.push_back(feature.rows);
  for (std::size_t i = 0; i < admitted_.size(); ++i)
    if (admitted_[i]) {
      state.probability.push_back(features_[i].probability);
      state.updates.push_back(features_[i].updates), state.purged.push_back(features_[i].purged);
    }
  for (const std::size_t place : left_) {
    const RobustFeature& feature = features_[place];
    state.Z.push_back(feature.Z), state.W.push_back(feature.W);
    state.squares.push_back(feature.squares), state.weight.push_back(feature.weight);
    state.stages.push_back(feature.stages), state.paths.push_back(paths_[place]);
  }
  return state;
}

void RobustRange::restore(State state) {
  const auto damaged = [] { return std::invalid_argument("the state of a range is damaged"); };
  RobustRange range;
  const std::size_t n = state.keys.size();
  const auto judged = static_cast<std::size_t>(
      std::count(state.admitted.begin(), state.admitted.end(), std::uint8_t{1}));
  if (state.rows.size() != n || state.documents.size() != n || state.admitted.size() != n ||
      state.probability.size() != judged || state.updates.size() != judged ||
      state.purged.size() != judged)
    throw damaged();
  if (!std::is_sorted(state.keys.begin(), state.keys.end(), std::less_equal<>())) throw damaged();
  const std::size_t known = state.label_x.size();  // 0: a state of version 0.1.0
  if ((known != 0 && known != n) || state.label_squares.size() != known ||
      state.label_positive.size() != known)
    throw damaged();
  for (std::size_t i = 0; i < known; ++i)
    range.label_sums_.push_back(
        {state.label_x[i], state.label_squares[i], state.label_positive[i]});
  range.features_.resize(n), range.paths_.resize(n);
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    RobustFeature& feature = range.features_[i];
    feature.rows = state.rows[i];
    if (state.admitted[i] != 1) continue;
    feature.probability = state.probability[at], feature.updates = state.updates[at];
    feature.purged = state.purged[at++];
    if (feature.purged == RobustFeature::kept) range.left_.push_back(i);
  }
  const std::size_t m = range.left_.size();
  if (state.Z.size() != m || state.W.size() != m || state.squares.size() != m ||
      state.weight.size() != m || state.stages.size() != m || state.paths.size() != m)
    throw damaged();
  for (std::size_t i = 0; i < m; ++i) {
    RobustFeature& feature = range.features_[range.left_[i]];
    feature.Z = state.Z[i], feature.W = state.W[i], feature.squares = state.squares[i];
    feature.weight = state.weight[i], feature.stages = state.stages[i];
    range.paths_[range.left_[i]] = state.paths[i];
    if (state.paths[i] == 0 || state.stages[i] < 0 || !std::isfinite(feature.weight))
      throw damaged();
  }
  range.keys_ = std::move(state.keys), range.documents_ = std::move(state.documents);
  range.admitted_ = std::move(state.admitted);
  range.sums_ = PathSums(m);
  *this = std::move(range);
}

}  // namespace thresher
