// Cells by any 64-bit key, in a table that follows the living ones.
//
// Open addressing with linear probing: key and cell lie side by side, so that a look-up touches one
// cache line. Nothing is deleted one by one. When the table is full, the dead cells are left behind
// while it is rebuilt, large enough for twice the living; after a sweep too. Rebuilding reads cells and never changes a
// living one, so results do not depend on when it happens.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "../pack.hpp"
#include "pages.hpp"

namespace thresher {

template <class Cell>
class HashedStore {
 public:
  using Places = std::vector<std::uint64_t>;  // where the cells of a gathered row are

  explicit HashedStore(std::uint64_t width) : width_(width), slots_(smallest + 1) {}

  std::uint64_t width() const { return width_; }  // 0: any key
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

  // Makes room for n more cells; dead(cell) tells which may go.
  template <class Dead>
  void reserve(std::size_t n, Dead&& dead) {
    if (used_ + n > limit()) rebuild(n, dead);
  }

  // As in DenseStore. An absent key opens a fresh cell; it is inserted when it is closed.
  template <class Key, class Open>
  [[gnu::always_inline]] void gather(const Key* keys, std::size_t from, std::size_t to,
                                     const Key* later, std::size_t fetched, Places& places,
                                     const Open& open) const {
    if (places.size() < to) places.resize(to);
    for (std::size_t k = from; k < to; k += pack_size) {
      Four<Cell> pack;
      for (std::size_t i = 0; i < pack_size && k + i < to; ++i) {
        if (k + i < fetched) __builtin_prefetch(slots_.data() + home(stored(later[k + i])), 1);
        const std::uint64_t wanted = stored(keys[k + i]);
        const std::uint64_t place = probe(home(wanted), wanted);
        places[k + i] = place;
        if (slots_[place].key == wanted) pack[i] = slots_[place].cell;
      }
      open(k, pack);
    }
  }

  template <class Key, class Close>
  [[gnu::always_inline]] void scatter(const Key* keys, std::size_t n, const Places& places,
                                      const Close& close) {
    for (std::size_t k = 0; k < n; k += pack_size) {
      Four<Cell> pack;
      close(k, pack);
      for (std::size_t i = 0; i < pack_size && k + i < n; ++i) {
        const std::uint64_t wanted = stored(keys[k + i]);
        // A key of the same row may have taken the empty place meanwhile: probe on from there.
        put_at(probe(places[k + i], wanted), wanted, pack[i]);
      }
    }
  }

  void put(std::uint64_t key, const Cell& cell) {
    reserve(1, [](const Cell&) { return false; });
    const std::uint64_t wanted = stored(key);
    put_at(probe(home(wanted), wanted), wanted, cell);
  }

  // f(key, cell) for every cell, in no order that means anything.
  template <class F>
  void each(F&& f) const {
    for (std::uint64_t i = 0; i < slots_.size(); ++i)
      if (taken(slots_, i)) f(original(slots_[i].key), slots_[i].cell);
  }

  template <class Settle>
  void sweep(Settle&& settle) {
    for (std::uint64_t i = 0; i < slots_.size(); ++i)
      if (taken(slots_, i)) slots_[i].cell = settle(slots_[i].cell);
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
  // neighbours over the table. The one key it maps to `empty`, 2^64 - 1, has a slot of its own behind
  // the table.
  static constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15u;
  static constexpr std::uint64_t inverse = 0xF1DE83E19937733Du;

  template <class Key>
  static std::uint64_t stored(Key key) {
    return ~static_cast<std::uint64_t>(static_cast<std::int64_t>(key)) * multiplier;
  }
  static std::uint64_t original(std::uint64_t mixed) { return ~(mixed * inverse); }

  std::uint64_t capacity() const { return slots_.size() - 1; }  // a power of 2
  std::uint64_t limit() const { return capacity() / 10 * 7; }
  std::uint64_t home(std::uint64_t mixed) const {
    return mixed == empty ? capacity() : mixed >> (64 - std::countr_zero(capacity()));
  }

  static bool taken(const ZeroedArray<Slot>& slots, std::uint64_t i) {
    return slots[i].key != empty || (i + 1 == slots.size() && !(slots[i].cell == Cell{}));
  }

  // Where `wanted` is, or the empty place where it would go, looking from `place` on.
  std::uint64_t probe(std::uint64_t place, std::uint64_t wanted) const {
    while (slots_[place].key != wanted && slots_[place].key != empty)
      place = (place + 1) & (capacity() - 1);
    return place;
  }

  void put_at(std::uint64_t place, std::uint64_t wanted, const Cell& cell) {
    used_ += slots_[place].key == empty && wanted != empty;
    slots_[place] = Slot{wanted, cell};
  }

  template <class Dead>
  void rebuild(std::size_t more, Dead&& dead) {
    std::uint64_t living = 0;
    each([&](std::uint64_t, const Cell& cell) { living += !dead(cell); });
    ZeroedArray<Slot> old(std::bit_ceil(std::max(smallest, 2 * (living + more))) + 1);
    std::swap(old, slots_);
    used_ = 0;
    for (std::uint64_t i = 0; i < old.size(); ++i)
      if (taken(old, i) && !dead(old[i].cell))
        put_at(probe(home(old[i].key), old[i].key), old[i].key, old[i].cell);
  }

  std::uint64_t width_;
  std::uint64_t used_ = 0;  // places taken, dead cells included
  ZeroedArray<Slot> slots_;
};

}  // namespace thresher
