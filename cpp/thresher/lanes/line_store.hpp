// Cells of lanes. The numbers of all lanes for a feature are adjacent in memory, so that one lookup
// serves all lanes. Cells are found by feature number, or by any 64-bit key through a hashed index.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "thresher/core/pack.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/lanes/kernels.hpp"
#include "thresher/stores/hashed.hpp"
#include "thresher/stores/pages.hpp"

namespace thresher::lanes {

template <class Real>
class LineStore {
  struct Place {
    std::uint32_t number = 0;  // of the cell; cell 0 is for absent keys and is all zeros
    bool operator==(const Place&) const = default;
  };

 public:
  struct Work {  // memory for one row
    typename HashedStore<Place>::Places places;
    std::vector<std::uint32_t> numbers;
    std::vector<std::int32_t> later;
    std::vector<Place> next;          // of a row that fetch() found, whose keys are next_keys
    const void* next_keys = nullptr;  // null: none; must be null before other memory has keys

    // Keys of a later row, as many as the row has: those that lack are its own. For keys of 64 bits
    // and a row that has enough keys, the later row itself.
    template <class Key>
    std::pair<const Key*, std::size_t> padded(std::pair<const Key*, std::size_t> row,
                                              const Key* own, std::size_t n) {
      if (row.second >= n || row.second == 0) return {row.first, std::min(row.second, n)};
      if constexpr (sizeof(Key) == 4) {
        later.resize(n);
        std::copy_n(row.first, row.second, later.data());
        std::copy_n(own + row.second, n - row.second, later.data() + row.second);
        return {later.data(), n};
      } else {
        return row;
      }
    }
  };

  // `numbers` and `stamps`: how many of them a cell has.
  LineStore(bool hashed, std::uint64_t width, std::size_t numbers, std::size_t stamps)
      : hashed_(hashed),
        width_(width),
        stride_(stride_of(numbers)),
        stamp_stride_(stamps),
        cells_((hashed ? 1 : width) * stride_),
        stamps_((hashed ? 1 : width) * stamps),
        index_(0) {
    if (!hashed && width == 0) throw std::invalid_argument("a dense store needs a width");
    if (!hashed) check(width);
  }

  // An empty store with the same layout.
  LineStore empty() const { return {hashed_, width_, stride_, stamp_stride_}; }

  bool hashed() const { return hashed_; }
  std::uint64_t width() const { return width_; }      // 0: any key
  std::size_t hashed_cells() const { return used_; }  // at most; 0 if the store is dense
  std::size_t numbers() const { return stride_; }
  std::size_t stamps() const { return stamp_stride_; }
  std::size_t bytes() const {
    return (cells_.size() + stamps_.size()) * sizeof(Real) + (hashed_ ? index_.bytes() : 0);
  }

  void widen(std::uint64_t width) {
    if (hashed_) {
      width_ = width == 0 || width_ == 0 ? 0 : std::max(width_, width);
    } else if (width > width_) {
      check(width);
      grow(width), width_ = width;
    }
  }

  // Makes room for n more cells; may remove cells for which dead(cell) is true.
  template <class Dead>
  void reserve(std::size_t n, Dead&& dead) {
    if (!hashed_ || living_ + n <= limit_) return;
    std::uint64_t kept = 0;
    each_cell([&](const Cell<Real>& cell) { kept += !dead(cell); });
    if (kept < living_) purge(dead);
    limit_ = std::max<std::uint64_t>(1024, 2 * (living_ + n));
  }

  // The cells of keys; an absent key gets a new cell. `later` are `fetched` keys of later rows to
  // prefetch. `work` holds the numbers of cells unless the keys themselves are these numbers.
  template <class Key>
  RowOfCells<Real> find(const Key* keys, const Real* x, std::size_t n, const Key* later,
                        std::size_t fetched, Work& work) {
    return look_up(keys, x, n, later, fetched, work,
                   [this](std::uint64_t key) { return add(key); });
  }
  // The same for reading: an absent key has a cell of zeros.
  template <class Key>
  RowOfCells<Real> find(const Key* keys, const Real* x, std::size_t n, const Key* later,
                        std::size_t fetched, Work& work) const {
    return look_up(keys, x, n, later, fetched, work, [](std::uint64_t) { return 0u; });
  }

  // Finds the cells of the next row in a hashed store and fetches them, while another row is learned.
  // find() uses them; no cell may be removed between. `later` as in find().
  template <class Key>
  void fetch(const Key* keys, std::size_t n, const Key* later, std::size_t fetched,
             Work& work) const {
    work.next.resize(n), work.next_keys = keys;
    index_.copy(keys, n, later, fetched, work.next.data());
    constexpr std::size_t line = 64 / sizeof(Real), most = 4 * line;
    for (const Place& place : work.next)
      for (std::size_t i = 0; i < std::min(stride_, most); i += line)
        __builtin_prefetch(cells_.data() + place.number * stride_ + i, 1);
  }

