// The list of each feature (lanes/lists.hpp), by feature number or by any 64-bit key. The functions are
// virtual and take a whole row, so that the code of lists is compiled once for both kinds of tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "thresher/stores/places.hpp"

namespace thresher {

class ListTable {
 public:
  using Ref = std::uint32_t;  // a list; 0: none
  using Places = HashedPlaces;

  virtual ~ListTable() = default;

  virtual std::uint64_t width() const = 0;
  virtual void widen(std::uint64_t width) = 0;
  virtual std::size_t bytes() const = 0;

  virtual void reserve(std::size_t n) = 0;  // makes room for n more features
  virtual void put(std::uint64_t key, Ref list) = 0;

  // Finds the lists of n keys; lists[] has room for three more. later[k], for k < fetched, are keys
  // whose entries are prefetched.
  virtual void find(const std::int32_t* keys, std::size_t n, const std::int32_t* later,
                    std::size_t fetched, Places& places, Ref* lists) const = 0;
  virtual void find(const std::int64_t* keys, std::size_t n, const std::int64_t* later,
                    std::size_t fetched, Places& places, Ref* lists) const = 0;
  // Sets the lists of the n keys that were found last.
  virtual void set(const std::int32_t* keys, std::size_t n, const Places& places,
                   const Ref* lists) = 0;
  virtual void set(const std::int64_t* keys, std::size_t n, const Places& places,
                   const Ref* lists) = 0;
  // Finds the lists of n keys that have one, and returns how many those are. lists[] has room for n.
  // The keys need not be checked.
  virtual std::size_t peek(const std::int32_t* keys, std::size_t n, Ref* lists) const = 0;
  virtual std::size_t peek(const std::int64_t* keys, std::size_t n, Ref* lists) const = 0;

  // f(key, list) for all features with a list, in no particular order.
  virtual void each(const std::function<void(std::uint64_t, Ref)>& f) const = 0;
  // Every list becomes f(list).
  virtual void sweep(const std::function<Ref(Ref)>& f) = 0;
  virtual void drop() = 0;  // forgets features without a list
};

std::unique_ptr<ListTable> make_list_table(bool dense, std::uint64_t width);

}  // namespace thresher
