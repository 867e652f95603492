// Caches, blocks as text, and blocks made from arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/core/error.hpp"
#include "thresher/io/cache.hpp"
#include "thresher/io/keys.hpp"
#include "thresher/io/write.hpp"

namespace bindings {

using namespace nb::literals;
using thresher::Batch;
using thresher::DataError;
using thresher::io::Block;
using thresher::io::CacheReader;
using thresher::io::CacheWriter;
using thresher::io::Real;
using thresher::io::VwNames;

namespace {

using Lines = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Owns the Python arrays of a block. Any thread may release the last reference.
struct Kept {
  nb::object arrays[8];
  std::shared_ptr<const void> merged;
  std::vector<std::int64_t> starts;
  std::vector<std::uint32_t> tag_starts;
  std::string tags;

  ~Kept() {
    if (!can_take_gil()) {
      for (nb::object& array : arrays) array.release();  // Python is ending, and frees them
      return;
    }
    const GilAcquire gil;
    for (nb::object& array : arrays) array.reset();
  }
};

[[noreturn]] void refuse(const char* what) { throw std::invalid_argument(what); }

template <class... T, class F>
void with_type(const AnyVector& array, const char* otherwise, F&& f) {
  const bool found =
      ((array.dtype() == nb::dtype<T>() ? (f(static_cast<const T*>(array.data())), true) : false) ||
       ...);
  if (!found) refuse(otherwise);
}

template <class Start>
void check_starts(const Start* starts, std::size_t rows, std::size_t limit, const char* unordered,
                  const char* beyond) {
  if (starts[0] < 0) throw DataError(0, unordered);
  for (std::size_t row = 0; row < rows; ++row)
    if (starts[row] > starts[row + 1]) throw DataError(static_cast<std::int64_t>(row), unordered);
  if (static_cast<std::size_t>(starts[rows]) > limit)
    throw DataError(static_cast<std::int64_t>(rows) - 1, beyond);
}

// Sets the rows, merged if a row repeats a key, and the bound of the keys.
template <class Start, class Key, class Value>
void set_rows(Batch& batch, Kept& kept, const Start* starts, const Key* keys, const Value* values,
              std::int64_t columns, bool distinct) {
  const auto rows = static_cast<std::size_t>(batch.rows);
  keys += starts[0], values += starts[0];
  if (starts[0] != 0) {  // a slice of longer arrays
    kept.starts.assign(starts, starts + rows + 1);
    for (std::int64_t& start : kept.starts) start -= starts[0];
    batch.starts = static_cast<const std::int64_t*>(kept.starts.data());
    set_rows(batch, kept, kept.starts.data(), keys, values, columns, distinct);
    return;
  }
  const std::uint64_t largest =
      thresher::io::largest_key(keys, static_cast<std::size_t>(starts[rows]));
  if (sizeof(Key) == 4 && largest > INT32_MAX) refuse("keys: int32 keys are 0 or above");
  if (columns > 0 && starts[rows] > 0 && largest >= static_cast<std::uint64_t>(columns))
    refuse("columns: all keys must be below it");
  batch.columns = columns > 0 || starts[rows] == 0 ? columns : thresher::io::bound_of(largest);
  batch.starts = starts, batch.keys = keys, batch.values = values;
  batch.distinct = true;
  if (distinct) return;
  const std::size_t first = thresher::io::first_repeating(starts, keys, rows);
  if (first == rows) return;
  using Merged = thresher::io::Merged<Key, Value>;
  const auto merged =
      std::make_shared<const Merged>(thresher::io::merge_rows(starts, keys, values, rows, first));
  batch.starts = merged->starts.data();
  batch.keys = merged->keys.data(), batch.values = merged->values.data();
  kept.merged = merged;
}

void set_tags(Block& block, Kept& kept, const nb::sequence& tags) {
  if (nb::len(tags) != static_cast<std::size_t>(block.batch.rows)) refuse("tags: one for each row");
  kept.tag_starts.push_back(0);
  for (nb::handle tag : tags) {
    const auto bytes = nb::cast<nb::bytes>(tag);
    kept.tags.append(bytes.c_str(), bytes.size());
    if (kept.tags.size() > std::numeric_limits<std::uint32_t>::max())
      refuse("tags: at most 4 GiB per block");
    kept.tag_starts.push_back(static_cast<std::uint32_t>(kept.tags.size()));
  }
  block.tag_starts = kept.tag_starts.data(), block.tags = kept.tags.data();
}

Block make_block(AnyVector starts, AnyVector keys, AnyVector values, std::optional<Doubles> labels,
                 std::optional<Doubles> weights, std::optional<Longs> label_starts,
                 std::optional<Doubles> label_values, std::optional<nb::sequence> tags,
                 std::optional<nb::iterable> names, std::int64_t columns, bool distinct,
                 std::uint64_t first_line, std::uint64_t offset, std::uint64_t bytes,
                 std::uint64_t line_count, std::uint64_t digest, std::optional<Lines> lines) {
  if (starts.shape(0) == 0) refuse("starts: one more than rows");
  if (keys.shape(0) != values.shape(0)) refuse("keys and values: the same length");
  if (columns < 0) refuse("columns: 0 (found from the keys) or more");
  const std::size_t rows = starts.shape(0) - 1;
  const auto one_each = [rows](const auto& array, const char* what) {
    if (array && array->shape(0) != rows) refuse(what);
    return array ? array->data() : nullptr;
  };
  Block block;
  auto kept = std::make_shared<Kept>();
  block.batch.rows = static_cast<std::int64_t>(rows);
  block.batch.labels = one_each(labels, "labels: one for each row");
  block.batch.weights = one_each(weights, "weights: one for each row");
  block.lines = one_each(lines, "lines: one for each row");
  if (label_starts.has_value() != label_values.has_value())
    refuse("give both label_starts and label_values, or neither");
  if (label_starts) {
    if (labels) refuse("give either labels or label_starts, not both");
    if (label_starts->shape(0) != rows + 1) refuse("label_starts: one more than rows");
    if (label_starts->data()[0] != 0) refuse("label_starts must begin at 0");
    check_starts(label_starts->data(), rows, label_values->shape(0),
                 "label starts must not decrease", "label starts reach beyond the labels");
    block.label_starts = label_starts->data(), block.label_values = label_values->data();
  }
  const nb::object arrays[] = {nb::cast(starts),       nb::cast(keys),        nb::cast(values),
                               nb::cast(labels),       nb::cast(weights),     nb::cast(lines),
                               nb::cast(label_starts), nb::cast(label_values)};
  std::copy(std::begin(arrays), std::end(arrays), kept->arrays);
  if (tags) set_tags(block, *kept, *tags);
  if (names)
    for (nb::handle pair : *names) {
      const auto name = nb::cast<nb::bytes>(pair[1]);
      block.names.push_back({nb::cast<std::uint64_t>(pair[0]), {name.c_str(), name.size()}});
    }
  block.first_line = first_line, block.offset = offset, block.bytes = bytes;
  block.line_count = line_count, block.digest = digest;
  {
    GilRelease release;
    with_type<std::int32_t, std::int64_t>(starts, "starts: int32 or int64", [&](auto start) {
      check_starts(start, rows, keys.shape(0),
                   "row starts must not decrease and begin at 0 or above",
                   "row starts reach beyond the keys");
      with_type<std::int32_t, std::int64_t>(keys, "keys: int32 or int64", [&](auto key) {
        with_type<float, double>(values, "values: float32 or float64", [&](auto value) {
          set_rows(block.batch, *kept, start, key, value, columns, distinct);
        });
      });
    });
  }
  block.owner = std::move(kept);
  return block;
}

Real real_of(const std::string& dtype) {
  if (dtype == "float32") return Real::float32;
  if (dtype == "float64") return Real::float64;
  throw std::invalid_argument("dtype: float32 or float64; found " + dtype);
}

nb::bytes as_bytes(const thresher::io::Text& text) {
  return nb::bytes(text.view().data(), text.view().size());
}

// The bytes of a path, given as str or os.PathLike.
std::string path_of(nb::handle path) {
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &encoded)) throw nb::python_error();
  const auto bytes = nb::steal<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const thresher::io::SystemError& e) {
    // As open() does: errno decides the class of the error.
    const std::string what = std::string(e.what()) + ": " + std::strerror(e.code);
    const auto path = nb::steal(
        PyUnicode_DecodeFSDefaultAndSize(e.path.data(), static_cast<Py_ssize_t>(e.path.size())));
    const auto made =
        nb::steal(PyObject_CallFunction(PyExc_OSError, "isO", e.code, what.c_str(), path.ptr()));
    if (made.is_valid())
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

void bind_writer(nb::module_& m) {
  nb::class_<CacheWriter>(
      m, "CacheWriter",
      "Writes a cache to an open file, which the caller syncs and closes; `path` is for messages.")
      .def(
          "__init__",
          [](CacheWriter* self, int file, nb::object path, std::string about) {
            const std::string where = path_of(path);
            const GilRelease release;
            new (self) CacheWriter(file, where, std::move(about));
          },
          "file"_a, "path"_a, "about"_a,
          nb::sig("def __init__(self, file: int, path: str | os.PathLike[str], about: str) -> "
                  "None"))
      .def("add", &CacheWriter::add, "block"_a, nb::call_guard<GilRelease>(), "Append a block.")
      .def(
          "finish",
          [](CacheWriter& self, const nb::bytes& sketch) {
            const std::span bytes(reinterpret_cast<const std::uint8_t*>(sketch.c_str()),
                                  sketch.size());
            const GilRelease release;
            self.finish(bytes);
          },
          "sketch"_a = nb::bytes("", 0), "Write the index.")
      .def("abandon", &CacheWriter::abandon, "Write no more to the file.");
}

void bind_reader(nb::module_& m) {
  nb::class_<CacheReader>(
      m, "CacheReader",
      "Reads the blocks of a cache from a mapped file, with one block read ahead.")
      .def(
          "__init__",
          [](CacheReader* self, nb::object path) {
            const std::string where = path_of(path);
            const GilRelease release;
            new (self) CacheReader(where);
          },
          "path"_a, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def_static(
          "from_memory",
          [](const nb::bytes& bytes) {
            return CacheReader::from_memory(
                {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()});
          },
          "bytes"_a, "Read a cache from a copy of its bytes.")
      .def_prop_ro("about", &CacheReader::about, "The text given to the writer.")
      .def_prop_ro("blocks", &CacheReader::blocks, "The number of blocks.")
      .def_prop_ro("rows", &CacheReader::rows)
      .def_prop_ro("nonzeros", &CacheReader::nonzeros)
      .def_prop_ro("width", &CacheReader::width,
                   "All keys are below it; 0: no such bound fits int64.")
      .def_prop_ro("named", &CacheReader::named, "Whether blocks have feature names.")
      .def_prop_ro("file_bytes", &CacheReader::file_bytes)
      .def_prop_ro("sketch",
                   [](const CacheReader& self) {
                     const auto sketch = self.sketch();
                     return nb::bytes(reinterpret_cast<const char*>(sketch.data()), sketch.size());
                   })
      .def("rows_of", &CacheReader::rows_of, "number"_a,
           "Return the number of rows of a block, without reading it.")
      .def(
          "block",
          [](CacheReader& self, std::size_t number, const std::string& dtype, bool names) {
            const Real real = real_of(dtype);
            const GilRelease release;
            return self.block(number, real, names);
          },
          "number"_a, "dtype"_a = "float32", "names"_a = true,
          "Return a block. Its arrays are views of the file; values have the dtype.")
      .def(
          "prefetch",
          [](CacheReader& self, std::size_t number, const std::string& dtype, bool names) {
            const Real real = real_of(dtype);
            const GilRelease release;
            self.prefetch(number, real, names);
          },
          "number"_a, "dtype"_a = "float32", "names"_a = true,
          "Start to read a block; only needed if blocks are not read in order.");
}

}  // namespace

void bind_cache(nb::module_& m) {
  nb::exception<thresher::io::CacheError>(m, "CacheError", PyExc_ValueError);
  nb::register_exception_translator(&translate);
  bind_writer(m);
  bind_reader(m);
  nb::class_<VwNames>(m, "VwNames", "The names of features by key, for vw_text.")
      .def(nb::init<>())
      .def("add", &VwNames::add, "block"_a,
           "Add the names of a block. Names that VW text cannot have are left out.");
  m.def(
      "svmlight_text",
      [](const Block& block, bool zero_based) {
        thresher::io::Text text;
        {
          const GilRelease release;
          text = thresher::io::svmlight_text(block, zero_based);
        }
        return as_bytes(text);
      },
      "block"_a, "zero_based"_a = false, "Return the rows as svmlight text.");
  m.def(
      "vw_text",
      [](const Block& block, const VwNames* names) {
        thresher::io::Text text;
        {
          const GilRelease release;
          text = names ? thresher::io::vw_text(block, *names) : thresher::io::vw_text(block);
        }
        return as_bytes(text);
      },
      "block"_a, "names"_a.none() = nb::none(),
      "Return the rows as VW text. Features without a name are numbers in the default namespace.");
  m.def(
      "make_block", &make_block, "starts"_a, "keys"_a, "values"_a, "labels"_a.none() = nb::none(),
      "weights"_a.none() = nb::none(), "label_starts"_a.none() = nb::none(),
      "label_values"_a.none() = nb::none(), "tags"_a.none() = nb::none(),
      "names"_a.none() = nb::none(), "columns"_a = 0, "distinct"_a = false, "first_line"_a = 1,
      "offset"_a = 0, "bytes"_a = 0, "line_count"_a = 0, "digest"_a = 0,
      "lines"_a.none() = nb::none(),
      "Make a block of arrays. It keeps them alive; they must not change. Unless `distinct`, the\n"
      "values of a repeated key in a row are summed, in a copy.");
}

}  // namespace bindings
