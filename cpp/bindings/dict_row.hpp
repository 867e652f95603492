// One row made of a Python dict {name: value}, with the keys and names that a source of such dicts
// has (src/thresher/data/dict_rows.py).
//
// It reads the usual types only: names are strings or numbers, values are numbers, booleans,
// strings, None, or lists of strings. For anything else read() returns false, and the caller uses
// the Python code, which reads it or raises an error that names the feature.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "thresher/core/batch.hpp"

namespace bindings {

namespace nb = nanobind;

// How the features of a row get their keys and values.
struct DictRowOptions {
  // Finds names of columns, with a string_view.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Columns = std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>>;

  std::uint64_t mask = ~std::uint64_t{0};  // the bits of keys that are used
  std::int64_t columns = 0;                // all keys are below it; 0: any key
  bool single = false;                     // values are float32
  bool named = false;                      // names are kept
  // If it is not empty, only these features are read, with these keys; "a=b" also stands for "a^b".
  Columns numbered;
};

class DictRow {
 public:
  // Returns false if the row needs the Python code. Never runs code of the row's objects.
  bool read(nb::handle row, const DictRowOptions& options);

  // The row that was read, as a batch that borrows it. Its keys are distinct.
  thresher::Batch batch() const;

  std::size_t count() const { return keys_.size(); }
  std::uint64_t key(std::size_t k) const { return static_cast<std::uint64_t>(keys_[k]); }
  double value(std::size_t k) const { return doubles_[k]; }  // if values are float64
  std::string_view name(std::size_t k) const {               // if names are kept
    const std::size_t from = k == 0 ? 0 : ends_[k - 1];
    return std::string_view(text_).substr(from, ends_[k] - from);
  }

 private:
  struct Slot {
    std::uint64_t stamp = 0;  // of the row that used it
    std::size_t place = 0;
  };

  bool read_value(nb::handle name, nb::handle value);
  bool add_number(nb::handle name, double value);
  bool add_word(std::string_view name, nb::handle word);
  bool add(std::uint64_t key, std::string_view name, double value);
  void grow();

  const DictRowOptions* options_ = nullptr;
  std::vector<std::int64_t> keys_;
  std::vector<double> doubles_;
  std::vector<float> floats_;
  std::string text_, joined_;  // names one after the other; a name of two parts
  std::vector<std::size_t> ends_;
  std::int64_t starts_[2] = {0, 0};
  std::vector<Slot> slots_;  // places by key, to find repeated keys
  std::uint64_t stamp_ = 0;
};

}  // namespace bindings
