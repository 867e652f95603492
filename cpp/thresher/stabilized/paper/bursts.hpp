// The end of a burst: for every feature that it saw, the ratio |change of w_j| / k_j, the truncated
// weight, and the evidence. Two ways to find these features have the same result:
//
//   Touched  a list, made during the burst: for bursts that see few of the features
//   Sweep    a loop over all cells, four at a time: for bursts that see many
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "thresher/core/cell.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/stabilized/paper/evidence.hpp"
#include "thresher/stabilized/paper/quantile.hpp"
#include "thresher/stabilized/paths.hpp"
#include "thresher/stores/dense.hpp"

namespace thresher {

// w_j <- S(w_j, g k_j), or S(w_j, g) by the rule of the authors' code.
template <class Real>
struct Truncation {
  Pack<Real> by;  // g, four times
  bool counts;    // whether to multiply by k_j

  // Compares |w| / k with g, not |w| with g k, which would be rounded: a feature whose whole weight
  // is from this burst, and whose ratio is the quantile g itself, must be rejected.
  [[gnu::always_inline]] Pack<Real> operator()(const Pack<Real>& w, const Pack<Real>& k) const {
    if (!counts) return beyond(absolute(w), by, soft(w, by));
    return beyond(absolute(w) / k, by, soft(w, by * k));
  }
};

// The features of a burst; each is listed at its first row, with its weight before that row.
template <class Real>
class Touched {
  using Cell = PathCell<Real>;
  using Entry = Pair<Real, std::make_unsigned_t<Whole<Real>>>;  // w_j, j

 public:
  explicit Touched(std::uint64_t width)
      : entries_(std::make_unique_for_overwrite<Entry[]>(width + 2 * pack_size)) {}

  // Called with the cells of a row before its step. Adds those with k_j = 0 to the list: they are
  // new. It has no branches: it writes every cell, and moves on only after a new one.
  struct Lister {
    Entry* end;

    template <class Key>
    [[gnu::always_inline]] void operator()(const Four<Key>& keys, const Four<Cell>& cells) {
      for (std::size_t i = 0; i < pack_size; ++i) {
        *end = Entry(cells[i].first(), static_cast<std::make_unsigned_t<Whole<Real>>>(keys[i]));
        end += cells[i].second() == 0;
      }
    }
  };

  void begin() { lister_.end = entries_.get(); }
  Lister& lister() { return lister_; }
  Lister mark() const { return lister_; }
  void back_to(Lister mark) { lister_ = mark; }

  // The row had n features; removes the repetitions of the last one from the list.
  void end_row(std::size_t n, const Staged<Real>& row) {
    if (n % pack_size && row.k[n - 1] == 0) lister_.end -= pack_size - n % pack_size;
  }

  void truncate(DenseStore<Cell>& store, Truncation<Real> truncation, Ratios<Real>& found,
                CountLists& counts) {
    const auto n = static_cast<std::size_t>(lister_.end - entries_.get());
    if (n == 0) return;
    const Entry* entries = entries_.get();
    const std::size_t padding = (pack_size - n % pack_size) % pack_size;
    std::fill_n(entries_.get() + n, padding, entries[n - 1]);
    const CountLists::Writer writer = counts.writer(n + padding);
    Real* ratios = found.room(n);
    Cell* cells = store.data();
    for (std::size_t i = 0; i < n; i += pack_size) {
      for (std::size_t e = 0; e < pack_size; ++e)
        __builtin_prefetch(cells + entries[std::min(i + e + far, n - 1)].second(), 1);
      const Four<Entry> four{entries[i], entries[i + 1], entries[i + 2], entries[i + 3]};
      const Four<Cell> old{cells[four.a.second()], cells[four.b.second()], cells[four.c.second()],
                           cells[four.d.second()]};
      const Pack<Real> w = half<0>(old), k = Pack<Real>::from(half<1>(old));
      const Pack<Real> left = truncation(w, k);
      (absolute(w - half<0>(four)) / k).store(ratios + i);
      Four<Cell> now;
      zip(left, Pack<Whole<Real>>::all(0), now);
      cells[four.a.second()] = now.a, cells[four.b.second()] = now.b;
      cells[four.c.second()] = now.c, cells[four.d.second()] = now.d;
      Whole<Real> words[pack_size];
      (half<1>(old) + half<1>(old) + nonzero(left)).store(words);
      for (std::size_t e = 0; e < pack_size; ++e)
        writer.write(static_cast<std::uint32_t>(four[e].second()),
                     static_cast<std::uint32_t>(words[e]));
    }
    writer.remove(static_cast<std::uint32_t>(entries[n - 1].second()), padding);
    found.size += n;
  }

