// Cells in an array, one for every feature number below the width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "thresher/core/pack.hpp"
#include "thresher/stores/pages.hpp"

namespace thresher {

template <class Cell>
class DenseStore {
 public:
  struct Places {};  // nothing: a key is the index of its cell

  explicit DenseStore(std::uint64_t width) : cells_(width) {
    if (width == 0) throw std::invalid_argument("a dense store needs a width");
  }

  std::uint64_t width() const { return cells_.size(); }
  std::size_t bytes() const { return cells_.size() * sizeof(Cell); }

  // Accepts feature numbers below a larger width.
  void widen(std::uint64_t width) {
    if (width > cells_.size()) cells_.grow(width);
  }

  template <class Dead>
  void reserve(std::size_t, Dead&&) {}

  // Calls open(k, cells of keys[k..k+3]) for k = from, from + 4, ... below `to`; after the last key
  // its cell is repeated. Prefetches the cells of later[k], for k < fetched. If open has a third
  // parameter, it gets the four keys.
  template <class Key, class Open>
  [[gnu::always_inline]] void gather(const Key* keys, std::size_t from, std::size_t to,
                                     const Key* later, std::size_t fetched, Places&,
                                     const Open& open) const {
    const Cell* cells = cells_.data();
    std::size_t k = from;
    for (; k + pack_size <= to; k += pack_size) {
      if (k + pack_size <= fetched) [[likely]]
        for (std::size_t i = 0; i < pack_size; ++i) __builtin_prefetch(cells + later[k + i], 1);
      call(open, k, cells, Four<Key>{keys[k], keys[k + 1], keys[k + 2], keys[k + 3]});
    }
    if (k < to) {  // without branches on the length, which would be mispredicted
      if (k < fetched)
        for (std::size_t i = 0; i < pack_size - 1; ++i)
          __builtin_prefetch(cells + later[std::min(k + i, fetched - 1)], 1);
      const std::size_t last = to - 1;
      call(
          open, k, cells,
          Four<Key>{keys[k], keys[std::min(k + 1, last)], keys[std::min(k + 2, last)], keys[last]});
    }
  }

  // Copies the cells of n keys. later[k], for k < fetched, are keys whose cells it prefetches.
  template <class Key>
  void copy(const Key* keys, std::size_t n, const Key* later, std::size_t fetched, Cell* to) const {
    const Cell* cells = cells_.data();
    for (std::size_t k = 0; k < n; ++k) {
      if (k < fetched) __builtin_prefetch(cells + later[k]);
      to[k] = cells[keys[k]];
    }
  }

  // Sets the cells of keys[k..k+3] to what close(k, pack) writes. The keys are distinct, and
  // gather() read their cells before.
  template <class Key, class Close>
  [[gnu::always_inline]] void scatter(const Key* keys, std::size_t n, const Places&,
                                      const Close& close) {
    Cell* cells = cells_.data();
    std::size_t k = 0;
    for (; k + pack_size <= n; k += pack_size) {
      Four<Cell> pack;
      close(k, pack);
      cells[keys[k]] = pack.a, cells[keys[k + 1]] = pack.b;
      cells[keys[k + 2]] = pack.c, cells[keys[k + 3]] = pack.d;
    }
    if (k < n) {  // backwards: the cells of real keys overwrite the padding
      Four<Cell> pack;
      close(k, pack);
      const std::size_t last = n - 1;
      cells[keys[last]] = pack.d, cells[keys[std::min(k + 2, last)]] = pack.c;
      cells[keys[std::min(k + 1, last)]] = pack.b, cells[keys[k]] = pack.a;
    }
  }

  void put(std::uint64_t key, const Cell& cell) {
    if (key >= width()) throw std::invalid_argument("a feature number is not below the width");
    cells_[key] = cell;
  }

  const Cell& find(std::uint64_t key) const { return cells_[key]; }

  // Calls f(key, cell) for every cell that is not fresh, in the order of keys.
  template <class F>
  void each(F&& f) const {
    for (std::uint64_t key = 0; key < width(); ++key)
      if (!(cells_[key] == Cell{})) f(key, cells_[key]);
  }

  // The number of cells for which f(cell) is true; it must be false for fresh cells. A branch on
  // fresh cells would be mispredicted.
  template <class F>
  std::int64_t count(F&& f) const {
    std::int64_t found = 0;
    for (std::uint64_t key = 0; key < width(); ++key) found += f(cells_[key]);
    return found;
  }

  // Sets every cell to settle(cell).
  template <class Settle>
  void sweep(Settle&& settle) {
    for (std::uint64_t key = 0; key < width(); ++key)
      if (!(cells_[key] == Cell{})) cells_[key] = settle(cells_[key]);
  }

  template <class Dead>
  void drop(Dead&&) {}

  Cell* data() { return cells_.data(); }
  const Cell* data() const { return cells_.data(); }

 private:
  template <class Key, class Open>
  [[gnu::always_inline]] static void call(const Open& open, std::size_t k, const Cell* cells,
                                          const Four<Key>& keys) {
    const Four<Cell> four{cells[keys.a], cells[keys.b], cells[keys.c], cells[keys.d]};
    if constexpr (std::is_invocable_v<Open, std::size_t, Four<Cell>, Four<Key>>)
      open(k, four, keys);
    else open(k, four);
  }

  ZeroedArray<Cell> cells_;
};

}  // namespace thresher
