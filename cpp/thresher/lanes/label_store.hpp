// The weights of many classes and the clock they share: behind each feature that has any, a list of
// (class, weight).
//
// A list has one stamp, the last event that its weights have paid. The weight v that a step makes is
// written as v + sgn(v) owed, so that it owes what the others owe, and they need not be written. Only
// where that is many times |v|, which would lose digits, all of the list pays: a float32 weight that paid at
// every row would round most of a small pull away.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "thresher/core/pack.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/lists.hpp"
#include "thresher/rules/truncated_gradient.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

template <class Real, template <class> class Store>
class LabelStore {
 public:
  using Rule = TruncatedGradient<Real, false>;
  using Ref = typename Lists<Real>::Ref;
  using Entry = typename Lists<Real>::Entry;
  using Behind = Single<Ref>;  // what the table of features has for each
  using Places = typename Store<Behind>::Places;

  struct Step {
    std::uint32_t label;
    Real move;               // of a weight whose x is 1
    Real weight = 0;         // that it makes, for the coordinate at work
    std::size_t met = none;  // the last coordinate whose list had the class,
    std::size_t place = 0;   // and where
  };

  LabelStore(std::uint64_t width, const Params& params)
      : rule_(params),
        plain_l1_(params.word("shrink") == "truncate" && params.number("l2") == 0 &&
                  std::isinf(params.number("ceiling"))),
        features_(width) {}

  Rule& clock() { return rule_; }
  const Rule& clock() const { return rule_; }
  std::uint64_t width() const { return features_.width(); }
  void widen(std::uint64_t width) { features_.widen(width); }
  std::size_t bytes() const { return features_.bytes() + lists_.bytes(); }

  // ---- reading -------------------------------------------------------------------------------

  // A full list among those of a row.
  struct Full {
    const Real* w;
    std::size_t size;
    Pack<Real> owed, x;  // the same number four times
  };

  // The lists of a row: staging arrays, kept between rows.
  struct Reading {
    std::vector<Ref> refs;
    Places places;
    std::vector<Full> full;
  };

  // The lists of a row's features.
  void look_up(Rows<Real>& rows, Reading& reading) const {
    const std::size_t n = rows.count();
    if (reading.refs.size() < n + pack_size) reading.refs.resize(n + pack_size);
    rows.with_keys([&, refs = reading.refs.data()](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const auto [later, fetched] = rows.template ahead<Key>(n);
      features_.gather(keys, 0, n, later, fetched, reading.places,
                       [=](std::size_t k, const Four<Behind>& four) {
                         for (std::size_t i = 0; i < pack_size; ++i) refs[k + i] = four[i].value();
                       });
    });
  }

  // Adds x * w of all classes for the features of a row that was looked up. died(k) is told of lists with
  // entries that are zero by now.
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

  // f(class, weight) for those of a list that are not zero.
  template <class F>
  void each_in(Ref ref, F&& f) const {
    lists_.each(ref, [&](std::uint32_t label, Real stored) {
      if (const Real w = paid(stored, lists_.head(ref).stamp); w != 0)
        f(label, static_cast<double>(w));
    });
  }

  // f(key, list) for all lists, in no order that means anything.
  template <class F>
  void each_list(F&& f) const {
    features_.each([&](std::uint64_t key, const Behind& behind) {
      if (behind.value()) f(key, behind.value());
    });
  }

  // ---- one row -------------------------------------------------------------------------------

  // Looks a row up for a step and fills the scores of all classes.
  void open(Rows<Real>& rows, double* scores) {
    const std::size_t n = rows.count();
    if (lists_.bytes() > limit_) collect();
    features_.reserve(n, forgotten);
    look_up(rows, row_);
    fetch_lists(rows);
    moved_ = false;
    add_scores(rows, row_, scores,
               [this](std::size_t k) { row_.refs[k] = without_dead(row_.refs[k]), moved_ = true; });
  }

  // The steps of some classes on the row that was opened. slot[label] is 1 + its place among the steps,
  // 0 for classes that make none.
  void close(const Rows<Real>& rows, std::vector<Step>& steps,
             const std::vector<std::uint32_t>& slot) {
    const std::size_t n = rows.count();
    if (!steps.empty())
      for (std::size_t k = 0; k < n; ++k)
        if (rows.values()[k] != 0) step_list(k, rows.values()[k], steps, slot);
    if (!moved_) return;
    rows.with_keys([&](const auto* keys) {
      features_.scatter(keys, n, row_.places, [&](std::size_t k, Four<Behind>& four) {
        for (std::size_t i = 0; i < pack_size; ++i) four[i] = Behind(row_.refs[k + i]);
      });
    });
  }

