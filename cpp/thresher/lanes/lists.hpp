// Short lists of (class, weight), one for each feature with nonzero weights.
//
// A list occupies a block: its head, then the entries. Blocks have sizes of 1, 2, 3, 4, 6, 8, 12,
// ... entries, so that at most a third of a block is unused. A released block is reused for the
// next list of its size. Blocks are cut from chunks that never move. If entries would take about as
// much memory as an array with one number per class, the list becomes full: it stores that array,
// with zeros.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "thresher/stores/pages.hpp"

namespace thresher {

template <class Real>
class Lists {
 public:
  using Ref = std::uint32_t;  // number of the block's first word; 0: no list

  struct Entry {
    std::uint32_t label;
    Real weight;
  };
  struct Head {
    std::uint32_t stamp;  // the last event that was applied to all weights of the list
    std::uint32_t size : 26;
    std::uint32_t kind : 6;  // size class of the block
  };
  static_assert(sizeof(Head) == sizeof(std::uint64_t));

  static constexpr std::size_t most = 3u << 17;  // maximum number of classes

  Head& head(Ref ref) { return *reinterpret_cast<Head*>(at(ref)); }
  const Head& head(Ref ref) const { return *reinterpret_cast<const Head*>(at(ref)); }

  // A full list has an array() of the weights of classes 0 .. size - 1; other lists have entries().
  bool full(Ref ref) const { return head(ref).kind == full_kind; }
  Entry* entries(Ref ref) { return reinterpret_cast<Entry*>(at(ref) + 1); }
  const Entry* entries(Ref ref) const { return reinterpret_cast<const Entry*>(at(ref) + 1); }
  Real* array(Ref ref) { return reinterpret_cast<Real*>(at(ref) + 1); }
  const Real* array(Ref ref) const { return reinterpret_cast<const Real*>(at(ref) + 1); }

  // Prefetch the first cache line of a list; then, when it has arrived, some more.
  void prefetch(Ref ref) const { __builtin_prefetch(at(ref), 1); }
  void prefetch_rest(Ref ref) const {
    const std::size_t size = std::min<std::size_t>(words_of(head(ref)), 16 * line);
    for (std::size_t i = line; i < size; i += line) __builtin_prefetch(at(ref) + i, 1);
  }

  // f(class, weight) for all stored weights that are not zero; f may change them.
  template <class F>
  void each(Ref ref, F&& f) {
    if (full(ref)) {
      Real* const w = array(ref);
      for (std::uint32_t c = 0; c < head(ref).size; ++c)
        if (w[c] != 0) f(c, w[c]);
    } else {
      Entry* const entry = entries(ref);
      for (std::size_t i = 0; i < head(ref).size; ++i)
        if (entry[i].weight != 0) f(entry[i].label, entry[i].weight);
    }
  }
  template <class F>
  void each(Ref ref, F&& f) const {
    const_cast<Lists&>(*this).each(ref, [&](std::uint32_t label, const Real& w) { f(label, w); });
  }

  // Makes an empty list with room for `size` of `classes` classes.
  Ref make(std::size_t size, std::size_t classes, std::uint32_t stamp) {
    const std::uint32_t kind = kind_for(size);
    if (!fills(words(kind), classes)) return take(kind, 0, words(kind), stamp);
    if (classes != classes_) classes_ = classes, free_[full_kind] = 0;
    const Ref ref = take(full_kind, classes, full_words(classes), stamp);
    std::fill_n(array(ref), classes, Real(0));
    return ref;
  }

  void release(Ref ref) {
    const Head head = this->head(ref);
    used_ -= words_of(head);
    if (head.kind == full_kind && head.size != classes_) return;  // its size is no longer used
    this->head(ref).stamp = free_[head.kind];
    free_[head.kind] = ref;
  }

  // Adds the weight of a class that the list does not have. Returns the list, which may have moved.
  Ref add(Ref ref, std::uint32_t label, Real weight, std::size_t classes) {
    const Head head = this->head(ref);
    if (full(ref) ? label >= head.size : head.size == capacity(head.kind))
      ref = moved(ref, full(ref) ? classes : head.size + 1, classes);
    put(ref, label, weight);
    return ref;
  }

  // Removes the weights for which keep(weight) is false. Returns the list, which may have moved to
  // a smaller block; 0 if no weight is left.
  template <class Keep>
  Ref filter(Ref ref, Keep&& keep) {
    std::size_t kept = 0;
    each(ref, [&](std::uint32_t, Real& w) {
      if (keep(w)) ++kept;
      else w = 0;
    });
    if (kept == 0) {
      release(ref);
      return 0;
    }
    const Head head = this->head(ref);
    if (full(ref))
      return fills(2 * words(kind_for(kept)), head.size) ? ref : moved(ref, kept, head.size);
    if (kind_for(kept) < head.kind) return moved(ref, kept, most);
    Entry* const begin = entries(ref);
    std::remove_if(begin, begin + head.size, [](const Entry& entry) { return entry.weight == 0; });
    this->head(ref).size = static_cast<std::uint32_t>(kept) & size_mask;
    return ref;
  }

