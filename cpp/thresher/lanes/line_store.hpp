// Cells of lanes: what all lanes keep of a feature lies together, so that a feature is found once for all of
// them. By feature number, or by any 64-bit key through a hashed index of numbers of cells.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../pack.hpp"
#include "../stores/hashed.hpp"
#include "../stores/pages.hpp"

namespace thresher::lanes {

template <class Real>
class LineStore {
 public:
  using Places = std::vector<std::uint64_t>;  // for the index to work in

  // `numbers`: of a cell.
  LineStore(bool hashed, std::uint64_t width, std::size_t numbers)
      : hashed_(hashed),
        width_(width),
        stride_(stride_of(numbers)),
        cells_((hashed ? 0 : width) * stride_),
        index_(0),
        fresh_(stride_),
        chunk_(std::bit_floor(std::max<std::size_t>(1, (2 << 20) / (stride_ * sizeof(Real))))) {
    if (!hashed && width == 0) throw std::invalid_argument("a dense store needs a width");
  }

  // A store like this one, with nothing in it.
  LineStore empty() const { return {hashed_, width_, stride_}; }

  std::uint64_t width() const { return width_; }  // 0: any key
  std::size_t numbers() const { return stride_; }
  std::size_t bytes() const {
    const std::size_t cells = cells_.size() + chunks_.size() * chunk_ * stride_;
    return cells * sizeof(Real) + (hashed_ ? index_.bytes() : 0);
  }

  void widen(std::uint64_t width) {
    if (hashed_) {
      width_ = width == 0 || width_ == 0 ? 0 : std::max(width_, width);
    } else if (width > width_) {
      ZeroedArray<Real> wider(width * stride_);
      std::copy_n(cells_.data(), cells_.size(), wider.data());
      cells_ = std::move(wider), width_ = width;
    }
  }

  // Makes room for n more cells; dead(cell) tells which may go.
  template <class Dead>
  void reserve(std::size_t n, Dead&& dead) {
    if (!hashed_ || living_ + n <= limit_) return;
    purge(dead);
    limit_ = std::max<std::uint64_t>(1024, 2 * (living_ + n));
  }

  // cells[k] becomes the cell of keys[k]. later[k], for k < fetched, are keys to prefetch meanwhile.
  template <class Key>
  void find(const Key* keys, std::size_t n, const Key* later, std::size_t fetched, Places& places,
            Real** cells) {
    look_up(keys, n, later, fetched, places, cells, [this](std::uint64_t key) { return add(key); });
  }
  // The same for who only reads: an absent key has a cell of zeros.
  template <class Key>
  void find(const Key* keys, std::size_t n, const Key* later, std::size_t fetched, Places& places,
            Real** cells) const {
    look_up(keys, n, later, fetched, places, cells,
            [this](std::uint64_t) { return const_cast<Real*>(fresh_.data()); });
  }

  Real* put(std::uint64_t key) {
    if (hashed_) return add(key);
    if (key >= width_) throw std::invalid_argument("a feature number is not below the width");
    return cells_.data() + key * stride_;
  }

  // f(key, cell) for every cell that is not all zero.
  template <class F>
  void each(F&& f) const {
    const auto call = [&](std::uint64_t key, Real* cell) {
      if (!is_fresh(cell)) f(key, cell);
    };
    if (hashed_)
      index_.each([&](std::uint64_t key, const Place& place) { call(key, cell(place.number)); });
    else
      for (std::uint64_t key = 0; key < width_; ++key)
        call(key, const_cast<Real*>(cells_.data()) + key * stride_);
  }

  template <class Dead>
  void drop(Dead&& dead) {
    if (hashed_) purge(dead);
  }

 private:
  struct Place {
    std::uint64_t number = 0;  // of the cell, from 1
    bool operator==(const Place&) const = default;
  };

  // A cell of up to a line begins on a boundary of its size; larger ones on one of cache lines.
  static std::size_t stride_of(std::size_t numbers) {
    const std::size_t line = 64 / sizeof(Real);
    return numbers <= line ? std::bit_ceil(numbers) : (numbers + line - 1) / line * line;
  }

  Real* cell(std::uint64_t number) const {
    --number;
    return const_cast<Real*>(chunks_[number / chunk_].data()) + number % chunk_ * stride_;
  }
  bool is_fresh(const Real* cell) const {
    std::uint8_t any = 0;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(cell);
    for (std::size_t i = 0; i < stride_ * sizeof(Real); ++i) any |= bytes[i];
    return any == 0;
  }

  template <class Key, class Absent>
  [[gnu::always_inline]] void look_up(const Key* keys, std::size_t n, const Key* later,
                                      std::size_t fetched, Places& places, Real** cells,
                                      Absent&& absent) const {
    if (!hashed_) {
      Real* first = const_cast<Real*>(cells_.data());
      for (std::size_t k = 0; k < fetched; ++k)
        fetch(first + static_cast<std::uint64_t>(later[k]) * stride_);
      for (std::size_t k = 0; k < n; ++k)
        cells[k] = first + static_cast<std::uint64_t>(keys[k]) * stride_;
      return;
    }
    index_.gather(keys, 0, n, later, fetched, places, [&](std::size_t k, const Four<Place>& four) {
      for (std::size_t i = 0; i < pack_size && k + i < n; ++i) {
        cells[k + i] = four[i].number ? cell(four[i].number) : nullptr;
        if (cells[k + i]) fetch(cells[k + i]);
      }
    });
    for (std::size_t k = 0; k < n; ++k)
      if (!cells[k])
        cells[k] = absent(static_cast<std::uint64_t>(static_cast<std::int64_t>(keys[k])));
  }

  void fetch(const Real* cell) const {
    constexpr std::size_t line = 64 / sizeof(Real);
    for (std::size_t i = 0; i < stride_; i += line) __builtin_prefetch(cell + i, 1);
  }

  Real* add(std::uint64_t key) {
    if (free_.empty()) {
      const std::uint64_t first = chunks_.size() * chunk_;
      chunks_.emplace_back(chunk_ * stride_);
      for (std::uint64_t i = chunk_; i > 0; --i) free_.push_back(first + i);
    }
    const std::uint64_t number = free_.back();
    index_.put(key, {number});
    free_.pop_back();
    ++living_;
    return cell(number);
  }

  template <class Dead>
  void purge(Dead&& dead) {
    index_.each([&](std::uint64_t, const Place& place) {
      Real* found = cell(place.number);
      if (is_fresh(found) || dead(found)) {
        std::fill_n(found, stride_, Real(0));
        free_.push_back(place.number);
        --living_;
      }
    });
    index_.drop(
        [this](const Place& place) { return place.number && is_fresh(cell(place.number)); });
  }

  bool hashed_;
  std::uint64_t width_;
  std::size_t stride_;  // numbers from one cell to the next
  ZeroedArray<Real> cells_;
  HashedStore<Place> index_;
  std::vector<Real> fresh_;
  std::uint64_t chunk_;  // cells of a chunk
  std::vector<ZeroedArray<Real>> chunks_;
  std::vector<std::uint64_t> free_;
  std::uint64_t living_ = 0, limit_ = 1024;
};

}  // namespace thresher::lanes
