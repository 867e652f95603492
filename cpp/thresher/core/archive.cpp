#include "thresher/core/archive.hpp"

#include <cstring>
#include <stdexcept>

namespace thresher {

std::uint64_t signature_of(const std::type_info& type) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char* c = type.name(); *c; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001B3u;
  return hash;
}

void Saver::add(const void* from, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(from);
  bytes_.insert(bytes_.end(), bytes, bytes + size);
}

void Restorer::get(void* to, std::size_t size) {
  if (bytes_.size() < size) throw std::invalid_argument("the learner state is cut short");
  if (size > 0) std::memcpy(to, bytes_.data(), size);
  bytes_ = bytes_.subspan(size);
}

std::size_t Restorer::count(std::size_t size) {
  std::uint64_t count = 0;
  get(&count, sizeof count);
  if (count > bytes_.size() / size) throw std::invalid_argument("the learner state is cut short");
  return count;
}

}  // namespace thresher