 private:
  static constexpr std::size_t far = 24;  // entries between a prefetch and its use

  std::unique_ptr<Entry[]> entries_;
  Lister lister_{nullptr};
};

// The weights at the start of a burst, and the counts of a stage, for all features.
template <class Real>
class Sweep {
  using Cell = PathCell<Real>;
  using Count = Whole<Real>;

 public:
  static constexpr std::int64_t longest = 0x7FFF;  // steps of a burst

  // Lists nothing.
  struct NoLister {
    template <class Key>
    void operator()(const Four<Key>&, const Four<Cell>&) {}
  };

  // Call it before a path's first burst of a stage.
  void begin(const DenseStore<Cell>& store) {
    const std::size_t width = store.width();
    starts_.resize(width), counts_.resize(width);
    const Cell* cells = store.data();
    Real* starts = starts_.data();
    for (std::size_t j = 0; j < width; j += pack_size)
      half<0>(Four<Cell>{cells[j], cells[j + 1], cells[j + 2], cells[j + 3]}).store(starts + j);
  }

  // `most_steps`: of a burst.
  void truncate(DenseStore<Cell>& store, Truncation<Real> truncation, std::int64_t most_steps,
                Ratios<Real>& found) {
    const std::size_t width = store.width();
    if (++bursts_ == 256 || bursts_ * most_steps > longest) spill();
    Cell* cells = store.data();
    Real *starts = starts_.data(), *ratios = found.room(width);
    Count* counts = counts_.data();
    std::size_t n = 0;
    const auto none = Pack<Real>::all(-1);
    for (std::size_t from = 0; from < width; from += block) {
      const std::size_t to = std::min<std::size_t>(width, from + block);
      Real dense[block];
      for (std::size_t j = from; j < to; j += pack_size) {
        const Four<Cell> old{cells[j], cells[j + 1], cells[j + 2], cells[j + 3]};
        const Pack<Real> w = half<0>(old);
        const Pack<Count> k = half<1>(old);
        const Pack<Real> steps = Pack<Real>::from(k);
        const Pack<Real> ratio = absolute(w - Pack<Real>::load(starts + j)) / steps;
        Pack<Real>::where_positive(k, ratio, none).store(dense + (j - from));
        const Pack<Real> left = Pack<Real>::where_positive(k, truncation(w, steps), w);
        left.store(starts + j);
        Four<Cell> now;
        zip(left, k - Pack<Count>::if_positive(k, k), now);
        cells[j] = now.a, cells[j + 1] = now.b, cells[j + 2] = now.c, cells[j + 3] = now.d;
        const auto seen = ((k << 16) + Pack<Count>::all(1 << 8)) + nonzero(left);
        (Pack<Count>::load(counts + j) + Pack<Count>::if_positive(k, seen)).store(counts + j);
      }
      for (std::size_t j = 0; j < to - from; ++j) {  // without branches
        ratios[n] = dense[j];
        n += !std::signbit(dense[j]);
      }
    }
    found.size += n;
  }

  // Calls f(b, kb, k) with the counts of a feature in this stage, and resets them.
  template <class F>
  [[gnu::always_inline]] void take(std::size_t j, const F& f) {
    Totals sum = totals_.empty() ? Totals{} : totals_[j];
    sum.add(counts_[j]);
    if (sum.kb == 0) return;
    f(sum.b, sum.kb, sum.k);
    counts_[j] = 0;
    if (!totals_.empty()) totals_[j] = {};
  }
  // Call it after take() of all features.
  void end_stage() { bursts_ = 0; }

 private:
  static constexpr std::size_t block = 256;

  struct Totals {
    std::uint32_t b = 0, kb = 0, k = 0;
    void add(Count count) {
      const auto word = static_cast<std::uint32_t>(count);
      b += word & 0xFF, kb += word >> 8 & 0xFF, k += word >> 16;
    }
  };

  // Counts have few bits, so that weights, starts and counts stay in the cache. Before they
  // overflow, they are added to wider totals.
  void spill() {
    totals_.resize(counts_.size());
    for (std::size_t j = 0; j < counts_.size(); ++j) totals_[j].add(counts_[j]);
    std::fill(counts_.begin(), counts_.end(), 0);
    bursts_ = 1;
  }

  std::vector<Real> starts_;
  std::vector<Count> counts_;  // b and kb in 8 bits each, k in 15
  std::vector<Totals> totals_;
  std::int64_t bursts_ = 0;  // since the last spill()
};

}  // namespace thresher
