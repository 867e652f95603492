// The interface of a store for code that runs once per call, and not once per row. Its functions
// are virtual, so that such code is compiled once per rule and not once per rule and store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace thresher {

template <class Cell>
class Cells {
 public:
  virtual ~Cells() = default;

  // f(key, cell) for every cell that is not zero, in the order of the store.
  virtual void each(const std::function<void(std::uint64_t, const Cell&)>& f) const = 0;
  virtual Cell find(std::uint64_t key) const = 0;
  virtual void put(std::uint64_t key, const Cell& cell) = 0;
  virtual void reserve(std::size_t n) = 0;  // makes room for n more cells

  // Replaces all cells by `count` others. An error of next() leaves all cells unchanged.
  virtual void replace(std::uint64_t count,
                       const std::function<std::pair<std::uint64_t, Cell>()>& next) = 0;
};

template <class Cell, template <class> class Store>
class CellsIn final : public Cells<Cell> {
 public:
  explicit CellsIn(std::uint64_t width) : store(width) {}

  Store<Cell> store;

  void each(const std::function<void(std::uint64_t, const Cell&)>& f) const override {
    store.each(f);
  }
  Cell find(std::uint64_t key) const override { return store.find(key); }
  void put(std::uint64_t key, const Cell& cell) override { store.put(key, cell); }
  void reserve(std::size_t n) override { store.reserve(n, is_zero); }

  void replace(std::uint64_t count,
               const std::function<std::pair<std::uint64_t, Cell>()>& next) override {
    Store<Cell> fresh(store.width());
    // All memory is reserved at once: cells come in the order of a hash table, and would collide at
    // the front of a table that grows.
    fresh.reserve(count, is_zero);
    for (; count > 0; --count) {
      const auto [key, cell] = next();
      fresh.put(key, cell);
    }
    store = std::move(fresh);
  }

 private:
  static constexpr auto is_zero = [](const Cell& cell) { return cell == Cell{}; };
};

}  // namespace thresher
