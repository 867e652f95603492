#include "thresher/rules/margin_block.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "thresher/core/archive.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/random.hpp"
#include "thresher/core/repeats.hpp"
#include "thresher/core/row_step.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/loss/loss.hpp"
#include "thresher/rules/margin_perceptron.hpp"
#include "thresher/stores/dense.hpp"

namespace thresher {
namespace {

template <class Real, bool Everywhere>
class MarginBlockOf final : public MarginBlock {
  using Rule = MarginPerceptron<Real, Everywhere>;
  using Cell = typename Rule::Cell;
  using Store = DenseStore<Cell>;

 public:
  MarginBlockOf(std::uint64_t width, const Params& params)
      : tau_(params.number("epsilon")),
        loss_("margin", tau_, 0.0),
        params_(params),
        rule_(params),
        store_(width) {}

  std::vector<double> products(const Batch& batch, const Visit& visit) override {
    parts_.clear();
    Rows<Real> rows(batch, visit, store_.width());
    while (rows.next()) parts_.push_back(open(rows).dot);
    return parts_;
  }

  std::vector<bool> learn(const Batch& batch, const Visit& visit, const double* sums,
                          const float* reach) override {
    if (parts_.size() != static_cast<std::size_t>(visit.last - visit.first))
      throw std::invalid_argument("learn: the rows must be those of the last products");
    std::vector<bool> updated(parts_.size());
    Rows<Real> rows(batch, visit, store_.width());
    for (std::size_t i = 0; rows.next(); ++i) {
      const double r = reach[rows.row()];
      if (!Everywhere && r == 0.0) continue;
      const Repeats repeats = repeats_of(rows.weight());
      for (std::int64_t k = 0; k < repeats.count; ++k)
        if (step(rows, repeats.weight, sums[i], parts_[i], r)) updated[i] = true;
    }
    parts_.clear();
    return updated;
  }

  std::pair<std::vector<std::int64_t>, std::vector<double>> weights() const override {
    std::pair<std::vector<std::int64_t>, std::vector<double>> found;
    store_.each([&](std::uint64_t column, const Cell& cell) {
      const double w = rule_.weight(cell);
      if (!std::isfinite(w)) throw Divergence("a weight is not finite: " + rule_.advice(0.0));
      if (w == 0.0) return;
      found.first.push_back(static_cast<std::int64_t>(column));
      found.second.push_back(w);
    });
    return found;
  }

  double intercept() const override { return rule_.intercept(); }
  std::map<std::string, double> facts() const override { return rule_.facts(); }

  std::vector<std::byte> state() const override {
    Saver save;
    save(std::uint64_t{sizeof(Cell)});
    const_cast<Rule&>(rule_).archive(save);  // a Saver only reads
    std::uint64_t count = 0;
    store_.each([&](std::uint64_t, const Cell&) { ++count; });
    save(count);
    store_.each([&](std::uint64_t column, const Cell& cell) { save(column), save(cell); });
    return save.take();
  }

  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t size = 0, count = 0;
    restore(size);
    if (size != sizeof(Cell)) throw std::invalid_argument("the state is of another block");
    Rule rule(params_);
    Store store(store_.width());
    rule.archive(restore);
    restore(count);
    if (count > restore.left() / (sizeof(std::uint64_t) + sizeof(Cell)))
      throw std::invalid_argument("the state of a block is cut short");
    for (; count > 0; --count) {
      std::uint64_t column = 0;
      Cell cell;
      restore(column), restore(cell);
      if (!rule.valid(cell)) throw std::invalid_argument("the state of a block is damaged");
      store.put(column, cell);
    }
    if (!restore.finished())
      throw std::invalid_argument("the state of a block has bytes left over");
    rule_ = std::move(rule), store_ = std::move(store);
    parts_.clear();
  }

