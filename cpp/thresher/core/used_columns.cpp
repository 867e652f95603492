#include "thresher/core/used_columns.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "thresher/core/threads.hpp"

namespace thresher {
namespace {

// The numbers first .. last, of which each task has an equal share.
struct Range {
  std::uint64_t first = 0, last = 0;

  std::uint64_t begin(std::size_t task, std::size_t tasks) const {
    return first + (last - first) * task / tasks;
  }
};

Range nonzeros_of(const Batch& batch) {
  return std::visit(
      [&](auto starts) -> Range {
        if constexpr (std::is_same_v<decltype(starts), std::monostate>)
          throw std::invalid_argument("only CSR rows have keys");
        else
          return {static_cast<std::uint64_t>(starts[0]),
                  static_cast<std::uint64_t>(starts[batch.rows])};
      },
      batch.starts);
}

// Sets the numbers of the columns that occur to 1; false if a key is outside. Several threads do
// this at the same time.
template <class Key>
bool mark(const Key* keys, const Key* end, std::uint64_t columns, std::int32_t* numbers) {
  for (; keys < end; ++keys) {
    const auto key = static_cast<std::uint64_t>(*keys);  // a negative key is very large
    if (key >= columns) return false;
    std::atomic_ref(numbers[key]).store(1, std::memory_order_relaxed);
  }
  return true;
}

template <class Value>
bool all_small(const Value* values, const Value* end) {
  bool small = true;
  for (; values < end; ++values)
    small &= (*values < Value(1e18)) & (*values > Value(-1e18));  // false for NaN
  return small;
}

}  // namespace

std::optional<UsedColumns> used_columns(const Batch& batch, std::uint64_t most,
                                        std::size_t threads) {
  const auto columns = static_cast<std::uint64_t>(batch.columns);
  const Range nonzeros = nonzeros_of(batch);
  if (columns > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  Team team(threads);
  const std::size_t tasks = team.size();
  ZeroedArray<std::int32_t> numbers(columns);  // at first: 1 if the column occurs
  // Calls f(keys, end) with the keys of a task.
  const auto with_keys = [&](std::size_t task, auto&& f) {
    std::visit(
        [&](auto keys) {
          if constexpr (!std::is_same_v<decltype(keys), std::monostate>)
            f(keys + nonzeros.begin(task, tasks), keys + nonzeros.begin(task + 1, tasks));
        },
        batch.keys);
  };
  std::vector<char> fine(tasks);
  team.each(tasks, [&](std::size_t task, std::size_t) {
    const bool small = std::visit(
        [&](auto values) {
          return all_small(values + nonzeros.begin(task, tasks),
                           values + nonzeros.begin(task + 1, tasks));
        },
        batch.values);
    with_keys(task, [&](auto keys, auto end) {
      fine[task] = small && mark(keys, end, columns, numbers.data());
    });
  });
  if (!std::all_of(fine.begin(), fine.end(), [](char each) { return each != 0; }))
    return std::nullopt;
  const auto count = static_cast<std::uint64_t>(
      std::accumulate(numbers.data(), numbers.data() + columns, std::int32_t{0}));
  if (count > most) return std::nullopt;
  UsedColumns result{std::vector<std::uint64_t>(count + 1),
                     ZeroedArray<std::int32_t>(nonzeros.last)};
  std::int32_t next = 0;
  for (std::uint64_t column = 0; column < columns; ++column) {  // without branches
    result.columns[static_cast<std::size_t>(next)] = column;
    next += std::exchange(numbers[column], next);
  }
  result.columns.pop_back();
  team.each(tasks, [&](std::size_t task, std::size_t) {
    std::int32_t* const out = result.keys.data() + nonzeros.begin(task, tasks);
    with_keys(task, [&](auto keys, auto end) {
      std::transform(keys, end, out,
                     [&](auto key) { return numbers[static_cast<std::uint64_t>(key)]; });
    });
  });
  return result;
}

}  // namespace thresher
