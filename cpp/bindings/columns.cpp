// Rows split by columns, rows without empty columns, and the margin perceptron on one block of
// columns, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "casters.hpp"
#include "thresher/core/used_columns.hpp"
#include "thresher/rules/margin_block.hpp"

namespace bindings {
namespace {

using namespace nb::literals;
using Block = thresher::MarginBlock;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A block with the rows that it borrows. One thread at a time uses it; waiting threads release the
// GIL.
class BorrowingBlock {
 public:
  BorrowingBlock(const BorrowedBatch& rows, const Floats& reach, const std::string& dtype,
                 std::uint64_t width, const std::map<std::string, double>& numbers,
                 const std::map<std::string, std::string>& words)
      : rows_(rows),
        reach_(reach),
        block_(thresher::make_margin_block(dtype, width, thresher::Params(numbers, words))) {
    if (!rows.labels) throw std::invalid_argument("learning needs labels");
    if (reach.shape(0) != static_cast<std::size_t>(rows.batch.rows))
      throw std::invalid_argument("reach: one for each row");
  }

  template <class F>
  auto use(F&& f) const {
    GilRelease release;
    std::lock_guard lock(block_->mutex);
    return f(*block_);
  }

  const BorrowedBatch& rows() const { return rows_; }
  const float* reach() const { return reach_.data(); }

 private:
  BorrowedBatch rows_;
  Floats reach_;
  std::unique_ptr<Block> block_;
};

template <class Real>
nb::tuple cut(const BorrowedBatch& batch, std::uint64_t width, std::size_t blocks, bool intercept) {
  double squares = 0.0;
  std::vector<thresher::CutRows<Real>> found;
  {
    GilRelease release;
    found = thresher::cut_columns<Real>(batch.batch, width, blocks, intercept, squares);
  }
  nb::list pieces;
  for (auto& block : found)
    pieces.append(
        nb::make_tuple(owned_array(std::move(block.counts)), owned_array(std::move(block.keys)),
                       owned_array(std::move(block.values)), owned_array(std::move(block.reach))));
  return nb::make_tuple(pieces, squares);
}

}  // namespace

void bind_columns(nb::module_& m) {
  m.def(
      "cut_columns",
      [](const BorrowedBatch& batch, const std::string& dtype, std::uint64_t width,
         std::size_t blocks, bool intercept) {
        if (blocks == 0) throw std::invalid_argument("blocks: at least 1");
        if (dtype == "float32") return cut<float>(batch, width, blocks, intercept);
        if (dtype == "float64") return cut<double>(batch, width, blocks, intercept);
        throw std::invalid_argument("unknown dtype '" + dtype + "'");
      },
      "batch"_a, "dtype"_a, "width"_a, "blocks"_a, "intercept"_a,
      "Split rows by columns. Return for each block: the number of its features in each row, "
      "their\n"
      "keys, their values, and for each row ||x||^2 divided by that of these features. Also "
      "return\n"
      "the largest ||x||^2. Keys are below width; 0: any key.");

  nb::class_<BorrowingBlock>(m, "MarginBlock",
                             "The margin perceptron on a block of columns, batch by batch.")
      .def(nb::init<const BorrowedBatch&, const Floats&, const std::string&, std::uint64_t,
                    const std::map<std::string, double>&,
                    const std::map<std::string, std::string>&>(),
           "rows"_a, "reach"_a, "dtype"_a, "width"_a, "numbers"_a, "words"_a,
           "Rows with labels; their keys are column numbers below width.")
      .def(
          "products",
          [](BorrowingBlock& self, std::optional<Longs> order, std::int64_t first,
             std::int64_t last) {
            const thresher::Visit visit = visit_of(self.rows(), order, first, last);
            return owned_array(
                self.use([&](Block& b) { return b.products(self.rows().batch, visit); }));
          },
          "order"_a.none(), "first"_a, "last"_a,
          "Return the block's part of the inner products of the rows order[first:last].")
      .def(
          "learn",
          [](BorrowingBlock& self, std::optional<Longs> order, std::int64_t first,
             std::int64_t last, const Doubles& sums) {
            const thresher::Visit visit = visit_of(self.rows(), order, first, last);
            if (sums.shape(0) != static_cast<std::size_t>(last - first))
              throw std::invalid_argument("sums: one for each row");
            const std::vector<bool> updated = self.use([&](Block& b) {
              return b.learn(self.rows().batch, visit, sums.data(), self.reach());
            });
            std::vector<std::uint8_t> bits((updated.size() + 7) / 8);
            for (std::size_t i = 0; i < updated.size(); ++i)
              bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | updated[i] << (7 - i % 8));
            return owned_array(std::move(bits));
          },
          "order"_a.none(), "first"_a, "last"_a, "sums"_a,
          "Learn from the rows of the last `products`; `sums` are over all blocks. Return a bit "
          "for\n"
          "each row, in the layout of numpy.packbits: whether it made an update.")
      .def(
          "weights",
          [](const BorrowingBlock& self) {
            auto found = self.use([](Block& b) { return b.weights(); });
            return nb::make_tuple(owned_array(std::move(found.first)),
                                  owned_array(std::move(found.second)));
          },
          "Return the columns of nonzero weights, and the weights.")
      .def_prop_ro("intercept",
                   [](const BorrowingBlock& self) {
                     return self.use([](Block& b) { return b.intercept(); });
                   })
      .def("facts",
           [](const BorrowingBlock& self) { return self.use([](Block& b) { return b.facts(); }); })
      .def("state",
           [](const BorrowingBlock& self) {
             const std::vector<std::byte> state = self.use([](Block& b) { return b.state(); });
             return nb::bytes(state.data(), state.size());
           })
      .def(
          "restore",
          [](BorrowingBlock& self, const nb::bytes& state) {
            const std::span bytes(static_cast<const std::byte*>(state.data()), state.size());
            self.use([&](Block& b) { b.restore(bytes); });
          },
          "state"_a);

  m.def(
      "used_columns",
      [](const BorrowedBatch& batch, std::uint64_t most, std::size_t threads) -> nb::object {
        const BorrowedBatch held = batch;
        auto found = [&] {
          GilRelease release;
          return thresher::used_columns(held.batch, most, threads);
        }();
        if (!found) return nb::none();
        return nb::make_tuple(owned_array(std::move(found->columns)),
                              owned_array(std::move(found->keys)));
      },
      "batch"_a, "most"_a, "threads"_a,
      nb::sig("def used_columns(batch: Batch, most: int, "
              "threads: int) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int32]] | None"),
      "Return the columns that occur, and the keys with these columns numbered from 0.\n\n"
      "None if more than `most` occur, or if learners might refuse a key or a value.");
}

}  // namespace bindings
