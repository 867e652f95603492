// Blocks of rows for Python: the arrays are views of the block and keep it alive.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/io/block.hpp"

namespace bindings {

using namespace nb::literals;
using thresher::io::BadLine;
using thresher::io::Block;

namespace {

template <class T>
using View = nb::ndarray<nb::numpy, const T, nb::ndim<1>>;

template <class T>
std::optional<View<T>> view(const T* data, std::size_t size, nb::handle owner) {
  if (!data) return std::nullopt;
  return View<T>(data, {size}, owner);
}

std::size_t rows_of(const Block& block) { return static_cast<std::size_t>(block.batch.rows); }

const Block& block_of(nb::handle self) { return nb::cast<const Block&>(self); }

// A batch that borrows the rows, and the block's labels and weights until set_targets.
BorrowedBatch batch_of(nb::handle self) {
  const Block& block = block_of(self);
  BorrowedBatch borrowed;
  borrowed.batch = block.batch;
  borrowed.keep[0] = nb::borrow(self);
  return borrowed;
}

}  // namespace

void bind_blocks(nb::module_& m) {
  nb::class_<BadLine>(m, "BadLine", "A line that failed to parse.")
      .def_ro("line", &BadLine::line, "Line number from 0, within the block.")
      .def_ro("column", &BadLine::column, "Column from 1, in bytes.")
      .def_ro("what", &BadLine::what)
      .def_prop_ro("text",
                   [](const BadLine& bad) { return nb::bytes(bad.text.data(), bad.text.size()); });

  nb::class_<Block>(m, "Block", "Rows that a reader returns, and their position in the file.")
      .def_prop_ro("batch", &batch_of, "The rows as a batch that borrows them.")
      .def_prop_ro("rows", [](const Block& b) { return b.batch.rows; })
      .def_prop_ro("nonzeros",
                   [](const Block& b) {
                     return std::visit(
                         [&](auto starts) -> std::int64_t {
                           if constexpr (std::is_same_v<decltype(starts), std::monostate>) return 0;
                           else return starts[b.batch.rows];
                         },
                         b.batch.starts);
                   })
      .def_prop_ro(
          "width", [](const Block& b) { return b.batch.columns; },
          "All keys are below it; 0: some key is 2^63 or larger.")
      .def_prop_ro("starts",
                   [](nb::handle self) {
                     return std::visit(
                         [&](auto starts) -> nb::object {
                           if constexpr (std::is_same_v<decltype(starts), std::monostate>)
                             return nb::none();
                           else return nb::cast(view(starts, rows_of(block_of(self)) + 1, self));
                         },
                         block_of(self).batch.starts);
                   })
      .def_prop_ro(
          "keys",
          [](nb::handle self) {
            const Block& block = block_of(self);
            const auto count = nb::cast<std::size_t>(self.attr("nonzeros"));
            return std::visit(
                [&](auto keys) -> nb::object {
                  if constexpr (std::is_same_v<decltype(keys), std::monostate>) return nb::none();
                  else return nb::cast(view(keys, count, self));
                },
                block.batch.keys);
          },
          "int32 or int64; a key of 2^63 or larger appears as negative.")
      .def_prop_ro("values",
                   [](nb::handle self) {
                     const auto count = nb::cast<std::size_t>(self.attr("nonzeros"));
                     return std::visit(
                         [&](auto values) { return nb::cast(view(values, count, self)); },
                         block_of(self).batch.values);
                   })
      .def_prop_ro(
          "labels",
          [](nb::handle self) {
            const Block& block = block_of(self);
            return view(block.batch.labels, rows_of(block), self);
          },
          "NaN for a row without a label; None for multilabel rows.")
      .def_prop_ro("weights",
                   [](nb::handle self) {
                     const Block& block = block_of(self);
                     return view(block.batch.weights, rows_of(block), self);
                   })
      .def_prop_ro("label_starts",
                   [](nb::handle self) {
                     const Block& block = block_of(self);
                     return view(block.label_starts, rows_of(block) + 1, self);
                   })
      .def_prop_ro("label_values",
                   [](nb::handle self) {
                     const Block& block = block_of(self);
                     const std::size_t count =
                         block.label_starts
                             ? static_cast<std::size_t>(block.label_starts[block.batch.rows])
                             : 0;
                     return view(block.label_values, count, self);
                   })
      .def_prop_ro(
          "tags",
          [](const Block& block) -> nb::object {
            if (!block.tag_starts) return nb::none();
            nb::list tags;
            for (std::int64_t row = 0; row < block.batch.rows; ++row)
              tags.append(nb::bytes(block.tags + block.tag_starts[row],
                                    block.tag_starts[row + 1] - block.tag_starts[row]));
            return tags;
          },
          "The tag of each row, or None.")
      .def(
          "line",
          [](const Block& block, std::int64_t row) {
            if (row < 0 || row >= block.batch.rows) throw nb::index_error("row");
            return block.first_line +
                   (block.lines ? block.lines[row] : static_cast<std::uint64_t>(row));
          },
          "row"_a, "The line of a row in its file, from 1.")
      .def_ro("offset", &Block::offset)
      .def_ro("bytes", &Block::bytes)
      .def_ro("first_line", &Block::first_line)
      .def_ro("line_count", &Block::line_count)
      .def_ro("digest", &Block::digest)
      .def_ro("sum", &Block::sum)
      .def_ro("bad", &Block::bad)
      .def_prop_ro(
          "names",
          [](const Block& block) {
            nb::list names;
            for (const auto& [key, name] : block.names)
              names.append(nb::make_tuple(key, nb::bytes(name.data(), name.size())));
            return names;
          },
          "Pairs (key, name) of features, if requested.")
      .def_prop_ro(
          "spaces",
          [](const Block& block) {
            nb::list spaces;
            for (const std::string& space : block.spaces)
              spaces.append(nb::bytes(space.data(), space.size()));
            return spaces;
          },
          "Namespaces of VW text, with interactions: each at least once per file.")
      .def_prop_ro(
          "sketch",
          [](const Block& block) {
            return nb::bytes(reinterpret_cast<const char*>(block.sketch.data()),
                             block.sketch.size());
          },
          // Not `bytes`: within Block that name is a property.
          nb::for_getter(nb::sig("def sketch(self) -> object")),
          "The sketch of the keys as a bytes object, if requested.");
}

}  // namespace bindings
