// Cells by any 64-bit key, in a table that follows the living ones.
//
// Open addressing with linear probing: key and cell lie side by side, so that a look-up touches one
// cache line. Nothing is deleted one by one. When the table is full, the dead cells are left behind
// while it is rebuilt, large enough for three times the living; after a sweep too. Rebuilding reads
// cells and never changes a living one, so results do not depend on when it happens.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "thresher/core/pack.hpp"
#include "thresher/stores/pages.hpp"

namespace thresher {

template <class Cell>
class HashedStore {
 public:
  using Places = std::vector<std::uint64_t>;  // where the cells of a gathered row are

  explicit HashedStore(std::uint64_t width) : width_(width), slots_(smallest + 1) {}

  std::uint64_t width() const { return width_; }  // 0: any key
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

  // Lets keys up to a larger width in; 0: any key.
  void widen(std::uint64_t width) {
    width_ = width == 0 || width_ == 0 ? 0 : std::max(width_, width);
  }

  // Makes room for n more cells; dead(cell) tells which may go.
  template <class Dead>
  void reserve(std::size_t n, Dead&& dead) {
    if (used_ + n > limit()) rebuild(n, dead);
  }

  // As in DenseStore. An absent key opens the zero bytes of an empty slot, which are a fresh cell; it
  // is inserted when it is closed.
  template <class Key, class Open>
  [[gnu::always_inline]] void gather(const Key* keys, std::size_t from, std::size_t to,
                                     const Key* later, std::size_t fetched, Places& places,
                                     const Open& open) const {
    if (places.size() < to) places.resize(to);
    std::uint64_t* place = places.data();
    const Table table(slots_);
    const auto fetch = [=](std::size_t i) __attribute__((always_inline)) {
      __builtin_prefetch(table.slots + table.home(stored(later[i])), 1);
    };
    const auto find = [=](std::size_t i) __attribute__((always_inline)) {
      const std::uint64_t wanted = stored(keys[i]);
      place[i] = table.probe(table.home(wanted), wanted);
      return table.slots[place[i]].cell;
    };
    std::size_t k = from;
    for (; k + pack_size <= to; k += pack_size) {
      if (k + pack_size <= fetched) [[likely]]
        for (std::size_t i = 0; i < pack_size; ++i) fetch(k + i);
      open(k, Four<Cell>{find(k), find(k + 1), find(k + 2), find(k + 3)});
    }
    if (k < to) {
      if (k < fetched)
        for (std::size_t i = 0; i < pack_size - 1; ++i) fetch(std::min(k + i, fetched - 1));
      const std::size_t last = to - 1;
      open(k, Four<Cell>{find(k), find(std::min(k + 1, last)), find(std::min(k + 2, last)),
                         find(last)});
    }
  }

  template <class Key>
  void copy(const Key* keys, std::size_t n, const Key* later, std::size_t fetched, Cell* to) const {
    const Table table(slots_);
    for (std::size_t k = 0; k < n; ++k) {
      if (k < fetched) __builtin_prefetch(table.slots + table.home(stored(later[k])));
      const std::uint64_t wanted = stored(keys[k]);
      to[k] = table.slots[table.probe(table.home(wanted), wanted)].cell;
    }
  }

  template <class Key, class Close>
  [[gnu::always_inline]] void scatter(const Key* keys, std::size_t n, const Places& places,
                                      const Close& close) {
    const std::uint64_t* place = places.data();
    const Table table(slots_);
    std::uint64_t inserted = 0;
    // A key of the same row may have taken the empty place meanwhile: put() probes on from there.
    const auto put_back = [&](std::size_t i, const Cell& cell) __attribute__((always_inline)) {
      inserted += table.put(place[i], stored(keys[i]), cell);
    };
    std::size_t k = 0;
    for (; k + pack_size <= n; k += pack_size) {
      Four<Cell> pack;
      close(k, pack);
      put_back(k, pack.a), put_back(k + 1, pack.b);
      put_back(k + 2, pack.c), put_back(k + 3, pack.d);
    }
    if (k < n) {  // backwards: see DenseStore
      Four<Cell> pack;
      close(k, pack);
      const std::size_t last = n - 1;
      put_back(last, pack.d), put_back(std::min(k + 2, last), pack.c);
      put_back(std::min(k + 1, last), pack.b), put_back(k, pack.a);
    }
    used_ += inserted;
  }

  void put(std::uint64_t key, const Cell& cell) {
    reserve(1, [](const Cell&) { return false; });
    const Table table(slots_);
    const std::uint64_t wanted = stored(key);
    used_ += table.put(table.home(wanted), wanted, cell);
  }

  Cell find(std::uint64_t key) const {
    const Table table(slots_);
    return table.slots[table.probe(table.home(stored(key)), stored(key))].cell;
  }

  // The cell of a key, a fresh one where there was none. There must be room for it, see reserve(); it stays
  // where it is until the next one is made.
  Cell& claim(std::uint64_t key) {
    const Table table(slots_);
    Slot& slot = table.slots[table.probe(table.home(stored(key)), stored(key))];
    used_ += slot.key != stored(key);
    slot.key = stored(key);
    return slot.cell;
  }

