// The weights of many classes and the clock they share: behind each feature that has any, a list of
// (class, weight).
//
// A list has one stamp, the last event that its weights have paid. The weight v that a step makes is
// written as v + sgn(v) owed, so that it owes what the others owe, and they need not be written. Only
// where that is more than |v| all of the list pays: a float32 weight that paid at every row would round most
// of a small pull away.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../pack.hpp"
#include "../rows.hpp"
#include "../rules/truncated_gradient.hpp"
#include "../shrink.hpp"
#include "lists.hpp"

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
    std::size_t met = none;  // the last coordinate whose list had the class
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

  // The lists of a row's features.
  void look_up(Rows<Real>& rows, std::vector<Ref>& refs, Places& places) const {
    const std::size_t n = rows.count();
    if (refs.size() < n + pack_size) refs.resize(n + pack_size);
    rows.with_keys([&](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const auto [later, fetched] = rows.template ahead<Key>(n);
      features_.gather(keys, 0, n, later, fetched, places,
                       [&](std::size_t k, const Four<Behind>& four) {
                         for (std::size_t i = 0; i < pack_size; ++i) refs[k + i] = four[i].value();
                       });
    });
  }

  // Adds x * w for all classes of a list; how many of its weights are zero by now.
  std::size_t add_scores(Ref ref, Real x, double* scores) const {
    const auto& head = lists_.head(ref);
    const Entry* entries = lists_.entries(ref);
    const std::size_t size = head.size;
    std::size_t dead = 0;
    const auto add = [&](const Entry& entry, Real w) {
      scores[entry.label] += static_cast<double>(w * x);
      dead += w == 0;
    };
    if (plain_l1_) {
      const Real owed = this->owed(ref);
      for (std::size_t i = 0; i < size; ++i) add(entries[i], soft(entries[i].weight, owed));
    } else {
      for (std::size_t i = 0; i < size; ++i) add(entries[i], paid(entries[i], head.stamp));
    }
    return dead;
  }

  // f(class, weight) for those of a list that are not zero.
  template <class F>
  void each_in(Ref ref, F&& f) const {
    const Entry* entries = lists_.entries(ref);
    for (std::size_t i = 0; i < lists_.head(ref).size; ++i)
      if (const Real w = paid(entries[i], lists_.head(ref).stamp); w != 0)
        f(entries[i].label, static_cast<double>(w));
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
    look_up(rows, refs_, places_);
    fetch_lists(rows);
    moved_ = false;
    for (std::size_t k = 0; k < n; ++k)
      if (refs_[k] && add_scores(refs_[k], rows.values()[k], scores) > 0)
        refs_[k] = without_dead(refs_[k]), moved_ = true;
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
      features_.scatter(keys, n, places_, [&](std::size_t k, Four<Behind>& four) {
        for (std::size_t i = 0; i < pack_size; ++i) four[i] = Behind(refs_[k + i]);
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
    rule_.begin_again();
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
      const auto& head = lists_.head(ref);
      save(key), save(head.stamp), save(std::uint32_t{head.size});
      for (std::size_t i = 0; i < head.size; ++i)
        save(lists_.entries(ref)[i].label), save(lists_.entries(ref)[i].weight);
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
      restore(key), restore(stamp), restore(size);
      bool sound = size > 0 && size <= classes && stamp <= rule_.ledger().now();
      const Ref ref = sound ? lists_.make(size, stamp) : 0;
      for (; sound && size > 0; --size) {
        Entry entry{};
        restore(entry.label), restore(entry.weight);
        sound = entry.label < classes && std::exchange(met[entry.label], number) != number;
        if (sound) lists_.add(ref, entry);
      }
      if (!sound) throw std::invalid_argument("the lanes' state is damaged");
      features_.put(key, Behind(ref));
    }
    limit_ = std::max(limit_, lists_.bytes());
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::int64_t rows_early = 2;  // between fetching a list and its use

  static constexpr auto forgotten = [](const Behind& behind) { return behind.value() == 0; };

  Real owed(Ref ref) const {
    return static_cast<Real>(rule_.ledger().Q() - rule_.ledger().Q(lists_.head(ref).stamp));
  }
  Real paid(const Entry& entry, std::uint32_t stamp) const {
    return static_cast<Real>(rule_.weight(typename Rule::Cell(entry.weight, stamp)));
  }

  // All weights of a list pay what they owe.
  void pay(Ref ref) {
    auto& head = lists_.head(ref);
    Entry* entries = lists_.entries(ref);
    for (std::size_t i = 0; i < head.size; ++i) entries[i].weight = paid(entries[i], head.stamp);
    head.stamp = rule_.ledger().now();
  }

  // A weight that is zero stays so until its next step: it can be dropped at any time.
  Ref without_dead(Ref ref) {
    const std::uint32_t stamp = lists_.head(ref).stamp;
    return lists_.filter(ref, [&](const Entry& entry) { return paid(entry, stamp) != 0; });
  }

  // Instead of growing by more than half.
  void collect() {
    features_.sweep([this](const Behind& behind) {
      return Behind(behind.value() ? without_dead(behind.value()) : 0);
    });
    limit_ = std::max(lists_.bytes(), lists_.used_bytes() / 2 * 3);
  }

  void step_list(std::size_t k, Real x, std::vector<Step>& steps,
                 const std::vector<std::uint32_t>& slot) {
    Ref ref = refs_[k];
    if (!ref) ref = lists_.make(steps.size(), rule_.ledger().now());
    if (!plain_l1_) pay(ref);
    Real owed = this->owed(ref);
    const auto inflated = [&](Real w) { return owed > 0 ? w + std::copysign(owed, w) : w; };
    std::size_t met = 0;
    Entry* entries = lists_.entries(ref);
    for (std::size_t i = 0; i < lists_.head(ref).size; ++i) {
      const std::uint32_t s = slot[entries[i].label];
      if (s == 0) continue;
      Step& step = steps[s - 1];
      const Real w = soft(entries[i].weight, owed) + step.move * x;
      if (std::fabs(w) < owed) pay(ref), owed = 0;
      entries[i].weight = inflated(w);
      step.met = k, ++met;
    }
    for (std::size_t s = 0; met < steps.size() && s < steps.size(); ++s) {
      if (steps[s].met == k) continue;
      const Real w = steps[s].move * x;
      ++met;
      if (w == 0) continue;
      if (std::fabs(w) < owed) pay(ref), owed = 0;
      ref = lists_.add(ref, Entry{steps[s].label, inflated(w)});
    }
    if (lists_.head(ref).size == 0) lists_.release(ref), ref = 0;
    moved_ |= ref != refs_[k];
    refs_[k] = ref;
  }

  // Prefetches the lists of a row to come, whose places in the table were prefetched before.
  void fetch_lists(const Rows<Real>& rows) {
    const auto fetch = [&](const auto* keys, std::size_t n) {
      if constexpr (requires { features_.data(); }) {
        for (std::size_t k = 0; k < n; ++k)
          if (static_cast<std::uint64_t>(keys[k]) < features_.width())
            if (const Ref ref = features_.data()[keys[k]].value()) lists_.prefetch(ref);
      } else {
        features_.gather(keys, 0, n, keys, 0, early_places_,
                         [&](std::size_t, const Four<Behind>& four) {
                           for (std::size_t i = 0; i < pack_size; ++i)
                             if (four[i].value()) lists_.prefetch(four[i].value());
                         });
      }
    };
    rows.with_keys([&](const auto* keys) {
      using Key = std::remove_cvref_t<decltype(*keys)>;
      const auto [later, n] = rows.template row_ahead<Key>(rows_early);
      fetch(later, n);
    });
  }

  Rule rule_;
  bool plain_l1_;  // soft thresholds alone, by the difference of two sums
  Store<Behind> features_;
  Lists<Real> lists_;
  std::size_t limit_ = std::size_t{1} << 25;  // bytes of lists at which the dead are looked for
  bool moved_ = false;                        // a list of the row that is open
  std::vector<Ref> refs_;
  Places places_, early_places_;
};

}  // namespace thresher
