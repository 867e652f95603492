#include "thresher/core/value_range.hpp"

#include <cmath>

namespace thresher {
namespace {

template <class Value>
void widen(ValueRange& range, const Value* from, const Value* to) {
  Value least = std::numeric_limits<Value>::infinity(), most = 0;
  for (; from < to; ++from) {
    const Value size = std::fabs(*from);
    least = size > 0 && size < least ? size : least;
    most = size > most ? size : most;
  }
  range.least = std::fmin(range.least, static_cast<double>(least));
  range.most = std::fmax(range.most, static_cast<double>(most));
}

}  // namespace

ValueRange value_range(const Batch& batch, std::int64_t count, std::int64_t step) {
  ValueRange range;
  const auto start = [&](std::int64_t row) {
    if (const auto* p = std::get_if<const std::int32_t*>(&batch.starts))
      return std::int64_t{(*p)[row]};
    if (const auto* p = std::get_if<const std::int64_t*>(&batch.starts)) return (*p)[row];
    return row * batch.columns;
  };
  std::visit(
      [&](auto values) {
        for (std::int64_t i = 0; i < count; ++i)
          widen(range, values + start(i * step), values + start(i * step + 1));
      },
      batch.values);
  return range;
}

}  // namespace thresher
