#include "dict_row.hpp"

#include <charconv>
#include <cmath>

#include "python_calls.hpp"
#include "thresher/io/hash.hpp"

namespace bindings {
namespace {

// The key of a feature of the default namespace: a plain decimal number below 2^64 is its own key.
std::uint64_t key_of(std::string_view name) {
  const bool digits = !name.empty() && name[0] >= '0' && name[0] <= '9';
  if (digits && (name[0] != '0' || name.size() == 1)) {
    std::uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data(), end, number);
    if (error == std::errc() && rest == end) return number;
  }
  return thresher::io::hash64(name);
}

// The UTF-8 text of a string; false if it has none.
bool text_of(nb::handle string, std::string_view& text) {
  if (ascii_text(string.ptr(), text)) return true;  // the common case
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
  if (!data) {
    PyErr_Clear();
    return false;
  }
  text = {data, static_cast<std::size_t>(size)};
  return true;
}

}  // namespace

bool DictRow::read(nb::handle row, const DictRowOptions& options) {
  if (!PyDict_Check(row.ptr())) return false;
  options_ = &options;
  keys_.clear(), doubles_.clear(), floats_.clear(), text_.clear(), ends_.clear();
  ++stamp_;
  PyObject *name = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(row.ptr(), &at, &name, &value))
    if (!read_value(name, value)) return false;
  starts_[1] = static_cast<std::int64_t>(keys_.size());
  return true;
}

thresher::Batch DictRow::batch() const {
  thresher::Batch batch;
  batch.rows = 1, batch.columns = options_->columns;
  batch.starts = static_cast<const std::int64_t*>(starts_);
  batch.keys = static_cast<const std::int64_t*>(keys_.data());
  if (options_->single) batch.values = static_cast<const float*>(floats_.data());
  else batch.values = static_cast<const double*>(doubles_.data());
  batch.distinct = true;
  return batch;
}

bool DictRow::read_value(nb::handle name, nb::handle value) {
  PyObject* const v = value.ptr();
  if (PyFloat_Check(v)) return add_number(name, float_value(v));
  if (v == Py_None) return PyUnicode_Check(name.ptr()) || PyLong_CheckExact(name.ptr());
  if (PyLong_Check(v)) {
    const double number = PyLong_AsDouble(v);
    if (number == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    return add_number(name, number);
  }
  std::string_view text;
  if (!PyUnicode_Check(name.ptr()) || !text_of(name, text)) return false;
  if (PyUnicode_Check(v)) return add_word(text, value);
  if (PyList_CheckExact(v)) {
    for (Py_ssize_t i = 0; i < list_size(v); ++i) {
      PyObject* const word = list_item(v, i);
      if (!PyUnicode_Check(word) || !add_word(text, word)) return false;
    }
    return true;
  }
  return false;
}

bool DictRow::add_number(nb::handle name, double value) {
  std::string_view text;
  if (PyUnicode_Check(name.ptr())) return text_of(name, text) && add(key_of(text), text, value);
  if (!PyLong_CheckExact(name.ptr())) return false;
  const unsigned long long number = PyLong_AsUnsignedLongLong(name.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  return error == std::errc() &&
         add(number, {digits, static_cast<std::size_t>(end - digits)}, value);
}

// The feature "name^word".
bool DictRow::add_word(std::string_view name, nb::handle word) {
  std::string_view text;
  if (!text_of(word, text)) return false;
  joined_.assign(name);
  joined_ += '^';
  joined_ += text;
  if (!options_->numbered.empty() && !options_->numbered.contains(joined_))
    joined_[name.size()] = '=';
  return add(options_->numbered.empty() ? thresher::io::hash64(joined_) : 0, joined_, 1.0);
}

bool DictRow::add(std::uint64_t key, std::string_view name, double value) {
  const auto single = static_cast<float>(value);  // infinite if it is too large
  if (!std::isfinite(options_->single ? static_cast<double>(single) : value)) return false;
  if (!options_->numbered.empty()) {
    const auto found = options_->numbered.find(name);
    if (found == options_->numbered.end()) return true;
    key = found->second;
  }
  key &= options_->mask;
  if (2 * keys_.size() >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = (key * 0x9E3779B97F4A7C15u >> 24) & mask;
  for (; slots_[at].stamp == stamp_; at = (at + 1) & mask) {
    const std::size_t place = slots_[at].place;
    if (this->key(place) != key) continue;
    if (options_->single) floats_[place] += single;  // as in io/keys.hpp
    else doubles_[place] += value;
    return true;
  }
  slots_[at] = {stamp_, keys_.size()};
  keys_.push_back(static_cast<std::int64_t>(key));
  if (options_->single) floats_.push_back(single);
  else doubles_.push_back(value);
  if (options_->named) {
    text_ += name;
    ends_.push_back(text_.size());
  }
  return true;
}

void DictRow::grow() {
  slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), Slot{});
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t place = 0; place < keys_.size(); ++place) {
    std::size_t at = (key(place) * 0x9E3779B97F4A7C15u >> 24) & mask;
    while (slots_[at].stamp == stamp_) at = (at + 1) & mask;
    slots_[at] = {stamp_, place};
  }
}

}  // namespace bindings
