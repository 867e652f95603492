// A rule's step on one row: reads its cells from a store, and writes them back. Learners of all
// columns (core/basic_rule_learner.hpp) and of a block of columns (rules/margin_block.hpp) share
// this code, so their results are bit-identical.
#pragma once

#include <algorithm>
#include <cstddef>

#include "thresher/core/pack.hpp"
#include "thresher/core/rows.hpp"

namespace thresher {

struct Inner {
  double dot;      // sum of the opener's terms
  double squares;  // ||x||^2
};

template <class Real>
[[gnu::always_inline]] inline Pack<Real> values_at(const Real* values, std::size_t k,
                                                   std::size_t n) {
  return k + pack_size <= n ? Pack<Real>::load(values + k) : Pack<Real>::load(values + k, n - k);
}

// Sums over packs; sums of 4096 coordinates are added in double precision. The opener is passed by
// value: what a lambda captures by reference is loaded again after every store.
template <class Store, class Real, class Key, class Open>
Inner open_with(Open open, const Store& store, const Key* keys, Rows<Real>& rows,
                typename Store::Places& places) {
  const Real* values = rows.values();
  const std::size_t n = rows.count();
  const auto [later, fetched] = rows.template ahead<Key>(n);
  Inner inner{0.0, 0.0};
  for (std::size_t from = 0; from < n; from += 4096) {
    const std::size_t to = std::min(n, from + 4096);
    Pack<Real> dot = Pack<Real>::all(0), squares = dot;
    store.gather(keys, from, to, later, fetched, places,
                 [&](std::size_t k, const auto& cells) __attribute__((always_inline)) {
                   const Pack<Real> x = values_at(values, k, to);
                   dot += open(k, cells, x);
                   squares += x * x;
                 });
    inner.dot += dot.total(), inner.squares += squares.total();
  }
  return inner;
}

template <class R, class Store>
Inner open_row(const R& rule, const Store& store, Rows<typename R::Real>& rows,
               typename R::Row& row, typename Store::Places& places) {
  Inner inner{0.0, 0.0};
  rule.with_opener(row, [&](auto open) {
    rows.with_keys([&](const auto* keys) { inner = open_with(open, store, keys, rows, places); });
  });
  return inner;
}

template <class R, class Store>
void close_row(R& rule, Store& store, const Rows<typename R::Real>& rows,
               const typename R::Row& row, const typename Store::Places& places, double g) {
  const typename R::Real* values = rows.values();
  const std::size_t n = rows.count();
  rule.with_closer(row, g, [&](auto close) {
    rows.with_keys([&](const auto* keys) {
      store.scatter(
          keys, n, places,
          [close, values, n](std::size_t k, Four<typename R::Cell>& cells)
              __attribute__((always_inline)) { close(k, values_at(values, k, n), cells); });
    });
  });
}

}  // namespace thresher