  Cell<Real> put(std::uint64_t key) {
    if (hashed_) return cell(add(key));
    if (key >= width_) throw std::invalid_argument("a feature number is not below the width");
    return cell(static_cast<std::uint32_t>(key));
  }

  // f(key, cell) for every cell with a nonzero number.
  template <class F>
  void each(F&& f) const {
    const auto call = [&](std::uint64_t key, const Cell<Real>& cell) {
      if (!is_fresh(cell)) f(key, cell);
    };
    if (!hashed_) {
      for (std::uint64_t key = 0; key < width_; ++key)
        call(key, cell(static_cast<std::uint32_t>(key)));
      return;
    }
    // Cells are far apart in memory, so each one is fetched some time before its turn.
    constexpr std::size_t ahead = 32, line = 64 / sizeof(Real);
    std::array<std::pair<std::uint64_t, std::uint32_t>, ahead> waiting;
    std::size_t count = 0;
    index_.each([&](std::uint64_t key, const Place& place) {
      const Real* const numbers = cell(place.number).numbers;
      for (std::size_t i = 0; i < stride_; i += line) __builtin_prefetch(numbers + i);
      auto& turn = waiting[count % ahead];
      if (count >= ahead) call(turn.first, cell(turn.second));
      turn = {key, place.number}, ++count;
    });
    for (std::size_t i = count < ahead ? 0 : count - ahead; i < count; ++i)
      call(waiting[i % ahead].first, cell(waiting[i % ahead].second));
  }

  // f(cell) for the same cells, in the order of memory, which is several times as fast.
  template <class F>
  void each_cell(F&& f) const {
    const std::uint64_t first = hashed_ ? 1 : 0, last = hashed_ ? used_ + 1 : width_;
    for (std::uint64_t number = first; number < last; ++number) {
      const Cell<Real> found = cell(static_cast<std::uint32_t>(number));
      if (!is_fresh(found)) f(found);
    }
  }

  // f(cells) for all cells, some at a time; x is 1.
  template <class F>
  void blocks(F&& f) const {
    constexpr std::size_t most = 256;
    const std::vector<Real> ones(most, Real(1));
    std::vector<std::uint32_t> numbers;
    const auto call = [&] {
      f(RowOfCells<Real>{cell(0), stride_, stamp_stride_, numbers.data(), ones.data(),
                         numbers.size(), numbers.data()});
      numbers.clear();
    };
    const auto add = [&](std::uint32_t number) {
      numbers.push_back(number);
      if (numbers.size() == most) call();
    };
    if (hashed_) index_.each([&](std::uint64_t, const Place& place) { add(place.number); });
    else
      for (std::uint64_t key = 0; key < width_; ++key) add(static_cast<std::uint32_t>(key));
    if (!numbers.empty()) call();
  }

  // Sets the stamps at this position of all cells to 0, because a ledger restarts.
  void clear_stamps(std::size_t place) {
    for (std::uint64_t i = place; i < stamps_.size(); i += stamp_stride_) stamps_[i] = 0;
  }

  template <class Dead>
  void drop(Dead&& dead) {
    if (hashed_) purge(dead);
  }

 private:
  static void check(std::uint64_t width) {
    if (width > UINT32_MAX)
      throw std::invalid_argument("lanes in a dense store take at most 2^32 - 1 features");
  }

  // A cell of up to one cache line is aligned to its size; a larger cell to cache lines.
  static std::size_t stride_of(std::size_t numbers) {
    const std::size_t line = 64 / sizeof(Real);
    return numbers <= line ? std::bit_ceil(numbers) : (numbers + line - 1) / line * line;
  }

  Cell<Real> cell(std::uint32_t number) const {
    return {const_cast<Real*>(cells_.data()) + number * stride_,
            const_cast<Real*>(stamps_.data()) + number * stamp_stride_};
  }
  bool is_fresh(const Cell<Real>& cell) const {
    using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
    constexpr std::size_t some = 64 / sizeof(Real);  // most cells that are in use differ early
    std::size_t from = 0;
    for (; from + some <= stride_; from += some) {
      Bits any = 0;
      for (std::size_t i = 0; i < some; ++i) any |= std::bit_cast<Bits>(cell.numbers[from + i]);
      if (any) return false;
    }
    for (; from < stride_; ++from)
      if (std::bit_cast<Bits>(cell.numbers[from])) return false;
    return true;
  }

