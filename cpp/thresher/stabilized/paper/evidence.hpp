// The evidence of every feature: the counts of, summed over all paths.
//
// Workers share nothing during the bursts. A feature belongs to one worker, which alone sums its
// evidence: each worker writes its counts to lists, one list for each owner. (Reading them from an
// array of another worker would cost a cache miss each.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "thresher/stabilized/paths.hpp"
#include "thresher/stores/pages.hpp"

namespace thresher {

// What a burst reports of a feature j, in one word: j, whether the burst left w_j nonzero, and k_j,
// the number of its steps that saw j.
using BurstCount = std::uint64_t;

// The counts of one worker: one list for each owner.
class CountLists {
 public:
  explicit CountLists(std::size_t workers) : lists_(workers), ends_(workers, nullptr) { clear(); }

  // Groups of 64 features have one owner, so that no two workers write to the same cache line. A
  // hash assigns the groups, as frequent features may be next to each other.
  static std::size_t owner(std::uint64_t j, std::size_t workers) {
    const std::uint32_t mixed = static_cast<std::uint32_t>(j / 64) * 0x9E3779B1u;
    return static_cast<std::size_t>((std::uint64_t{mixed} * workers) >> 32);
  }

  // Writes up to n counts; the last ones can be removed again.
  class Writer {
   public:
    [[gnu::always_inline]] void write(std::uint32_t j, std::uint32_t k_and_left) const {
      *ends_[owner(j, workers_)]++ = std::uint64_t{k_and_left} << 32 | j;
    }
    void remove(std::uint32_t j, std::size_t n) const { ends_[owner(j, workers_)] -= n; }

   private:
    friend class CountLists;
    Writer(BurstCount** ends, std::size_t workers) : ends_(ends), workers_(workers) {}
    BurstCount** ends_;
    std::size_t workers_;
  };
  Writer writer(std::size_t n) {
    for (std::size_t w = 0; w < lists_.size(); ++w)
      if (const std::size_t size = count(w); lists_[w].size() < size + n) {
        lists_[w].resize(2 * (size + n));
        ends_[w] = lists_[w].data() + size;
      }
    return {ends_.data(), lists_.size()};
  }

  void clear() {
    for (std::size_t w = 0; w < lists_.size(); ++w) ends_[w] = lists_[w].data();
  }

  // Calls f(j, k, left) for every count of the owner, and fetch(j) a little earlier.
  template <class Fetch, class F>
  void each(std::size_t worker, const Fetch& fetch, const F& f) const {
    const BurstCount* entries = lists_[worker].data();
    const std::size_t n = count(worker);
    for (std::size_t i = 0; i < n; ++i) {
      fetch(entries[std::min(i + 32, n - 1)] & 0xFFFFFFFFu);
      f(entries[i] & 0xFFFFFFFFu, static_cast<std::uint32_t>(entries[i] >> 33),
        static_cast<std::uint32_t>(entries[i] >> 32 & 1));
    }
  }

 private:
  std::size_t count(std::size_t worker) const {
    return static_cast<std::size_t>(ends_[worker] - lists_[worker].data());
  }

  std::vector<std::vector<BurstCount>> lists_;
  std::vector<BurstCount*> ends_;
};

class Evidence {
 public:
  Evidence(std::uint64_t width, double pi0, double delta_K)
      : pi0_(pi0), delta_K_(delta_K), counts_(checked(width)), facts_(width) {}

  // New evidence for as many features, as if no feature had been seen.
  Evidence empty_copy() const { return {width(), pi0_, delta_K_}; }

  std::uint64_t width() const { return counts_.size(); }
  bool purged(std::uint64_t j) const { return facts_[j].status > kept; }

  // Marks a feature as seen; returns whether it was new.
  bool see(std::uint64_t j) {
    const bool first = facts_[j].status == unseen;
    if (first) facts_[j].status = kept;
    return first;
  }

  void fetch(std::uint64_t j) const { __builtin_prefetch(counts_.data() + j, 1); }

  // Adds counts: kb bursts of this stage saw feature j, in k of their steps; b of these bursts left
  // w_j nonzero.
  [[gnu::always_inline]] void add(std::uint64_t j, std::int64_t stage, std::uint32_t b,
                                  std::uint32_t kb, std::uint32_t k) {
    Counts& c = counts_[j];
    c.updates += k;
    if (c.updates < k) ++facts_[j].carried;
    if (stage == 0) return;  // the warm-up
    const auto now = static_cast<std::uint32_t>(stage);
    if (delta_K_ > 0) facts_[j].KU += k;
    const bool reset = c.stage != now && !(delta_K_ > 0);
    c = {(reset ? 0 : c.B) + b, (reset ? 0 : c.KB) + kb, c.updates, now};
  }

