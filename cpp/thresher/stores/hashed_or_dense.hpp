// Cells in a hash table, or in an array where that takes no more memory.
//
// A hash table takes 2 to 6 slots for a cell, with its key; and while it is rebuilt, it is there
// twice. If the keys are below a known width, and an array with a cell for every key takes no more
// bytes than two tables, the cells move to an array, which needs no search and is never rebuilt.
// They move back when a sweep has left few of them, or when the width grows too much. A fresh cell
// is zero in both, so results do not depend on moves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "thresher/stores/dense.hpp"
#include "thresher/stores/hashed.hpp"
#include "thresher/stores/places.hpp"

namespace thresher {

template <class Cell>
class HashedOrDenseStore {
  using Hashed = HashedStore<Cell>;
  using Dense = DenseStore<Cell>;

 public:
  using Places = HashedPlaces;

  explicit HashedOrDenseStore(std::uint64_t width) : hashed_(width) {}

  std::uint64_t width() const { return hashed_.width(); }  // 0: any key
  std::size_t bytes() const { return dense_ ? dense_->bytes() : hashed_.bytes(); }

  // Accepts keys below a larger width; 0: any key.
  void widen(std::uint64_t width) {
    hashed_.widen(width);
    if (!dense_ || hashed_.width() == dense_->width()) return;
    if (!prefers_dense(widest_)) {
      std::uint64_t cells = 0;
      dense_->each([&](std::uint64_t, const Cell&) { ++cells; });
      widest_ = widest_for(cells);
    }
    if (prefers_dense(widest_)) dense_->widen(hashed_.width());
    else move_to_table([](const Cell& cell) { return cell == Cell{}; });
  }

  // Makes room for n more cells; may drop cells for which dead(cell) is true.
  template <class Dead>
  void reserve(std::size_t n, Dead&& dead) {
    if (dense_ || !hashed_.lacks(n)) return;
    // Living cells are only counted if the array may be smaller.
    if (prefers_dense(widest_for(hashed_.used() + n)))
      if (const std::uint64_t widest = widest_for(hashed_.living(dead) + n); prefers_dense(widest))
        return move_to_array(widest);
    hashed_.reserve(n, dead);
  }

  // These functions are described in DenseStore and HashedStore.
  template <class Key, class Open>
  [[gnu::always_inline]] void gather(const Key* keys, std::size_t from, std::size_t to,
                                     const Key* later, std::size_t fetched, Places& places,
                                     const Open& open) const {
    typename Dense::Places none;
    if (dense_) dense_->gather(keys, from, to, later, fetched, none, open);
    else hashed_.gather(keys, from, to, later, fetched, places, open);
  }

  template <class Key>
  void copy(const Key* keys, std::size_t n, const Key* later, std::size_t fetched, Cell* to) const {
    if (dense_) dense_->copy(keys, n, later, fetched, to);
    else hashed_.copy(keys, n, later, fetched, to);
  }

  template <class Key, class Close>
  [[gnu::always_inline]] void scatter(const Key* keys, std::size_t n, const Places& places,
                                      const Close& close) {
    if (dense_) dense_->scatter(keys, n, typename Dense::Places{}, close);
    else hashed_.scatter(keys, n, places, close);
  }

  void put(std::uint64_t key, const Cell& cell) {
    if (width() != 0 && key >= width())
      throw std::invalid_argument("a feature number is not below the width");
    reserve(1, [](const Cell&) { return false; });
    if (dense_) dense_->put(key, cell);
    else hashed_.put(key, cell);
  }

  Cell find(std::uint64_t key) const {
    if (!dense_) return hashed_.find(key);
    return key < dense_->width() ? dense_->find(key) : Cell{};
  }

  template <class F>
  void each(F&& f) const {
    if (dense_) dense_->each(f);
    else hashed_.each(f);
  }

  template <class F>
  std::int64_t count(F&& f) const {
    return dense_ ? dense_->count(f) : hashed_.count(f);
  }

  template <class Settle>
  void sweep(Settle&& settle) {
    if (dense_) dense_->sweep(settle);
    else hashed_.sweep(settle);
  }

  // Drops all cells for which dead(cell) is true, if their memory can be freed.
  template <class Dead>
  void drop(Dead&& dead) {
    if (!dense_) return hashed_.drop(dead);
    std::uint64_t living = 0;
    dense_->each([&](std::uint64_t, const Cell& cell) { living += !dead(cell); });
    if (widest_for(living) <= width() / 2) move_to_table(dead);
  }

  // The cells of all keys below the width, if they are in an array; else null.
  const Cell* data() const { return dense_ ? dense_->data() : nullptr; }

 private:
  // The largest width whose array takes no more memory than two tables for `cells`.
  static std::uint64_t widest_for(std::uint64_t cells) {
    return 2 * Hashed::bytes_for(cells) / sizeof(Cell);
  }
  bool prefers_dense(std::uint64_t widest) const { return width() != 0 && width() <= widest; }

  void move_to_array(std::uint64_t widest) {
    Dense all(width());
    hashed_.each([&](std::uint64_t key, const Cell& cell) { all.put(key, cell); });
    hashed_ = Hashed(width());
    dense_.emplace(std::move(all));
    widest_ = widest;
  }

  template <class Dead>
  void move_to_table(Dead&& dead) {
    std::uint64_t living = 0;
    dense_->each([&](std::uint64_t, const Cell& cell) { living += !dead(cell); });
    Hashed table(width());
    table.reserve(living, dead);
    dense_->each([&](std::uint64_t key, const Cell& cell) {
      if (!dead(cell)) table.put(key, cell);
    });
    hashed_ = std::move(table);
    dense_.reset();
  }

  Hashed hashed_;               // empty if there is an array
  std::optional<Dense> dense_;  // none: the cells are in the table
  std::uint64_t widest_ = 0;    // as widest_for(); for the cells that were counted last
};

}  // namespace thresher
