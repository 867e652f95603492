// The weights of many classes and the clock they share. Each feature with nonzero weights has a
// list of (class, weight).
//
// A list has one stamp: the last event that was applied to its weights. A step stores its new
// weight v as v + sgn(v) pending, so that the pending events of the list apply to it too and the
// other weights need not be written. If `pending` is many times |v|, this would lose digits; only
// then are the pending events applied to the whole list. If they were applied at every row, float32
// would round most of a small pull away.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "thresher/core/pack.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/list_table.hpp"
#include "thresher/lanes/lists.hpp"
#include "thresher/rules/truncated_gradient.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real>
class LabelStore {
 public:
  using Rule = TruncatedGradient<Real, false>;
  using Ref = typename Lists<Real>::Ref;
  using Entry = typename Lists<Real>::Entry;
  using Places = ListTable::Places;

  struct Step {
    std::uint32_t label;
    Real move;               // the step of a weight with x = 1
    Real weight = 0;         // the new weight at the current coordinate
    std::size_t met = none;  // the last coordinate whose list had the class
    std::size_t place = 0;   // the position in that list
  };

  LabelStore(bool dense, std::uint64_t width, const Params& params)
      : rule_(params),
        plain_l1_(params.word("shrink") == "truncate" && params.number("l2") == 0 &&
                  std::isinf(params.number("ceiling"))),
        features_(make_list_table(dense, width)) {}

  Rule& clock() { return rule_; }
  const Rule& clock() const { return rule_; }
  std::uint64_t width() const { return features_->width(); }
  void widen(std::uint64_t width) { features_->widen(width); }
  std::size_t bytes() const { return features_->bytes() + lists_.bytes(); }

  // ---- reading -------------------------------------------------------------------------------

  // A full list of a feature in the row.
  struct Full {
    const Real* w;
    std::size_t size;
    Pack<Real> owed, x;  // the same number in all elements
  };

  // The lists of a row. The arrays are reused for the next row.
  struct Reading {
    std::vector<Ref> refs;
    Places places;
    std::vector<Full> full;
  };

  // Finds the lists of a row's features.
  void look_up(Rows<Real>& rows, Reading& reading) const {
    const std::size_t n = rows.count();
    if (reading.refs.size() < n + pack_size) reading.refs.resize(n + pack_size);
    rows.with_keys([&, refs = reading.refs.data()](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const auto [later, fetched] = rows.template ahead<Key>(n);
      features_->find(keys, n, later, fetched, reading.places, refs);
    });
  }

  // Adds x * w of all classes for the features of a row, after look_up. Calls died(k) for lists
  // with entries that have become zero.
  template <class Died>
  void add_scores(const Rows<Real>& rows, Reading& reading, double* scores, Died&& died) const {
    reading.full.clear();
    for (std::size_t k = 0; k < rows.count(); ++k) {
      const Ref ref = reading.refs[k];
      if (!ref) continue;
      const Real x = rows.values()[k], owed = this->owed(ref);
      if (plain_l1_ && lists_.full(ref)) {
        reading.full.push_back(
            {lists_.array(ref), lists_.head(ref).size, Pack<Real>::all(owed), Pack<Real>::all(x)});
        if (reading.full.size() == together) add_full(reading.full, scores), reading.full.clear();
      } else if (plain_l1_) {
        if (add_list(ref, [=](Real w) { return soft(w, owed); }, x, scores)) died(k);
      } else if (lists_.full(ref)) {
        each_in(ref, [&](std::uint32_t label, double w) { scores[label] += w * x; });
      } else {
        const std::uint32_t stamp = lists_.head(ref).stamp;
        if (add_list(ref, [&](Real w) { return paid(w, stamp); }, x, scores)) died(k);
      }
    }
    add_full(reading.full, scores);
  }

  // f(class, weight) for the nonzero weights of a list.
  template <class F>
  void each_in(Ref ref, F&& f) const {
    lists_.each(ref, [&](std::uint32_t label, Real stored) {
      if (const Real w = paid(stored, lists_.head(ref).stamp); w != 0)
        f(label, static_cast<double>(w));
    });
  }

  // f(key, list) for all lists, in no particular order.
  template <class F>
  void each_list(F&& f) const {
    features_->each(f);
  }

  // ---- one row -------------------------------------------------------------------------------

  // Finds the lists of a row for a step and adds to the scores of all classes.
  void open(Rows<Real>& rows, double* scores) {
    const std::size_t n = rows.count();
    if (lists_.bytes() > limit_) collect();
    features_->reserve(n);
    look_up(rows, row_);
    fetch_lists(rows);
    moved_ = false;
    add_scores(rows, row_, scores,
               [this](std::size_t k) { row_.refs[k] = without_dead(row_.refs[k]), moved_ = true; });
  }