 private:
  // Makes a step of this weight; returns whether it was an update. `sum` and `part` are p_i and q_i.
  bool step(Rows<Real>& rows, double weight, double sum, double part, double r) {
    const Inner inner = open(rows);
    const double p = sum + r * (inner.dot - part), y = rows.label();
    double g = y * p <= tau_ ? weight * -y : 0.0;
    if (weight > 1.0) g = loss_.long_slope(p, y, weight, r * rule_.reach(inner.squares));
    if (!std::isfinite(inner.dot) || !rule_.fits(g * std::max(1.0, std::sqrt(inner.squares))))
      throw Divergence("the weights diverged: " + rule_.advice(0.0));
    rule_.see(inner.squares, 1.0);
    if (g != 0.0) close_row(rule_, store_, rows, row_, places_, g);
    rule_.finish(g);
    if (rule_.sweep_due()) {
      store_.sweep([this](const Cell& cell) { return rule_.settled(cell); });
      rule_.reset_ledger();
    }
    return g != 0.0;
  }

  // The dot includes the intercept.
  Inner open(Rows<Real>& rows) {
    row_.resize((rows.count() + pack_size - 1) / pack_size * pack_size);
    Inner inner = open_row(rule_, store_, rows, row_, places_);
    inner.dot = rule_.prediction(row_, inner.dot);
    return inner;
  }

  double tau_;
  Loss loss_;
  Params params_;
  Rule rule_;
  Store store_;
  typename Store::Places places_;
  typename Rule::Row row_;
  std::vector<double> parts_;  // q_i of the rows of the last products()
};

// The block of a key; it depends only on the key and the number of blocks. Consecutive keys get
// different blocks: features of a file are often numbered by frequency.
std::size_t block_of(std::uint64_t key, std::size_t blocks) {
  return static_cast<std::size_t>(Random::mixed(key + 0x9E3779B97F4A7C15u) % blocks);
}

}  // namespace

std::unique_ptr<MarginBlock> make_margin_block(const std::string& dtype, std::uint64_t width,
                                               const Params& params) {
  const bool all = params.word("shrink") == "all";
  if (dtype == "float32") {
    if (all) return std::make_unique<MarginBlockOf<float, true>>(width, params);
    return std::make_unique<MarginBlockOf<float, false>>(width, params);
  }
  if (dtype != "float64") throw std::invalid_argument("unknown dtype '" + dtype + "'");
  if (all) return std::make_unique<MarginBlockOf<double, true>>(width, params);
  return std::make_unique<MarginBlockOf<double, false>>(width, params);
}

template <class Real>
std::vector<CutRows<Real>> cut_columns(const Batch& batch, std::uint64_t width, std::size_t blocks,
                                       bool intercept, double& squares) {
  constexpr double most = 1e9;  // the largest r, so that it stays finite
  std::vector<CutRows<Real>> cut(blocks);
  const auto count = static_cast<std::size_t>(batch.rows);
  for (auto& block : cut) block.counts.resize(count), block.reach.resize(count);
  Rows<Real> rows(batch, Visit{nullptr, 0, batch.rows}, width);
  std::vector<double> own(blocks);
  for (std::size_t row = 0; rows.next(); ++row) {
    std::fill(own.begin(), own.end(), 0.0);
    own[0] = intercept ? 1.0 : 0.0;
    double sum = own[0];
    rows.with_keys([&](const auto* keys) {
      for (std::size_t k = 0; k < rows.count(); ++k) {
        const Real x = rows.values()[k];
        const auto key = static_cast<std::uint64_t>(static_cast<std::int64_t>(keys[k]));
        const std::size_t b = block_of(key, blocks);
        cut[b].keys.push_back(key), cut[b].values.push_back(x), ++cut[b].counts[row];
        const double square = static_cast<double>(x) * static_cast<double>(x);
        sum += square, own[b] += square;
      }
    });
    if (!std::isfinite(static_cast<Real>(sum))) {
      rows.check_values();
      throw DataError(rows.row(), "the sum of the squares of its values overflows");
    }
    for (std::size_t b = 0; b < blocks; ++b)  // a row of zeros belongs to all blocks
      cut[b].reach[row] =
          static_cast<float>(own[b] > 0.0 ? std::min(sum / own[b], most) : sum == 0.0);
    squares = std::max(squares, sum);
  }
  return cut;
}

template std::vector<CutRows<float>> cut_columns<float>(const Batch&, std::uint64_t, std::size_t,
                                                        bool, double&);
template std::vector<CutRows<double>> cut_columns<double>(const Batch&, std::uint64_t, std::size_t,
                                                          bool, double&);

}  // namespace thresher