  // The clock ticks.
  void finish() {
    rule_.finish(0.0);
    if (!rule_.sweep_due()) return;
    features_.sweep([this](const Behind& behind) {
      Ref ref = behind.value();
      if (ref) pay(ref), ref = without_dead(ref);
      if (ref) lists_.head(ref).stamp = 0;
      return Behind(ref);
    });
    rule_.reset_ledger();
    features_.drop(forgotten);
  }

  // ---- archives ------------------------------------------------------------------------------

  template <class Save>
  void save(Save& save) const {
    const_cast<Rule&>(rule_).archive(save);  // saving reads
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

  // Into a store that is new.
  template <class Restore>
  void restore(Restore& restore, std::size_t classes) {
    rule_.archive(restore);
    std::uint64_t count = 0;
    restore(count);
    if (count > restore.left() / sizeof(std::uint64_t))
      throw std::invalid_argument("the lanes' state is cut short");
    features_.reserve(count, forgotten);
    std::vector<std::uint64_t> met(classes);  // which list had a class last
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
      if (!sound) throw std::invalid_argument("the lanes' state is damaged");
      features_.put(key, Behind(ref));
    }
    limit_ = std::max(limit_, lists_.bytes());
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::size_t together = 16;       // full lists
  static constexpr Real least_share = Real(1) / 8;  // of what is owed, that a weight may be
  static constexpr std::int64_t rows_early = 4;     // between fetching a list and its use

  static constexpr auto forgotten = [](const Behind& behind) { return behind.value() == 0; };

  Real owed(Ref ref) const {
    return static_cast<Real>(rule_.ledger().Q() - rule_.ledger().Q(lists_.head(ref).stamp));
  }
  Real paid(Real stored, std::uint32_t stamp) const {
    return static_cast<Real>(rule_.weight(typename Rule::Cell(stored, stamp)));
  }

  // True if an entry is zero by now.
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

  // Sums of a few terms in the number type, added up in double precision.
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

  // All weights of a list pay what they owe.
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

  // A weight that is zero stays so until its next step: it can be dropped at any time.
  Ref without_dead(Ref ref) {
    const Real owed = this->owed(ref);
    if (plain_l1_) return lists_.filter(ref, [=](Real w) { return std::fabs(w) > owed; });
    const std::uint32_t stamp = lists_.head(ref).stamp;
    return lists_.filter(ref, [&](Real w) { return paid(w, stamp) != 0; });
  }

  // Instead of growing by more than half. Full lists stay until the sweep, whose moment depends on the clock
  // alone: sums over them are rounded in another order.
  void collect() {
    features_.sweep([this](const Behind& behind) {
      const Ref ref = behind.value();
      return ref && !lists_.full(ref) ? Behind(without_dead(ref)) : behind;
    });
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
    for (const Step& step : steps)  // now only: the list may move
      if (step.met != k && step.weight != 0)
        ref = lists_.add(ref, step.label, inflated(step.weight), slot.size());
    moved_ |= ref != row_.refs[k];
    row_.refs[k] = ref;
  }

  // Where the classes that step are in a list.
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

  // Prefetches the beginnings of the lists of a row to come, whose places in the table were prefetched
  // before, and the rest of those of a row that is nearer.
  void fetch_lists(const Rows<Real>& rows) {
    rows.with_keys([&](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const auto [later, n] = rows.template row_ahead<Key>(rows_early);
      each_ref(later, n, [this](Ref ref) { lists_.prefetch(ref); });
      const auto [soon, m] = rows.template row_ahead<Key>(rows_early / 2);
      each_ref(soon, m, [this](Ref ref) { lists_.prefetch_rest(ref); });
    });
  }
  template <class Key, class F>
  void each_ref(const Key* keys, std::size_t n, F&& f) {
    if constexpr (requires { features_.data(); }) {
      for (std::size_t k = 0; k < n; ++k)  // the keys were not looked at yet
        if (static_cast<std::uint64_t>(keys[k]) < features_.width())
          if (const Ref ref = features_.data()[keys[k]].value()) f(ref);
    } else {
      features_.gather(keys, 0, n, keys, 0, early_places_,
                       [&](std::size_t, const Four<Behind>& four) {
                         for (std::size_t i = 0; i < pack_size; ++i)
                           if (four[i].value()) f(four[i].value());
                       });
    }
  }

  Rule rule_;
  bool plain_l1_;  // soft thresholds alone, by the difference of two sums
  Store<Behind> features_;
  Lists<Real> lists_;
  std::size_t limit_ = std::size_t{1} << 25;  // bytes of lists at which the dead are looked for
  bool moved_ = false;                        // a list of the row that is open
  Reading row_;
  Places early_places_;
};

}  // namespace thresher