  // Makes the steps of some classes on the row that was opened. slot[label] is 1 + the index of its
  // step, or 0 for classes without a step.
  void close(const Rows<Real>& rows, std::vector<Step>& steps,
             const std::vector<std::uint32_t>& slot) {
    const std::size_t n = rows.count();
    if (!steps.empty())
      for (std::size_t k = 0; k < n; ++k)
        if (rows.values()[k] != 0) step_list(k, rows.values()[k], steps, slot);
    if (!moved_) return;
    rows.with_keys(
        [&](const auto* keys) { features_->set(keys, n, row_.places, row_.refs.data()); });
  }

  // Advances the clock, and sweeps if it is due.
  void finish() {
    rule_.finish(0.0);
    if (!rule_.sweep_due()) return;
    features_->sweep([this](Ref ref) {
      pay(ref), ref = without_dead(ref);
      if (ref) lists_.head(ref).stamp = 0;
      return ref;
    });
    rule_.reset_ledger();
    features_->drop();
  }

  // ---- archives ------------------------------------------------------------------------------

  template <class Save>
  void save(Save& save) const {
    const_cast<Rule&>(rule_).archive(save);  // saving only reads
    std::uint64_t count = 0;
    each_list([&](std::uint64_t, Ref) { ++count; });
    save(count);
    each_list([&](std::uint64_t key, Ref ref) {
      std::uint32_t size = 0;
      lists_.each(ref, [&](std::uint32_t, Real) { ++size; });
      save(key), save(lists_.head(ref).stamp), save(std::uint8_t{lists_.full(ref)}), save(size);
      lists_.each(ref, [&](std::uint32_t label, Real w) { save(label), save(w); });
    });
  }

