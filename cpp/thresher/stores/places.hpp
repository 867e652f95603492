// Where a hashed store has the cells of a row that it gathered.
#pragma once

#include <cstdint>
#include <vector>

namespace thresher {

struct HashedPlaces {
  std::vector<std::uint64_t> at;  // slots, one for each key
  bool absent = true;             // whether a key has no cell yet: `at` then has an empty slot
};

}  // namespace thresher