  template <class Key, class Absent>
  [[gnu::always_inline]] RowOfCells<Real> look_up(const Key* keys, const Real* x, std::size_t n,
                                                  const Key* later, std::size_t fetched, Work& work,
                                                  Absent&& absent) const {
    RowOfCells<Real> row{cell(0), stride_, stamp_stride_, nullptr, x, n, nullptr};
    if (hashed_) {
      if (work.numbers.size() < n) work.numbers.resize(n);
      if (work.next_keys == keys && work.next.size() == n) {
        for (std::size_t k = 0; k < n; ++k) work.numbers[k] = work.next[k].number;
      } else {
        index_.gather(keys, 0, n, later, fetched, work.places,
                      [&](std::size_t k, const Four<Place>& four) {
                        for (std::size_t i = 0; i < pack_size && k + i < n; ++i) {
                          work.numbers[k + i] = four[i].number;
                          __builtin_prefetch(cells_.data() + four[i].number * stride_, 1);
                        }
                      });
      }
      for (std::size_t k = 0; k < n; ++k)
        if (work.numbers[k] == 0)
          work.numbers[k] = absent(static_cast<std::uint64_t>(static_cast<std::int64_t>(keys[k])));
      row.numbers = work.numbers.data();
    } else if constexpr (sizeof(Key) == 4) {  // keys are the numbers of cells
      row.numbers = reinterpret_cast<const std::uint32_t*>(keys);
      if (fetched == n) row.later = reinterpret_cast<const std::uint32_t*>(later);
    } else {
      if (work.numbers.size() < n) work.numbers.resize(n);
      for (std::size_t k = 0; k < n; ++k) work.numbers[k] = static_cast<std::uint32_t>(keys[k]);
      row.numbers = work.numbers.data();
    }
    row.first = cell(0);  // after adding new cells, which may move all cells
    if (!row.later) row.later = row.numbers;
    return row;
  }

  std::uint32_t add(std::uint64_t key) {
    if (free_.empty()) {
      const std::uint64_t before = cells_.size() / stride_,
                          room = std::max<std::uint64_t>(1024, 2 * before);
      if (room > UINT32_MAX) throw std::length_error("lanes take at most 2^32 features");
      grow(room);
      for (std::uint64_t number = room - 1; number >= std::max<std::uint64_t>(before, 1); --number)
        free_.push_back(static_cast<std::uint32_t>(number));
    }
    const std::uint32_t number = free_.back();
    index_.put(key, {number});
    free_.pop_back();
    ++living_, used_ = std::max(used_, number);
    return number;
  }

  void grow(std::uint64_t cells) {
    stamps_.grow(cells * stamp_stride_);
    cells_.grow(cells * stride_);
  }

  template <class Dead>
  void purge(Dead&& dead) {
    index_.each([&](std::uint64_t, const Place& place) {
      const Cell<Real> found = cell(place.number);
      if (is_fresh(found) || dead(found)) {
        std::fill_n(found.numbers, stride_, Real(0));
        std::fill_n(found.stamps, stamp_stride_, Real(0));
        free_.push_back(place.number);
        --living_;
      }
    });
    index_.drop(
        [this](const Place& place) { return place.number && is_fresh(cell(place.number)); });
  }

  bool hashed_;
  std::uint64_t width_;
  std::size_t stride_, stamp_stride_;  // distance between cells, in numbers and in stamps
  ZeroedArray<Real> cells_, stamps_;
  HashedStore<Place> index_;
  std::vector<std::uint32_t> free_;
  std::uint64_t living_ = 0, limit_ = 1024;
  std::uint32_t used_ = 0;  // the largest number of a cell that was ever in use
};

// The cells of a row's features. A const store adds no new features.
template <class Real, class Store>
RowOfCells<Real> cells_of(Rows<Real>& rows, Store& store, typename LineStore<Real>::Work& work) {
  RowOfCells<Real> row;
  rows.with_keys([&](const auto* keys) {
    using Key = std::remove_cvref_t<decltype(*keys)>;
    const std::size_t n = rows.count();
    auto [later, fetched] = rows.template ahead<Key>(n);
    if (fetched < n)
      std::tie(later, fetched) = work.padded(rows.template row_ahead<Key>(2), keys, n);
    row = store.find(keys, rows.values(), n, later, fetched, work);
  });
  return row;
}

// The same, which also fetches the cells of the next row. No cell may be removed while `rows` are
// read, and work.next_keys must be null before them.
template <class Real>
RowOfCells<Real> cells_and_next(Rows<Real>& rows, LineStore<Real>& store,
                                typename LineStore<Real>::Work& work) {
  if (!store.hashed()) return cells_of(rows, store, work);
  constexpr std::size_t most = 1024;  // cells of a row, so that the processor's cache can hold them
  RowOfCells<Real> row;
  rows.with_keys([&](const auto* keys) {
    using Key = std::remove_cvref_t<decltype(*keys)>;
    const std::size_t n = rows.count();
    const auto [later, fetched] = rows.template ahead<Key>(n);
    row = store.find(keys, rows.values(), n, later, work.next_keys ? 0 : fetched, work);
    const auto [next, count] = rows.template row_ahead<Key>(1);
    work.next_keys = nullptr;
    if (next && count <= most) store.fetch(next, count, later, fetched, work);
  });
  return row;
}

}  // namespace thresher::lanes
