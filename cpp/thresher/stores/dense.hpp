// Cells in an array, one for every feature number below the width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "pages.hpp"

namespace thresher {

template <class Cell>
class DenseStore {
 public:
  struct Places {};  // a key is its cell's place

  explicit DenseStore(std::uint64_t width) : cells_(width) {
    if (width == 0) throw std::invalid_argument("a dense store needs a width");
  }

  std::uint64_t width() const { return cells_.size(); }
  std::size_t bytes() const { return cells_.size() * sizeof(Cell); }

  template <class Dead>
  void reserve(std::size_t, Dead&&) {}

  // open(k, cell of keys[k]) for k = 0..n-1; `rows` names the keys to prefetch meanwhile.
  template <class Key, class Rows, class Open>
  void gather(const Key* keys, std::size_t n, Rows& rows, Places&, Open&& open) const {
    const Cell* cells = cells_.data();
    for (std::size_t k = 0; k < n;) {
      std::size_t run = 0;
      const Key* later = rows.template next_keys<Key>(n - k, run);
      for (const std::size_t end = k + run; k < end; ++k, ++later) {
        __builtin_prefetch(cells + *later, 1);
        open(k, cells[keys[k]]);
      }
    }
  }

  // The cell of keys[k] becomes close(k). The keys are distinct and were gathered just before.
  template <class Key, class Close>
  void scatter(const Key* keys, std::size_t n, const Places&, Close&& close) {
    Cell* cells = cells_.data();
    for (std::size_t k = 0; k < n; ++k) cells[keys[k]] = close(k);
  }

  void put(std::uint64_t key, const Cell& cell) {
    if (key >= width()) throw std::invalid_argument("a feature number is not below the width");
    cells_[key] = cell;
  }

  // f(key, cell) for every cell that is not fresh, in the order of keys.
  template <class F>
  void each(F&& f) const {
    for (std::uint64_t key = 0; key < width(); ++key)
      if (!(cells_[key] == Cell{})) f(key, cells_[key]);
  }

  // Every cell becomes settle(cell).
  template <class Settle, class Dead>
  void sweep(Settle&& settle, Dead&&) {
    for (std::uint64_t key = 0; key < width(); ++key)
      if (!(cells_[key] == Cell{})) cells_[key] = settle(cells_[key]);
  }

  void clear() { cells_ = ZeroedArray<Cell>(width()); }

 private:
  ZeroedArray<Cell> cells_;
};

}  // namespace thresher
