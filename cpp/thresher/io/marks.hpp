// The positions of all bytes that can end a name or a number in VW text: blanks, control
// characters, colons and bars. They are found for a few kilobytes at once, so that a parser can walk
// from one to the next without looking at the bytes between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace thresher::io {

// "avx512" | "avx2" | "portable", or "auto" for the widest level of this machine. All find the same
// marks. "none": no marks; parsers look at one feature at a time.
class Marks {
 public:
  static constexpr std::size_t reach = 4096;  // bytes

  explicit Marks(const std::string& level);

  bool on() const { return find_ != nullptr; }

  // Begins a new text, which ends at `end`; 64 bytes from there on must be readable.
  void begin(const char* end) { base_ = limit_ = nullptr, end_ = end; }

  // Finds the marks from p on, for `reach` bytes or up to the end of the text.
  void find(const char* p) {
    const std::size_t windows = static_cast<std::size_t>(end_ - p) / 64 + 1;
    const std::size_t most = windows < reach / 64 ? windows : reach / 64;
    base_ = p, limit_ = p + 64 * most, next_ = 0;
    count_ = find_(p, most, at(), kinds_.data());
    at()[count_] = UINT16_MAX;
    *(at() - 1) = UINT16_MAX;  // as if p came after a mark
  }

  // Moves to the first mark at or after p, and sets the mark before it to the byte before p.
  void seek(const char* p) {
    if (p < base_ || p >= limit_) return find(p);
    const auto from = static_cast<std::size_t>(p - base_);
    while (at()[next_] < from) ++next_;
    at()[static_cast<std::ptrdiff_t>(next_) - 1] = static_cast<std::uint16_t>(from - 1);
  }

  const char* base() const { return base_; }
  bool last() const { return limit_ > end_; }  // marks up to the end of the text are known
  std::size_t count() const { return count_; }
  std::size_t next() const { return next_; }
  void set_next(std::size_t next) { next_ = next; }

  // Position of each mark after base(); at(-1) exists, and at(count()) is beyond all.
  std::uint16_t* at() { return at_.data() + 1; }
  const char* kinds() const { return kinds_.data(); }  // the byte at each mark

  using Find = std::size_t(const char* p, std::size_t windows, std::uint16_t* at, char* kinds);

 private:
  Find* find_;
  const char *base_ = nullptr, *limit_ = nullptr, *end_ = nullptr;
  std::size_t count_ = 0, next_ = 0;
  std::array<std::uint16_t, reach + 128> at_;
  std::array<char, reach + 128> kinds_;
};

}  // namespace thresher::io
