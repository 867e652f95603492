#include "thresher/averaging/journal.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace thresher {

std::byte* Journal::add(std::uint64_t key, bool updated) {
  entries_.reserve(1, [](const Entry&) { return false; });
  Entry& entry = entries_.claim(key);
  entry.updates += updated;
  if (entry.number) return nullptr;
  const std::size_t count = cells_.size() / cell_size_;
  if (count >= std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("a round updates at most 2^32 - 1 features");
  cells_.resize(cells_.size() + cell_size_);
  entry.number = static_cast<std::uint32_t>(count + 1);
  return cells_.data() + count * cell_size_;
}

std::vector<Journal::Saved> Journal::sorted() const {
  std::vector<Saved> found;
  entries_.each([&](std::uint64_t key, const Entry& entry) {
    found.push_back({key, entry.updates, cells_.data() + (entry.number - 1) * cell_size_});
  });
  std::sort(found.begin(), found.end(),
            [](const Saved& a, const Saved& b) { return a.key < b.key; });
  return found;
}

}  // namespace thresher
