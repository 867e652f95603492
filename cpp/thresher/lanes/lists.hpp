// Short lists of (class, weight), behind the features that have any.
//
// A list lies in a block: its head, and as many entries as the block has room for. Blocks come in sizes of
// 1, 2, 3, 4, 6, 8, 12, ... entries, so that at most a third of one is unused; a block that is given back
// waits for the next list of its size. They are cut from chunks that never move.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "../stores/pages.hpp"

namespace thresher {

template <class Real>
class Lists {
 public:
  using Ref = std::uint32_t;  // which block; 0: none

  struct Entry {
    std::uint32_t label;
    Real weight;
  };
  struct Head {
    std::uint32_t stamp;  // the last event that all weights of the list have paid
    std::uint32_t size : 26;
    std::uint32_t kind : 6;  // which size of block
  };
  static_assert(sizeof(Head) == sizeof(std::uint64_t));

  static constexpr std::size_t most = 3u << 17;  // entries of a list

  Head& head(Ref ref) { return *reinterpret_cast<Head*>(at(ref)); }
  const Head& head(Ref ref) const { return *reinterpret_cast<const Head*>(at(ref)); }
  Entry* entries(Ref ref) { return reinterpret_cast<Entry*>(at(ref) + 1); }
  const Entry* entries(Ref ref) const { return reinterpret_cast<const Entry*>(at(ref) + 1); }

  void prefetch(Ref ref) const { __builtin_prefetch(at(ref), 1); }

  // An empty list with room for `size` entries.
  Ref make(std::size_t size, std::uint32_t stamp) {
    const std::uint32_t kind = kind_for(size);
    Ref ref = free_[kind];
    if (ref) free_[kind] = head(ref).stamp;
    else ref = cut(words(kind));
    used_ += words(kind);
    head(ref) = Head{stamp, 0, kind};
    return ref;
  }

  void release(Ref ref) {
    const std::uint32_t kind = head(ref).kind;
    used_ -= words(kind);
    head(ref).stamp = free_[kind];
    free_[kind] = ref;
  }

  // Adds an entry; where the list is afterwards.
  Ref add(Ref ref, const Entry& entry) {
    if (head(ref).size == capacity(head(ref).kind)) ref = moved(ref, head(ref).size + 1);
    entries(ref)[head(ref).size++] = entry;
    return ref;
  }

  // Keeps the entries that keep(entry); where the list is afterwards: in a block that it fills.
  template <class Keep>
  Ref filter(Ref ref, Keep&& keep) {
    Entry* const begin = entries(ref);
    Entry* const end = std::remove_if(begin, begin + head(ref).size,
                                      [&](const Entry& entry) { return !keep(entry); });
    const auto size = static_cast<std::size_t>(end - begin);
    head(ref).size = static_cast<std::uint32_t>(size) & size_mask;
    if (size == 0) {
      release(ref);
      return 0;
    }
    return kind_for(size) < head(ref).kind ? moved(ref, size) : ref;
  }

  std::size_t bytes() const { return chunks_.size() * chunk * sizeof(std::uint64_t); }
  std::size_t used_bytes() const { return used_ * sizeof(std::uint64_t); }

 private:
  static constexpr std::size_t chunk_bits = 20, chunk = std::size_t{1} << chunk_bits;  // words
  static constexpr std::size_t entry_words = sizeof(Entry) / sizeof(std::uint64_t);
  static constexpr std::uint32_t size_mask = (1u << 26) - 1;
  static_assert(1 + most * entry_words <= chunk);

  static constexpr std::size_t capacity(std::uint32_t kind) {
    if (kind == 0) return 1;
    return kind % 2 ? std::size_t{1} << (kind + 1) / 2 : std::size_t{3} << (kind / 2 - 1);
  }
  static constexpr std::size_t words(std::uint32_t kind) {
    return 1 + capacity(kind) * entry_words;
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

  Ref moved(Ref ref, std::size_t room) {
    const Ref to = make(room, head(ref).stamp);
    std::copy_n(entries(ref), head(ref).size, entries(to));
    head(to).size = head(ref).size;
    release(ref);
    return to;
  }

  // A block that was never used. What is left at the end of a chunk goes to waiting blocks.
  Ref cut(std::size_t size) {
    if (next_ + size > chunk) {
      for (std::uint32_t kind = kind_for(most); chunks_.size() > 0;) {
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
  std::size_t next_ = chunk;  // word of the last chunk from which nothing was cut
  std::size_t used_ = 0;      // words of blocks in use
  std::array<Ref, 64> free_{};
};

}  // namespace thresher
