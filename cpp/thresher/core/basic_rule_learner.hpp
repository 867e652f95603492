// What a learner of a rule does besides learning and predicting, compiled once per rule: it
// reaches its cells through virtual functions. core/rule_learner.hpp adds the abilities that the
// rule has, and the loops over rows, which are compiled for each store.
//
// All rules of rules/ learn with these loops, except mirror descent (rules/mirror_descent.hpp),
// blocks of columns (rules/margin_block.hpp), the stabilized rules (stabilized/) and lanes
// (lanes/).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "thresher/averaging/round.hpp"
#include "thresher/core/archive.hpp"
#include "thresher/core/batch.hpp"
#include "thresher/core/cells.hpp"
#include "thresher/core/error.hpp"
#include "thresher/core/learner.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/core/tally.hpp"
#include "thresher/loss/loss.hpp"
#include "thresher/loss/safe_rate.hpp"
#include "thresher/rules/rule.hpp"

namespace thresher {

template <Rule R_>
class BasicRuleLearner : public Learner, public Widenable {
 public:
  using R = R_;
  using Real = typename R::Real;
  using Cell = typename R::Cell;

  BasicRuleLearner(const Loss& loss, const Params& params) : loss_(loss), rule_(params) {}

  void next_pass() override { rule_.next_pass(); }

  SparseWeights weights(bool average) const override {
    std::vector<std::pair<std::uint64_t, double>> found;
    cells().each([&](std::uint64_t key, const Cell& cell) {
      const double w = read(cell, average);
      if (!std::isfinite(w)) refuse_weight(key);
      if (w != 0.0) found.emplace_back(key, w);
    });
    return sorted_weights(std::move(found));
  }

  double intercept(bool average) const override {
    return average ? rule_.average_intercept() : rule_.intercept();
  }
  const Tally& tally() const override { return tally_; }
  double rate() const override { return rule_.rate(); }
  [[gnu::cold]] std::map<std::string, double> facts() const override {
    if constexpr (CertifyingRule<R>) return rule_.facts(pending_pulls());
    else if constexpr (requires { rule_.facts(); }) return rule_.facts();
    else return {};
  }

  std::vector<std::byte> state() const override {
    Saver save;
    save(signature());
    const_cast<R&>(rule_).archive(save);  // a Saver only reads
    const_cast<Tally&>(tally_).archive(save);
    std::uint64_t count = 0;
    cells().each([&](std::uint64_t, const Cell&) { ++count; });
    save(count);
    save.reserve(count * sizeof(Record));
    cells().each([&](std::uint64_t key, const Cell& cell) { save(record_of(key, cell)); });
    return save.take();
  }

  // An error leaves the learner unchanged.
  void restore(std::span<const std::byte> state) override {
    Restorer restore(state);
    std::uint64_t saved = 0, count = 0;
    restore(saved);
    if (saved != signature())
      throw std::invalid_argument("the state is of a learner of another rule or number type");
    R rule = rule_;
    Tally tally;
    rule.archive(restore);
    tally.archive(restore);
    restore(count);
    if (count > restore.left() / sizeof(Record))
      throw std::invalid_argument("the learner state is cut short");
    if (restore.left() > count * sizeof(Record))
      throw std::invalid_argument("the learner state has bytes left over");
    cells().replace(count, [&] {
      Record record;
      restore(record);
      std::pair<std::uint64_t, Cell> one{};
      std::memcpy(&one.first, record.data(), sizeof one.first);
      std::memcpy(static_cast<void*>(&one.second), record.data() + sizeof one.first, sizeof(Cell));
      if (!rule.valid(one.second)) throw std::invalid_argument("the learner state is damaged");
      return one;
    });
    if constexpr (requires { rule.end_rounds(); }) rule.end_rounds();
    rule_ = std::move(rule), tally_ = tally;
    round_ = {};
  }

 protected:
  virtual Cells<Cell>& cells() = 0;
  virtual const Cells<Cell>& cells() const = 0;

  void steer_rule() {
    rule_.steer(
        [this](const auto& f) { cells().each([&](std::uint64_t, const Cell& cell) { f(cell); }); });
  }

  bool in_round() const {
    if constexpr (RoundRule<R>) return round_.on();
    else return false;
  }

  // The pulls of all cells that the certificate does not contain yet; in the order of keys, so
  // that the sum does not depend on the store.
  double pending_pulls() const {
    if (!rule_.certifies()) return 0.0;
    std::vector<std::pair<std::uint64_t, double>> found;
    cells().each([&](std::uint64_t key, const Cell& cell) {
      if (const double pulls = rule_.pulls(cell); pulls != 0.0) found.emplace_back(key, pulls);
    });
    double sum = 0.0;
    for (const double pulls : sorted_weights(std::move(found)).values) sum += pulls;
    return sum;
  }

  double read(const Cell& cell, bool average) const {
    return average ? rule_.average(cell) : rule_.weight(cell);
  }

  // The inner product of the weights of n cells with x.
  [[gnu::noinline]] double dot(const Cell* cells, const Real* x, std::size_t n,
                               bool average) const {
    double sum = 0.0;
    if (average)
      for (std::size_t k = 0; k < n; ++k)
        sum += rule_.average(cells[k]) * static_cast<double>(x[k]);
    else
      for (std::size_t k = 0; k < n; ++k) sum += rule_.weight(cells[k]) * static_cast<double>(x[k]);
    return sum;
  }

  // A prediction or a weight is not finite: because of the row's values, or of the learning rate.
  [[noreturn, gnu::noinline, gnu::cold]] void report(const Batch& batch,
                                                     const Rows<Real>& rows) const {
    rows.check_values();
    throw Divergence(divergence_message(tally_.rows() + 1, rows.row(),
                                        rule_.advice(safe_rate<Real>(batch, loss_))));
  }

  Loss loss_;
  R rule_;
  Tally tally_;
  [[no_unique_address]] std::conditional_t<RoundRule<R>, Round<R>, std::monostate> round_;

 private:
  // The type's name is part of every saved state: if a rule's class is renamed, old states cannot
  // be read.
  static std::uint64_t signature() { return signature_of<R>() ^ sizeof(Cell); }

  // A key and its cell, in a state.
  using Record = std::array<std::byte, sizeof(std::uint64_t) + sizeof(Cell)>;
  static Record record_of(std::uint64_t key, const Cell& cell) {
    Record record;
    std::memcpy(record.data(), &key, sizeof key);
    std::memcpy(record.data() + sizeof key, &cell, sizeof cell);
    return record;
  }
};

}  // namespace thresher