  std::size_t bytes() const { return chunks_.size() * chunk * sizeof(std::uint64_t); }
  std::size_t used_bytes() const { return used_ * sizeof(std::uint64_t); }

 private:
  static constexpr std::size_t chunk_bits = 20, chunk = std::size_t{1} << chunk_bits;  // words
  static constexpr std::size_t entry_words = sizeof(Entry) / sizeof(std::uint64_t);
  static constexpr std::uint32_t size_mask = (1u << 26) - 1, full_kind = 63;
  static constexpr std::size_t line = 8;  // words of a cache line
  static_assert(1 + most * entry_words <= chunk);

  static constexpr std::size_t capacity(std::uint32_t kind) {
    if (kind == 0) return 1;
    return kind % 2 ? std::size_t{1} << (kind + 1) / 2 : std::size_t{3} << (kind / 2 - 1);
  }
  static constexpr std::size_t words(std::uint32_t kind) {
    return 1 + capacity(kind) * entry_words;
  }
  static constexpr std::size_t full_words(std::size_t classes) {
    return 1 + (classes * sizeof(Real) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  }
  // Whether a list of this many words should become full: if the array is not larger, or if the
  // list is long and the array at most 4 times larger, because adding an array to the scores takes
  // an eighth of the time.
  static bool fills(std::size_t words, std::size_t classes) {
    return (words < 32 ? words : 4 * words) >= full_words(classes);
  }
  static std::size_t words_of(const Head& head) {
    return head.kind == full_kind ? full_words(head.size) : words(head.kind);
  }
  static std::uint32_t kind_for(std::size_t size) {
    std::uint32_t kind = 0;
    while (capacity(kind) < size) ++kind;
    return kind;
  }

  std::uint64_t* at(Ref ref) { return chunks_[ref >> chunk_bits].data() + (ref & (chunk - 1)); }
  const std::uint64_t* at(Ref ref) const {
    return chunks_[ref >> chunk_bits].data() + (ref & (chunk - 1));
  }

  Ref take(std::uint32_t kind, std::size_t size, std::size_t block, std::uint32_t stamp) {
    Ref ref = free_[kind];
    if (ref) free_[kind] = head(ref).stamp;
    else ref = cut(block);
    used_ += block;
    head(ref) = Head{stamp, static_cast<std::uint32_t>(size) & size_mask, kind & 63};
    return ref;
  }

  void put(Ref ref, std::uint32_t label, Real weight) {
    if (full(ref)) array(ref)[label] = weight;
    else entries(ref)[head(ref).size++] = Entry{label, weight};
  }

  Ref moved(Ref ref, std::size_t room, std::size_t classes) {
    const Ref to = make(room, classes, head(ref).stamp);
    each(ref, [&](std::uint32_t label, Real w) { put(to, label, w); });
    release(ref);
    return to;
  }

  // Cuts a new block from the last chunk. The rest at the end of a chunk becomes free blocks.
  Ref cut(std::size_t size) {
    if (next_ + size > chunk) {
      for (std::uint32_t kind = kind_for(most); !chunks_.empty();) {
        while (kind > 0 && next_ + words(kind) > chunk) --kind;
        if (next_ + words(kind) > chunk) break;
        const Ref rest = ref_at(next_);
        head(rest) = Head{free_[kind], 0, kind & 63};
        free_[kind] = rest;
        next_ += words(kind);
      }
      if (chunks_.size() == std::size_t{1} << (32 - chunk_bits))
        throw std::length_error("more than 2^32 words of weights");
      chunks_.emplace_back(chunk);
      next_ = chunks_.size() == 1 ? 1 : 0;  // no list is at word 0
    }
    next_ += size;
    return ref_at(next_ - size);
  }
  Ref ref_at(std::size_t word) const {
    return static_cast<Ref>((chunks_.size() - 1) << chunk_bits | word);
  }

  std::vector<ZeroedArray<std::uint64_t>> chunks_;
  std::size_t next_ = chunk;    // first unused word of the last chunk
  std::size_t used_ = 0;        // words of blocks in use
  std::array<Ref, 64> free_{};  // the first free block of each kind
  std::size_t classes_ = 0;     // number of classes of the free full lists
};

}  // namespace thresher