  // Call it on a new store.
  template <class Restore>
  void restore(Restore& restore, std::size_t classes) {
    rule_.archive(restore);
    std::uint64_t count = 0;
    restore(count);
    if (count > restore.left() / sizeof(std::uint64_t))
      throw std::invalid_argument("the state of the lanes is cut short");
    features_->reserve(count);
    std::vector<std::uint64_t> met(classes);  // the last list that had a class
    for (std::uint64_t number = 1; number <= count; ++number) {
      std::uint64_t key = 0;
      std::uint32_t stamp = 0, size = 0;
      std::uint8_t full = 0;
      restore(key), restore(stamp), restore(full), restore(size);
      bool sound = size <= classes && stamp <= rule_.ledger().now();
      const Ref ref = sound ? lists_.make(full ? classes : size, classes, stamp) : 0;
      for (; sound && size > 0; --size) {
        std::uint32_t label = 0;
        Real w = 0;
        restore(label), restore(w);
        sound = label < classes && std::exchange(met[label], number) != number;
        if (sound) lists_.add(ref, label, w, classes);
      }
      if (!sound) throw std::invalid_argument("the state of the lanes is damaged");
      features_->put(key, ref);
    }
    limit_ = std::max(limit_, lists_.bytes());
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::size_t together = 16;       // number of full lists that are added at once
  static constexpr Real least_share = Real(1) / 8;  // smallest |weight| / pending that is stored
  static constexpr std::int64_t rows_early = 4;     // rows between prefetching a list and its use

  Real owed(Ref ref) const {
    return static_cast<Real>(rule_.ledger().Q() - rule_.ledger().Q(lists_.head(ref).stamp));
  }
  Real paid(Real stored, std::uint32_t stamp) const {
    return static_cast<Real>(rule_.weight(typename Rule::Cell(stored, stamp)));
  }

  // Returns true if an entry has become zero.
  template <class Paid>
  bool add_list(Ref ref, Paid&& paid, Real x, double* scores) const {
    const Entry* const entries = lists_.entries(ref);
    std::size_t dead = 0;
    for (std::size_t i = 0; i < lists_.head(ref).size; ++i) {
      const Real w = paid(entries[i].weight);
      scores[entries[i].label] += static_cast<double>(w * x);
      dead += w == 0;
    }
    return dead > 0;
  }

  // Sums a few terms in the number type and adds the sums in double precision.
  static void add_full(const std::vector<Full>& lists, double* scores) {
    if (lists.empty()) return;
    std::size_t common = lists[0].size;
    for (const Full& list : lists) common = std::min(common, list.size);
    constexpr std::size_t block = 4 * pack_size;
    common -= common % block;
    for (std::size_t c = 0; c < common; c += block) {
      Pack<Real> a = Pack<Real>::all(0), b = a, d = a, e = a;
      for (const Full& list : lists) {
        const auto term = [&list, c](std::size_t i) __attribute__((always_inline)) {
          return soft(Pack<Real>::load(list.w + c + i * pack_size), list.owed) * list.x;
        };
        a += term(0), b += term(1), d += term(2), e += term(3);
      }
      add_to(scores + c, a), add_to(scores + c + pack_size, b);
      add_to(scores + c + 2 * pack_size, d), add_to(scores + c + 3 * pack_size, e);
    }
    for (const Full& list : lists)
      for (std::size_t c = common; c < list.size; ++c)
        scores[c] += static_cast<double>(soft(list.w[c], list.owed[0]) * list.x[0]);
  }
  static void add_to(double* scores, const Pack<Real>& sum) {
    (Pack<double>::load(scores) + converted<double>(sum)).store(scores);
  }

  // Applies the pending events to all weights of a list.
  void pay(Ref ref) {
    const Real owed = this->owed(ref);
    if (plain_l1_ && lists_.full(ref)) {
      Real* const w = lists_.array(ref);
      const std::size_t size = lists_.head(ref).size;
      std::size_t c = 0;
      for (; c + pack_size <= size; c += pack_size)
        soft(Pack<Real>::load(w + c), Pack<Real>::all(owed)).store(w + c);
      for (; c < size; ++c) w[c] = soft(w[c], owed);
    } else if (plain_l1_) {
      lists_.each(ref, [=](std::uint32_t, Real& w) { w = soft(w, owed); });
    } else {
      const std::uint32_t stamp = lists_.head(ref).stamp;
      lists_.each(ref, [&](std::uint32_t, Real& w) { w = paid(w, stamp); });
    }
    lists_.head(ref).stamp = rule_.ledger().now();
  }

  // Removes zero weights. A zero weight stays zero until its next step, so it can be removed at any
  // time.
  Ref without_dead(Ref ref) {
    const Real owed = this->owed(ref);
    if (plain_l1_) return lists_.filter(ref, [=](Real w) { return std::fabs(w) > owed; });
    const std::uint32_t stamp = lists_.head(ref).stamp;
    return lists_.filter(ref, [&](Real w) { return paid(w, stamp) != 0; });
  }

  // Removes zero weights before the lists grow by more than half. Full lists stay until the next
  // sweep: the order of rounding depends on which lists are full, and the sweep depends only on the
  // clock.
  void collect() {
    features_->sweep([this](Ref ref) { return lists_.full(ref) ? ref : without_dead(ref); });
    limit_ = std::max(lists_.bytes(), lists_.used_bytes() / 2 * 3);
  }

  void step_list(std::size_t k, Real x, std::vector<Step>& steps,
                 const std::vector<std::uint32_t>& slot) {
    Ref ref = row_.refs[k];
    if (!ref) ref = lists_.make(steps.size(), slot.size(), rule_.ledger().now());
    if (!plain_l1_) pay(ref);
    find(ref, k, steps, slot);
    Real owed = this->owed(ref), smallest = std::numeric_limits<Real>::max();
    for (Step& step : steps) {
      step.weight = (step.met == k ? soft(stored(ref, step.place), owed) : Real(0)) + step.move * x;
      if (step.weight != 0) smallest = std::min(smallest, std::fabs(step.weight));
    }
    if (smallest < owed * least_share) pay(ref), owed = 0;
    const auto inflated = [owed](Real w) { return w == 0 ? w : w + std::copysign(owed, w); };
    for (const Step& step : steps)
      if (step.met == k) stored(ref, step.place) = inflated(step.weight);
    for (const Step& step : steps)  // last, because the list may move
      if (step.met != k && step.weight != 0)
        ref = lists_.add(ref, step.label, inflated(step.weight), slot.size());
    moved_ |= ref != row_.refs[k];
    row_.refs[k] = ref;
  }

  // Finds the positions of the classes with a step in a list.
  void find(Ref ref, std::size_t k, std::vector<Step>& steps,
            const std::vector<std::uint32_t>& slot) const {
    const std::size_t size = lists_.head(ref).size;
    if (lists_.full(ref)) {
      for (Step& step : steps)
        if (step.label < size) step.met = k, step.place = step.label;
      return;
    }
    const Entry* const entries = lists_.entries(ref);
    for (std::size_t i = 0; i < size; ++i)
      if (const std::uint32_t s = slot[entries[i].label])
        steps[s - 1].met = k, steps[s - 1].place = i;
  }
  Real& stored(Ref ref, std::size_t place) {
    return lists_.full(ref) ? lists_.array(ref)[place] : lists_.entries(ref)[place].weight;
  }

  // Prefetches the beginnings of the lists of a later row, whose table entries were prefetched
  // before, and the rest of the lists of a nearer row.
  void fetch_lists(const Rows<Real>& rows) {
    rows.with_keys([&](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const auto [later, n] = rows.template row_ahead<Key>(rows_early);
      if (early_.size() < n) early_.resize(2 * n);
      const std::size_t found = features_->peek(later, n, early_.data());
      for (std::size_t i = 0; i < found; ++i) lists_.prefetch(early_[i]);
      const auto [soon, m] = rows.template row_ahead<Key>(rows_early / 2);
      if (early_.size() < m) early_.resize(2 * m);
      const std::size_t near = features_->peek(soon, m, early_.data());
      for (std::size_t i = 0; i < near; ++i) lists_.prefetch_rest(early_[i]);
    });
  }

  Rule rule_;
  bool plain_l1_;  // only soft thresholding, by the difference of two sums
  std::unique_ptr<ListTable> features_;
  Lists<Real> lists_;
  std::size_t limit_ = std::size_t{1} << 25;  // size of lists in bytes that triggers collect()
  bool moved_ = false;                        // whether a list of the open row has moved
  Reading row_;
  std::vector<Ref> early_;  // the lists of later rows
};

}  // namespace thresher
