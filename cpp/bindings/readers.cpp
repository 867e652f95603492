// Text readers, and the hashes that make keys, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include "arrays.hpp"
#include "casters.hpp"
#include "gil.hpp"
#include "thresher/io/hash.hpp"
#include "thresher/io/hash_strings.hpp"
#include "thresher/io/reader.hpp"
#include "thresher/io/sketch.hpp"
#include "thresher/io/svmlight.hpp"
#include "thresher/io/vw.hpp"

namespace bindings {

using namespace nb::literals;
namespace io = thresher::io;

namespace {

std::span<const std::uint8_t> bytes_of(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()};
}

// The bytes of an object with `readinto`. Any thread may read; Python errors are passed on
// unchanged.
class PythonBytes final : public io::ByteSource {
 public:
  explicit PythonBytes(nb::object object) : readinto_(object.attr("readinto")) {}
  ~PythonBytes() override {
    if (!can_take_gil()) {
      readinto_.release();  // Python is ending, and frees it
      return;
    }
    GilAcquire gil;
    readinto_.reset();
  }

  std::size_t read(char* into, std::size_t size) override {
    GilAcquire gil;
    nb::object view =
        nb::steal(PyMemoryView_FromMemory(into, static_cast<Py_ssize_t>(size), PyBUF_WRITE));
    if (!view.is_valid()) throw nb::python_error();
    const nb::object count = readinto_(view);
    view.attr("release")();  // so that Python code cannot write to the memory later
    if (count.is_none()) throw nb::value_error("readinto() returned None: the source must block");
    const auto read = nb::cast<std::int64_t>(count);
    if (read < 0 || static_cast<std::size_t>(read) > size)
      throw nb::value_error("readinto() returned more than the size of its buffer");
    return static_cast<std::size_t>(read);
  }

 private:
  nb::object readinto_;
};

[[noreturn]] void raise_os_error(const std::system_error& error, const std::string& path) {
  nb::object exception =
      nb::steal(PyObject_CallFunction(PyExc_OSError, "iss", error.code().value(),
                                      std::strerror(error.code().value()), path.c_str()));
  if (exception.is_valid())
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

// Returns a pointer that keeps the Python object of `held` alive. The converter of nanobind ends
// the process if there is no memory; this throws.
template <class T>
std::shared_ptr<T> shared_with_python(T* held) {
  if (!held) return nullptr;
  const nb::object owner = nb::find(*held);
  owner.inc_ref();
  return {held, [object = owner.ptr()](T*) noexcept {
            if (!can_take_gil()) return;  // Python is ending, and frees it
            const GilAcquire gil;
            Py_DECREF(object);
          }};
}

// A reader that waits without the GIL, because its workers may need it. While it waits, it
// regularly checks for signals and calls `waiting`, which may raise an error.
class PythonReader {
 public:
  PythonReader(nb::object source, const io::Reader::MakeParser& make_parser,
               const io::Reading& reading, bool keep_going, std::optional<std::string> path,
               nb::object waiting, std::shared_ptr<io::FirstNames> first)
      : path_(path.value_or("")), waiting_(std::move(waiting)), first_(std::move(first)) {
    if (source.is_none() == !path) throw std::invalid_argument("give either a source or a path");
    if (!path && reading.end != io::FileBytes::all) throw std::invalid_argument("end needs a path");
    std::unique_ptr<io::ByteSource> bytes;
    try {
      if (path) bytes = std::make_unique<io::FileBytes>(path_, reading.offset, reading.end);
      else bytes = std::make_unique<PythonBytes>(std::move(source));
    } catch (const std::system_error& error) {
      raise_os_error(error, path_);
    }
    io::Reader::InOrder in_order;
    if (first_)
      in_order = [to = first_.get()](io::Block& block) { to->remove_known(block.first_names); };
    reader_.emplace(std::move(bytes), make_parser, reading, keep_going, std::move(in_order));
  }
  ~PythonReader() { close(); }

  std::unique_ptr<io::Block> next() {
    try {
      GilRelease release;
      std::lock_guard lock(mutex_);
      if (!reader_) return nullptr;
      std::unique_ptr<io::Block> block;
      bool waits = false;
      try {
        block = reader_->next([&] {
          waits = true;
          check_signals();
          waits = false;
        });
      } catch (...) {
        if (!waits) reader_.reset();  // otherwise a worker may still be reading: do not join
        throw;
      }
      if (!block) reader_.reset();  // releases the source
      else if (first_) first_->take(std::move(block->first_names));
      return block;
    } catch (const std::system_error& error) {
      raise_os_error(error, path_);
    }
  }

  void close() {
    GilRelease release;
    std::lock_guard lock(mutex_);
    reader_.reset();
  }

 private:
  void check_signals() {
    GilAcquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!waiting_.is_none()) waiting_();
  }

  std::mutex mutex_;
  std::string path_;
  nb::object waiting_;
  std::shared_ptr<io::FirstNames> first_;
  std::optional<io::Reader> reader_;
};

io::Reader::MakeParser parser_of(const std::string& format, const io::Options& options) {
  if (format == "svmlight") return [options] { return io::make_svmlight(options); };
  if (format == "vw") return [options] { return io::make_vw(options); };
  throw std::invalid_argument("format must be svmlight or vw");
}

nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>> hash_strings(AnyVector offsets, nb::object data,
                                                                const nb::bytes& prefix) {
  if (offsets.shape(0) == 0)
    throw std::invalid_argument("offsets must have one more number than strings");
  Py_buffer view;
  if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  struct Release {  // runs with the GIL, which is taken again before
    Py_buffer* view;
    ~Release() { PyBuffer_Release(view); }
  } release{&view};
  const std::string_view text(static_cast<const char*>(view.buf),
                              static_cast<std::size_t>(view.len));
  const std::string_view before(prefix.c_str(), prefix.size());
  std::vector<std::uint64_t> keys(offsets.shape(0) - 1);
  std::optional<GilRelease> gil(std::in_place);
  if (offsets.dtype() == nb::dtype<std::int32_t>())
    io::hash_strings(static_cast<const std::int32_t*>(offsets.data()), keys.size(), text, before,
                     keys.data());
  else if (offsets.dtype() == nb::dtype<std::int64_t>())
    io::hash_strings(static_cast<const std::int64_t*>(offsets.data()), keys.size(), text, before,
                     keys.data());
  else throw std::invalid_argument("offsets: int32 or int64");
  gil.reset();
  return owned_array(std::move(keys));
}

}  // namespace

