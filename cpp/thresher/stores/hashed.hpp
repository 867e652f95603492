// A hash table of cells, for any 64-bit keys. It grows and shrinks with the number of cells.
//
// Open addressing with linear probing: key and cell are next to each other, so that a look-up reads
// one cache line. Cells are not deleted one by one. When the table is full, and after a sweep, it
// is rebuilt without the cells that can be dropped: dead(cell) of the rule (rules/rule.hpp) decides
// which. The new table has at least three times as many slots as cells. A rebuild does not change
// the cells that are kept, and a dropped cell had no effect: results do not depend on rebuilds.
// An empty slot after the last one lets a look-up read the next slot without a test.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "thresher/core/pack.hpp"
#include "thresher/stores/pages.hpp"
#include "thresher/stores/places.hpp"

namespace thresher {

template <class Cell>
class HashedStore {
 public:
  using Places = HashedPlaces;

  explicit HashedStore(std::uint64_t width) : width_(width), slots_(smallest + 2) {}

  std::uint64_t width() const { return width_; }  // 0: any key
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }
  // The bytes of a new table with room for `cells`.
  static std::uint64_t bytes_for(std::uint64_t cells) { return slots_for(cells) * sizeof(Slot); }
  std::uint64_t used() const { return used_; }  // cells, including dead ones

  // Accepts keys below a larger width; 0: any key.
  void widen(std::uint64_t width) {
    width_ = width == 0 || width_ == 0 ? 0 : std::max(width_, width);
  }

  // Makes room for n more cells; may drop cells for which dead(cell) is true.
  template <class Dead>
  void reserve(std::size_t n, Dead&& dead) {
    if (lacks(n)) rebuild(n, dead);
  }
  // Whether n more cells need a larger table.
  bool lacks(std::size_t n) const { return used_ + n > limit(); }

  // The number of cells that reserve() would keep.
  template <class Dead>
  std::uint64_t living(Dead&& dead) const {
    const auto is_kept = keeper(dead);
    std::uint64_t kept = 0;
    for (std::uint64_t i = 1; i + 1 < slots_.size(); ++i) kept += is_kept(slots_[i]);
    return kept;
  }

  // As in DenseStore. For an absent key it reads an empty slot, whose zero bytes are a fresh cell;
  // scatter inserts the key. If the last row had new keys, this row probably has some, too.
  template <class Key, class Open>
  [[gnu::always_inline]] void gather(const Key* keys, std::size_t from, std::size_t to,
                                     const Key* later, std::size_t fetched, Places& places,
                                     const Open& open) const {
    if (places.absent) gather_by<true>(keys, from, to, later, fetched, places, open);
    else gather_by<false>(keys, from, to, later, fetched, places, open);
  }

  template <class Key>
  void copy(const Key* keys, std::size_t n, const Key* later, std::size_t fetched, Cell* to) const {
    const Table table(slots_);
    for (std::size_t k = 0; k < n; ++k) {
      if (k < fetched) __builtin_prefetch(table.slots + table.hint(stored(later[k])));
      const std::uint64_t wanted = stored(keys[k]);
      to[k] = table.slots[table.find(wanted)].cell;
    }
  }

