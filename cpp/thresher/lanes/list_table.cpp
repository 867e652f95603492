#include "thresher/lanes/list_table.hpp"

#include <type_traits>

#include "thresher/core/cell.hpp"
#include "thresher/core/pack.hpp"
#include "thresher/stores/dense.hpp"
#include "thresher/stores/hashed_or_dense.hpp"

namespace thresher {
namespace {

using Entry = Single<ListTable::Ref>;

template <template <class> class Store>
class ListTableIn final : public ListTable {
 public:
  explicit ListTableIn(std::uint64_t width) : store_(width) {}

  std::uint64_t width() const override { return store_.width(); }
  void widen(std::uint64_t width) override { store_.widen(width); }
  std::size_t bytes() const override { return store_.bytes(); }

  void reserve(std::size_t n) override { store_.reserve(n, empty); }
  void put(std::uint64_t key, Ref list) override { store_.put(key, Entry(list)); }

  void find(const std::int32_t* keys, std::size_t n, const std::int32_t* later, std::size_t fetched,
            Places& places, Ref* lists) const override {
    find_keys(keys, n, later, fetched, places, lists);
  }
  void find(const std::int64_t* keys, std::size_t n, const std::int64_t* later, std::size_t fetched,
            Places& places, Ref* lists) const override {
    find_keys(keys, n, later, fetched, places, lists);
  }
  void set(const std::int32_t* keys, std::size_t n, const Places& places,
           const Ref* lists) override {
    set_keys(keys, n, places, lists);
  }
  void set(const std::int64_t* keys, std::size_t n, const Places& places,
           const Ref* lists) override {
    set_keys(keys, n, places, lists);
  }
  std::size_t peek(const std::int32_t* keys, std::size_t n, Ref* lists) const override {
    return peek_keys(keys, n, lists);
  }
  std::size_t peek(const std::int64_t* keys, std::size_t n, Ref* lists) const override {
    return peek_keys(keys, n, lists);
  }

  void each(const std::function<void(std::uint64_t, Ref)>& f) const override {
    store_.each([&](std::uint64_t key, const Entry& entry) {
      if (entry.value()) f(key, entry.value());
    });
  }
  void sweep(const std::function<Ref(Ref)>& f) override {
    store_.sweep(
        [&](const Entry& entry) { return entry.value() ? Entry(f(entry.value())) : entry; });
  }
  void drop() override { store_.drop(empty); }

 private:
  static constexpr auto empty = [](const Entry& entry) { return entry.value() == 0; };
  static constexpr bool is_dense = !std::is_same_v<typename Store<Entry>::Places, Places>;

  // A dense store has no places of its own: it ignores them.
  template <class P>
  static auto& own(P& places) {
    if constexpr (is_dense) {
      static typename Store<Entry>::Places none;
      return none;
    } else {
      return places;
    }
  }

  template <class Key>
  void find_keys(const Key* keys, std::size_t n, const Key* later, std::size_t fetched,
                 Places& places, Ref* lists) const {
    store_.gather(keys, 0, n, later, fetched, own(places),
                  [=](std::size_t k, const Four<Entry>& four) __attribute__((always_inline)) {
                    for (std::size_t i = 0; i < pack_size; ++i) lists[k + i] = four[i].value();
                  });
  }

  template <class Key>
  void set_keys(const Key* keys, std::size_t n, const Places& places, const Ref* lists) {
    store_.scatter(keys, n, own(places), [=](std::size_t k, Four<Entry>& four) {
      for (std::size_t i = 0; i < pack_size; ++i) four[i] = Entry(lists[k + i]);
    });
  }

  template <class Key>
  std::size_t peek_keys(const Key* keys, std::size_t n, Ref* lists) const {
    std::size_t found = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const auto key = static_cast<std::uint64_t>(static_cast<std::int64_t>(keys[k]));
      if constexpr (is_dense)
        if (key >= store_.width()) continue;
      lists[found] = store_.find(key).value();
      found += lists[found] != 0;
    }
    return found;
  }

  Store<Entry> store_;
};

}  // namespace

std::unique_ptr<ListTable> make_list_table(bool dense, std::uint64_t width) {
  if (dense) return std::make_unique<ListTableIn<DenseStore>>(width);
  return std::make_unique<ListTableIn<HashedOrDenseStore>>(width);
}

}  // namespace thresher