void bind_names(nb::module_& m) {
  using thresher::io::KeySet, thresher::io::NameTable;
  const auto listed = [](const auto& names) {
    nb::dict found;
    for (const auto& [key, name] : names)
      found[nb::int_(key)] = nb::bytes(name.data(), name.size());
    return found;
  };
  nb::class_<KeySet>(m, "WantedNames", "Features whose names are wanted.")
      .def(
          "__init__",
          [](KeySet* self, Keys keys) { new (self) KeySet({keys.data(), keys.shape(0)}); },
          "keys"_a)
      .def(
          "take", [](KeySet& self, const io::Block& block) { self.take(block.names); }, "block"_a,
          "Store the names of a block. Call it for blocks in file order.")
      .def_prop_ro(
          "keys", [](const KeySet& self) { return owned_array(self.keys()); },
          nb::rv_policy::automatic, "The keys without a name so far.")
      .def_prop_ro("missing", &KeySet::missing, "The number of keys without a name so far.")
      .def_prop_ro(
          "found", [listed](const KeySet& self) { return listed(self.found()); },
          nb::sig("def found(self) -> dict[int, bytes]"));
  using thresher::io::FirstNames;
  nb::class_<FirstNames>(m, "FirstNames",
                         "The first name of each feature, collected by readers while they read.\n"
                         "`bits`: of the readers. If they need more than `most_bytes`, all names "
                         "are dropped.")
      .def(nb::init<int, std::size_t>(), "bits"_a = 0, "most_bytes"_a = std::size_t{64} << 20)
      .def("__len__", &FirstNames::size)
      .def_prop_ro("full", &FirstNames::full, "Whether the names were dropped.")
      .def(
          "keys", [](const FirstNames& self) { return owned_array(self.keys()); },
          "Return all features that have a name, in increasing order.")
      .def(
          "of",
          [](const FirstNames& self, Keys keys) {
            FirstNames::Selected found;
            {
              GilRelease release;
              found = self.of({keys.data(), keys.shape(0)});
            }
            return nb::make_tuple(owned_array(std::move(found.keys)),
                                  owned_array(std::move(found.ends)),
                                  owned_array(std::move(found.text)));
          },
          "keys"_a,
          nb::sig("def of(self, keys: NDArray[numpy.uint64]) -> tuple[NDArray[numpy.uint64], "
                  "NDArray[numpy.int64], NDArray[numpy.uint8]]"),
          "Return those of these features, in increasing order, that have names; the end of each\n"
          "name; and all names joined.");
  nb::class_<NameTable>(m, "NameTable",
                        "The names of all features seen, except those removed by retain().")
      .def(nb::init<>())
      .def("__len__", [](const NameTable& self) { return self.names().size(); })
      .def(
          "take", [](NameTable& self, const io::Block& block) { self.take(block.names); },
          "block"_a)
      .def(
          "retain", [](NameTable& self, Keys keys) { self.retain({keys.data(), keys.shape(0)}); },
          "keys"_a, "Remove the names of all other features.")
      .def(
          "add",
          [](NameTable& self, std::uint64_t key, const nb::bytes& name) {
            self.add(key, {name.c_str(), name.size()});
          },
          "key"_a, "name"_a)
      .def(
          "of",
          [](const NameTable& self, Keys keys) {
            nb::dict found;
            for (std::size_t i = 0; i < keys.shape(0); ++i)
              if (const auto at = self.names().find(keys.data()[i]); at != self.names().end())
                found[nb::int_(at->first)] = nb::bytes(at->second.data(), at->second.size());
            return found;
          },
          "keys"_a, nb::sig("def of(self, keys: NDArray[numpy.uint64]) -> dict[int, bytes]"),
          "Return the names of these features; some may be missing.")
      .def_prop_ro(
          "names", [listed](const NameTable& self) { return listed(self.names()); },
          nb::sig("def names(self) -> dict[int, bytes]"));
}

