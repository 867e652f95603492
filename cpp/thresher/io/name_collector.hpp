// Collects the names of the features that a parser reads. Each parser (one per thread and file)
// reports a name when it first reads it. Memory is bounded: if there are very many names, a parser
// reports some of them more than once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/io/first_names.hpp"
#include "thresher/io/hash.hpp"
#include "thresher/io/parser.hpp"

namespace thresher::io {

// Features whose names may be new, until they are flushed. Arrays, so that eight can be added at a
// time.
struct SeenNames {
  static constexpr std::size_t most = 64;  // of `count`, before eight are added

  std::array<std::uint64_t, most + 8> keys;  // folded
  std::array<const char*, most + 8> names;
  std::array<std::uint64_t, most + 8> sizes;
  std::size_t count = 0;
};

class Names {
 public:
  explicit Names(const Options& options)
      : on_(options.names), again_(options.names_again), wanted_(options.wanted) {
    if (options.first) first_ = options.first, reported_.emplace(options.bits);
  }

  void begin(Block& block) {
    names_ = &block.names, list_ = &block.first_names;
    if (first_) {
      on_ = !first_->full();
    } else if (on_ && (again_ || !recent_)) {
      recent_.emplace(0);
    }
  }

  bool on() const { return on_; }

  // For vectors of features, if on(): whether keys are folded and features wait for a flush in
  // seen(); if there are more than `most`, flush() must be called. And the keys reported before.
  bool waits() const { return reported_.has_value(); }
  SeenNames& seen() { return seen_; }
  ReportedKeys::View reported() const { return (reported_ ? *reported_ : *recent_).view(); }

  // Notes a feature: at once, or at the next flush(). The text of the name must stay until then.
  void see(std::uint64_t key, std::uint64_t folded, const PrefixHash& space,
           std::string_view name) {
    if (!reported_) {
      if (wants(key, folded)) add(folded, space.prefix(), name);
    } else if (on_) {
      reported_->prefetch(folded);
      seen_.keys[seen_.count] = folded;
      seen_.names[seen_.count] = name.data(), seen_.sizes[seen_.count] = name.size();
      if (++seen_.count > SeenNames::most) flush(space);
    }
  }

  // Adds the names of the features since the last flush, which are of one namespace. Not at once,
  // because most of the time would be spent on waiting for memory.
  void flush(const PrefixHash& space) {
    if (seen_.count > 0) report(space);
  }
  [[gnu::noinline]] void report(const PrefixHash& space) {
    std::size_t fresh = 0;
    for (std::size_t i = 0; i < seen_.count; ++i) {
      seen_.keys[fresh] = seen_.keys[i];
      seen_.names[fresh] = seen_.names[i], seen_.sizes[fresh] = seen_.sizes[i];
      fresh += reported_->is_new(seen_.keys[i]);
    }
    seen_.count = 0;
    if (fresh == 0) return;
    const std::string prefix = space.prefix();
    for (std::size_t i = 0; i < fresh; ++i)
      add(seen_.keys[i], prefix, std::string_view(seen_.names[i], seen_.sizes[i]));
  }

  // Whether the name of `key` should be added; `folded` is the key of its weight.
  bool wants(std::uint64_t key, std::uint64_t folded) {
    if (!on_) [[likely]]
      return false;
    if (reported_) return reported_->is_new(folded);
    if (!recent_->is_new(key)) return false;  // the common case, and faster than the set
    return !wanted_ || wanted_->lacks(folded);
  }

  template <class... Parts>
  void add(std::uint64_t folded, std::string_view space, std::string_view name, Parts... others) {
    if (first_) {
      if constexpr (sizeof...(others) == 0) list_->add(folded, space, name);
      else list_->add(folded, space, name, '*', others...);
      return;
    }
    std::string text(space);
    text += name;
    if constexpr (sizeof...(others) != 0) {
      text += '*';
      ((text += others), ...);
    }
    names_->push_back({folded, std::move(text)});
  }

 private:
  bool on_, again_;
  std::shared_ptr<const KeySet> wanted_;
  std::shared_ptr<const FirstNames> first_;
  std::optional<ReportedKeys> reported_;  // with `first_`
  SeenNames seen_;
  std::vector<Name>* names_ = nullptr;
  NameList* list_ = nullptr;
  std::optional<ReportedKeys> recent_;  // without `first_`: of all bits of the keys
};

}  // namespace thresher::io