  template <class Key, class Close>
  [[gnu::always_inline]] void scatter(const Key* keys, std::size_t n, const Places& places,
                                      const Close& close) {
    const std::uint64_t* place = places.at.data();
    const Table table(slots_);
    if (!places.absent) [[likely]] {  // all keys have their slots
      scatter_to(n, close, [=](std::size_t i, const Cell& cell) __attribute__((always_inline)) {
        table.slots[place[i]].cell = cell;
      });
      return;
    }
    std::uint64_t inserted = 0;
    // Another key of the row may now be in the empty slot: put() continues to search from there.
    scatter_to(n, close, [&](std::size_t i, const Cell& cell) __attribute__((always_inline)) {
      inserted += table.put(place[i], stored(keys[i]), cell);
    });
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

  // The cell of a key; a fresh one if there was none. Needs room for it (reserve()). The reference
  // is valid until the next call that inserts a cell.
  Cell& claim(std::uint64_t key) {
    const Table table(slots_);
    Slot& slot = table.slots[table.probe(table.home(stored(key)), stored(key))];
    used_ += slot.key != stored(key);
    slot.key = stored(key);
    return slot.cell;
  }

  // Calls f(key, cell) for every cell, in no particular order.
  template <class F>
  void each(F&& f) const {
    for (std::uint64_t i = 0; i < slots_.size(); ++i)
      if (taken(i)) f(original(slots_[i].key), slots_[i].cell);
  }

  // The number of cells for which f(cell) is true; it must be false for fresh cells.
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

  // Drops all cells for which dead(cell) is true, and frees their memory.
  template <class Dead>
  void drop(Dead&& dead) {
    rebuild(0, dead);
  }

 private:
  struct Slot {
    std::uint64_t key;
    Cell cell;
  };

  // gather(). New: whether the search is fast for new keys, too; the cells found are the same.
  template <bool New, class Key, class Open>
  [[gnu::always_inline]] void gather_by(const Key* keys, std::size_t from, std::size_t to,
                                        const Key* later, std::size_t fetched, Places& places,
                                        const Open& open) const {
    if (places.at.size() < to) places.at.resize(to);
    std::uint64_t* place = places.at.data();
    const Table table(slots_);
    std::uint64_t absent = from > 0 && places.absent;
    const auto fetch = [=](std::size_t i) __attribute__((always_inline)) {
      __builtin_prefetch(table.slots + table.hint(stored(later[i])), 1);
    };
    const auto find = [&](std::size_t i) __attribute__((always_inline)) {
      const std::uint64_t wanted = stored(keys[i]);
      const std::uint64_t found = table.template find<New>(wanted);
      place[i] = found;
      absent |= table.slots[found].key == empty;
      return table.slots[found].cell;
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
    places.absent = absent;
  }

  // Calls write(i, cell) for each of n cells that close() makes.
  template <class Close, class Write>
  [[gnu::always_inline]] static void scatter_to(std::size_t n, const Close& close,
                                                const Write& write) {
    std::size_t k = 0;
    for (; k + pack_size <= n; k += pack_size) {
      Four<Cell> pack;
      close(k, pack);
      write(k, pack.a), write(k + 1, pack.b), write(k + 2, pack.c), write(k + 3, pack.d);
    }
    if (k < n) {  // backwards: see DenseStore
      Four<Cell> pack;
      close(k, pack);
      const std::size_t last = n - 1;
      write(last, pack.d), write(std::min(k + 2, last), pack.c);
      write(std::min(k + 1, last), pack.b), write(k, pack.a);
    }
  }

  static constexpr std::uint64_t smallest = 1024;
  static constexpr std::uint64_t empty = 0;

  // A slot stores multiplier * ~key instead of the key. This map is one-to-one on 64-bit numbers,
  // and spreads consecutive keys over the table. The key 2^64 - 1 is mapped to 0, which also marks
  // empty slots: slot 0, before the table, is reserved for this key.
  static constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15u;
  static constexpr std::uint64_t inverse = 0xF1DE83E19937733Du;

  template <class Key>
  static std::uint64_t stored(Key key) {
    return ~static_cast<std::uint64_t>(static_cast<std::int64_t>(key)) * multiplier;
  }
  static std::uint64_t original(std::uint64_t mixed) { return ~(mixed * inverse); }

  // The slots, and how to find a key in them. A local copy stays in registers.
  struct Table {
    Slot* slots;
    std::uint64_t mask;
    int shift;

    explicit Table(const ZeroedArray<Slot>& array)
        : slots(const_cast<Slot*>(array.data())),  // only scatter, put and rebuild write
          mask(array.size() - 3),
          shift(64 - std::countr_one(mask)) {}

    // The first slot to look in; slot 0 is reserved for one key.
    [[gnu::always_inline]] std::uint64_t home(std::uint64_t mixed) const {
      return hint(mixed) - (mixed == empty);
    }
    // The same for all other keys.
    [[gnu::always_inline]] std::uint64_t hint(std::uint64_t mixed) const {
      return (mixed >> shift) + 1;
    }

    // probe(home(wanted), wanted). Most keys are in one of two slots: the step from the first to
    // the second has no branch, which would be mispredicted. With New, the search of a new key has
    // none either (1.15x if a row has a few new keys; 0.8x if it has none).
    template <bool New = false>
    [[gnu::always_inline]] std::uint64_t find(std::uint64_t wanted) const {
      const auto missed = [=, this](std::uint64_t place) __attribute__((always_inline)) {
        return New ? goes_on(place, wanted) : slots[place].key != wanted;
      };
      std::uint64_t place = hint(wanted);
      if constexpr (New) {  // after the last slot comes the first one
        const std::uint64_t step = -std::uint64_t{missed(place)};  // all bits set: true
        place = (place & (mask | ~step)) - step;
      } else {
        place += missed(place);
      }
      if (missed(place) || wanted == empty) [[unlikely]]
        place = probe(home(wanted), wanted);
      return place;
    }

    // Whether a slot has another key: neither `wanted` nor 0 (`empty`). The minimum is 0 if one of
    // them is 0. Two branches would be mispredicted more often than one.
    [[gnu::always_inline]] bool goes_on(std::uint64_t place, std::uint64_t wanted) const {
      return std::min(slots[place].key ^ wanted, slots[place].key) != 0;
    }

    // The slot of `wanted`, or the empty slot for it; the search starts at `place`.
    std::uint64_t probe(std::uint64_t place, std::uint64_t wanted) const {
      while (goes_on(place, wanted)) place = (place & mask) + 1;
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

  std::uint64_t limit() const { return slots_.size() / 2; }

  bool taken(std::uint64_t i) const {
    return slots_[i].key != empty || (i == 0 && !(slots_[0].cell == Cell{}));
  }

  // dead.now() is a faster test, which is valid until the next step; not every rule has one.
  template <class Dead>
  static auto snapshot(const Dead& dead) {
    if constexpr (requires { dead.now(); }) return dead.now();
    else return [&dead](const Cell& cell) { return dead(cell); };
  }

  // Tells whether a slot has a cell that is not dead: 0 or 1, without a branch. As snapshot().
  template <class Dead>
  static auto keeper(const Dead& dead) {
    return [is_dead = snapshot(dead)](const Slot& slot) -> std::uint64_t {
      return std::uint64_t{slot.key != empty} & std::uint64_t{!is_dead(slot.cell)};
    };
  }

  static std::uint64_t slots_for(std::uint64_t cells) {
    return std::bit_ceil(std::max(smallest, 3 * cells)) + 2;
  }

  // The new table is at most a third full, and a rebuild is due when it is half full. Slots are
  // ordered by home(key) in both tables, so one is read and the other is written from front to
  // back.
  template <class Dead>
  void rebuild(std::size_t more, Dead&& dead) {
    const auto is_kept = keeper(dead);
    const std::uint64_t kept = living(dead);
    ZeroedArray<Slot> old(slots_for(kept + more));
    std::swap(old, slots_);
    if (!dead(old[0].cell)) slots_[0] = old[0];
    used_ = kept;
    const Table table(slots_);
    // First lists the slots to keep, a block at a time: a branch per slot would be mispredicted.
    constexpr std::uint64_t block = 256;
    static_assert(smallest % block == 0);
    std::uint64_t list[block];
    for (std::uint64_t from = 1; from + 1 < old.size(); from += block) {
      std::size_t n = 0;
      for (std::uint64_t i = from; i < from + block; ++i) list[n] = i, n += is_kept(old[i]);
      for (std::size_t k = 0; k < n; ++k) {
        const Slot& slot = old[list[k]];
        table.put(table.home(slot.key), slot.key, slot.cell);
      }
    }
  }

  std::uint64_t width_;
  std::uint64_t used_ = 0;  // slots in use, including dead cells
  ZeroedArray<Slot> slots_;
};

}  // namespace thresher