void bind_readers(nb::module_& m) {
  bind_names(m);
  nb::class_<PythonReader>(m, "Reader",
                           "Parses text into blocks of rows, with one or more threads.")
      .def(
          "__init__",
          [](PythonReader* self, nb::object source, const std::string& format,
             std::optional<std::string> path, const std::string& dtype, int bits, bool zero_based,
             bool multilabel, const std::vector<nb::bytes>& interactions, bool names,
             bool names_again, io::KeySet* wanted, io::FirstNames* first_names, bool sketch,
             bool keep_going, int threads, std::uint64_t offset, std::uint64_t first_line,
             std::size_t block_bytes, std::size_t max_line, nb::object waiting,
             std::optional<std::uint64_t> end, const std::string& level) {
            io::Options options;
            if (dtype != "float32" && dtype != "float64")
              throw std::invalid_argument("dtype must be float32 or float64");
            if (bits < 0 || bits > 62)
              throw std::invalid_argument("bits must be from 0 (all) to 62");
            options.single = dtype == "float32", options.bits = bits;
            options.zero_based = zero_based, options.multilabel = multilabel;
            for (const nb::bytes& pair : interactions) {
              if (pair.size() != 2)
                throw std::invalid_argument("interactions must be pairs of letters");
              options.interactions.push_back({pair.c_str()[0], pair.c_str()[1]});
            }
            std::shared_ptr<io::FirstNames> first = shared_with_python(first_names);
            if (first && (names || names_again || wanted))
              throw std::invalid_argument("give only one of names, names_again, wanted and first");
            options.names = names || names_again || wanted, options.names_again = names_again,
            options.sketch = sketch, options.first = first;
            options.wanted = shared_with_python(wanted);
            options.keep_going = keep_going;
            options.level = level;
            const io::Reading reading{threads,     offset,   first_line,
                                      block_bytes, max_line, end.value_or(io::FileBytes::all)};
            new (self)
                PythonReader(std::move(source), parser_of(format, options), reading, keep_going,
                             std::move(path), std::move(waiting), std::move(first));
          },
          "source"_a.none(), "format"_a, nb::kw_only(), "path"_a = nb::none(),
          "dtype"_a = "float32", "bits"_a = 0, "zero_based"_a = false, "multilabel"_a = false,
          "interactions"_a = std::vector<nb::bytes>(), "names"_a = false, "names_again"_a = false,
          "wanted"_a = nb::none(), "first"_a = nb::none(), "sketch"_a = false,
          "keep_going"_a = true, "threads"_a = 1, "offset"_a = 0, "first_line"_a = 1,
          "block_bytes"_a = std::size_t{1} << 20, "max_line"_a = std::size_t{32} << 20,
          "waiting"_a.none() = nb::none(), "end"_a.none() = nb::none(), "level"_a = "auto",
          "Read `format` from `path`, up to the byte `end`, or from the `readinto` of `source`. "
          "The\n"
          "source is at position `offset`. While `next` waits for threads, it regularly calls\n"
          "`waiting`, and passes on its errors. `first` takes the names of each block returned.\n"
          "level: avx512, avx2, portable or none, how VW text is parsed; all give the same blocks.")
      .def("next", &PythonReader::next, nb::sig("def next(self) -> Block | None"),
           "Return the next block of rows; None at the end.")
      .def("close", &PythonReader::close, "Stop the threads. No block can be read afterwards.");

  m.def(
      "hash_name", [](const nb::bytes& name) { return io::hash64({name.c_str(), name.size()}); },
      "name"_a, "Return the key of a feature, given \"name\" or \"namespace^name\".");
  m.def("mix_keys", &io::mix, "a"_a, "b"_a, "Return the key of the interaction of two features.");
  m.def("hash_strings", &hash_strings, "offsets"_a, "data"_a, "prefix"_a = nb::bytes("", 0),
        "Return the keys of prefix + data[offsets[i]:offsets[i + 1]].");

  m.def(
      "sketch_merge",
      [](const nb::bytes& a, const nb::bytes& b) {
        if (a.size() == 0) return b;
        if (b.size() == 0) return a;
        std::vector<std::uint8_t> merged(bytes_of(a).begin(), bytes_of(a).end());
        io::sketch_merge(merged, bytes_of(b));
        return nb::bytes(reinterpret_cast<const char*>(merged.data()), merged.size());
      },
      "a"_a, "b"_a, nb::sig("def sketch_merge(a: object, b: object) -> bytes"),
      "Return the sketch of the keys of both. An empty sketch has no keys.");
  m.def(
      "sketch_estimate",
      [](const nb::bytes& sketch) {
        return sketch.size() == 0 ? 0.0 : io::sketch_estimate(bytes_of(sketch));
      },
      "sketch"_a, nb::sig("def sketch_estimate(sketch: object) -> float"),
      "Return the approximate number of distinct keys of a sketch.");
}

}  // namespace bindings