  // f(key, cell) for every cell, in no order that means anything.
  template <class F>
  void each(F&& f) const {
    for (std::uint64_t i = 0; i < slots_.size(); ++i)
      if (taken(i)) f(original(slots_[i].key), slots_[i].cell);
  }

  // How many cells f(cell) is true for; it must be false for fresh cells.
  template <class F>
  std::int64_t count(F&& f) const {
    std::int64_t found = 0;
    for (std::uint64_t i = 0; i < slots_.size(); ++i) found += f(slots_[i].cell);
    return found;
  }

  template <class Settle>
  void sweep(Settle&& settle) {
    for (std::uint64_t i = 0; i < slots_.size(); ++i)
      if (taken(i)) slots_[i].cell = settle(slots_[i].cell);
  }

  // Forgets the dead cells and gives their memory back.
  template <class Dead>
  void drop(Dead&& dead) {
    rebuild(0, dead);
  }

  void clear() {
    slots_ = ZeroedArray<Slot>(smallest + 1);
    used_ = 0;
  }

 private:
  struct Slot {
    std::uint64_t key;
    Cell cell;
  };

  static constexpr std::uint64_t smallest = 1024;
  static constexpr std::uint64_t empty = 0;

  // Keys are stored mixed: x -> multiplier * ~x is one to one on 64-bit numbers and spreads
  // neighbours over the table. The one key it maps to `empty`, 2^64 - 1, has slot 0 for itself, in
  // front of the table.
  static constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15u;
  static constexpr std::uint64_t inverse = 0xF1DE83E19937733Du;

  template <class Key>
  static std::uint64_t stored(Key key) {
    return ~static_cast<std::uint64_t>(static_cast<std::int64_t>(key)) * multiplier;
  }
  static std::uint64_t original(std::uint64_t mixed) { return ~(mixed * inverse); }

  // The slots, with what finds a place in them: a local copy stays in registers.
  struct Table {
    Slot* slots;
    std::uint64_t mask;
    int shift;

    explicit Table(const ZeroedArray<Slot>& array)
        : slots(const_cast<Slot*>(array.data())),  // only scatter, put and rebuild write
          mask(array.size() - 2),
          shift(64 - std::countr_one(mask)) {}

    std::uint64_t home(std::uint64_t mixed) const { return (mixed >> shift) + (mixed != empty); }

    // Where `wanted` is, or the empty place where it would go, looking from `place` on. An empty slot
    // has key 0 (`empty`).
    std::uint64_t probe(std::uint64_t place, std::uint64_t wanted) const {
      // The minimum is 0 if one of them is. Two branches would be guessed wrong more often than one.
      while (std::min(slots[place].key ^ wanted, slots[place].key) != 0) place = (place & mask) + 1;
      return place;
    }

    // True if the key is new.
    bool put(std::uint64_t place, std::uint64_t wanted, const Cell& cell) const {
      Slot& slot = slots[probe(place, wanted)];
      const bool added = slot.key != wanted;
      slot = Slot{wanted, cell};
      return added;
    }
  };

  std::uint64_t limit() const { return slots_.size() / 10 * 7; }

  bool taken(std::uint64_t i) const {
    return slots_[i].key != empty || (i == 0 && !(slots_[0].cell == Cell{}));
  }

  // At most a third full, so that at least as many new cells as there are living ones fit in before
  // the next time. Old slots lie in the order of their homes: both tables are walked front to back.
  template <class Dead>
  void rebuild(std::size_t more, Dead&& dead) {
    const auto lives = [&](const Slot& slot) -> std::uint64_t {  // 0 or 1, without a branch
      return std::uint64_t{slot.key != empty} & std::uint64_t{!dead(slot.cell)};
    };
    std::uint64_t living = 0;
    for (std::uint64_t i = 1; i < slots_.size(); ++i) living += lives(slots_[i]);
    ZeroedArray<Slot> old(std::bit_ceil(std::max(smallest, 3 * (living + more))) + 1);
    std::swap(old, slots_);
    if (!dead(old[0].cell)) slots_[0] = old[0];
    used_ = living;
    const Table table(slots_);
    // The living of a block are listed first: whether the next slot lives, no processor can guess.
    constexpr std::uint64_t block = 256;
    static_assert(smallest % block == 0);
    std::uint64_t list[block];
    for (std::uint64_t from = 1; from < old.size(); from += block) {
      std::size_t n = 0;
      for (std::uint64_t i = from; i < from + block; ++i) list[n] = i, n += lives(old[i]);
      for (std::size_t k = 0; k < n; ++k) {
        const Slot& slot = old[list[k]];
        table.put(table.home(slot.key), slot.key, slot.cell);
      }
    }
  }

  std::uint64_t width_;
  std::uint64_t used_ = 0;  // places taken, dead cells included
  ZeroedArray<Slot> slots_;
};

}  // namespace thresher