  // Computes Pi_j at the end of a stage that has seen the feature; returns whether it is purged
  // now.
  [[gnu::always_inline]] bool evaluate(std::uint64_t j, std::int64_t stage) {
    Counts& c = counts_[j];
    std::uint32_t B = c.B, KB = c.KB;
    if (delta_K_ > 0) {  // counts are summed until there are enough
      Facts& f = facts_[j];
      if (KB == 0 || static_cast<double>(f.KU) <= delta_K_) return false;
      f.B = B, f.KB = KB;
      c.B = c.KB = f.KU = 0;
    }
    if (!(share(B, KB) < pi0_) || purged(j)) return false;
    facts_[j].status = kept + static_cast<std::int32_t>(stage);
    return true;
  }
  // Whether features are evaluated at the end of this stage: not in the warm-up.
  bool evaluates(std::int64_t stage) const { return stage > 0 && (pi0_ > 0 || delta_K_ > 0); }

  // Returns what was found about each feature that was seen.
  Findings findings() const {
    Findings found;
    for (std::uint64_t j = 0; j < width(); ++j) {
      const Counts& c = counts_[j];
      const Facts& f = facts_[j];
      if (f.status == unseen) continue;
      const std::uint64_t updates = std::uint64_t{f.carried} << 32 | c.updates;
      found.add(j, delta_K_ > 0 ? share(f.B, f.KB) : share(c.B, c.KB),
                static_cast<std::int64_t>(updates), f.status == kept ? -1 : f.status - kept);
    }
    return found;
  }

  template <class Archive>
  void archive(Archive& io) {
    whole(io, counts_), whole(io, facts_);
  }

  // Archives only the features that were seen.
  template <class Archive>
  void archive_known(Archive& io) {
    std::vector<std::uint32_t> keys;
    for (std::uint64_t j = 0; j < width(); ++j)
      if (facts_[j].status != unseen) keys.push_back(static_cast<std::uint32_t>(j));
    io(keys);
    std::vector<Counts> counts(keys.size());
    std::vector<Facts> facts(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] >= width()) throw std::invalid_argument("the state of a range is damaged");
      counts[i] = counts_[keys[i]], facts[i] = facts_[keys[i]];
    }
    io(counts), io(facts);
    if (counts.size() != keys.size() || facts.size() != keys.size())
      throw std::invalid_argument("the state of a range is damaged");
    for (std::size_t i = 0; i < keys.size(); ++i)
      counts_[keys[i]] = counts[i], facts_[keys[i]] = facts[i];
  }

 private:
  static constexpr std::int32_t unseen = 0, kept = 1;  // purged at the end of stage s: kept + s

  // What every burst changes.
  struct Counts {
    std::uint32_t B, KB;    // of its last stage; with delta_K, since it was last evaluated
    std::uint32_t updates;  // sum of k_j: the low half
    std::uint32_t stage;    // the last stage after the warm-up that saw the feature
  };
  // What few bursts change.
  struct Facts {
    std::uint32_t carried;  // sum of k_j: the high half
    std::uint32_t KU, B,
        KB;  // with delta_K: updates since its last evaluation, and the counts then
    std::int32_t status;
  };

  static std::uint64_t checked(std::uint64_t width) {
    if (width > 0xFFFFFFFFu) throw std::invalid_argument("width must be below 2^32");
    return width;
  }

  static double share(std::uint32_t b, std::uint32_t kb) {
    return kb ? static_cast<double>(b) / static_cast<double>(kb) : 1.0;
  }

  template <class Archive, class T>
  static void whole(Archive& io, ZeroedArray<T>& array) {
    std::vector<T> copy(array.data(), array.data() + array.size());
    io(copy);
    if (copy.size() != array.size()) throw std::invalid_argument("the learner state is damaged");
    std::copy(copy.begin(), copy.end(), array.data());
  }

  double pi0_, delta_K_;
  ZeroedArray<Counts> counts_;
  ZeroedArray<Facts> facts_;
};

}  // namespace thresher
