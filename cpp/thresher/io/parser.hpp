// Shared by all text parsers: options and error messages.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/io/block.hpp"
#include "thresher/io/storage.hpp"
#include "thresher/io/wanted_names.hpp"

namespace thresher::io {

struct Options {
  bool single = true;       // values are float32, else float64
  int bits = 0;             // number of lower bits of a key that are kept; 0: all
  bool zero_based = false;  // svmlight indices begin at 0
  bool multilabel = false;  // svmlight rows have any number of labels
  bool keep_going = true;   // continue after a bad line, and record its text; else end the block
  std::vector<std::array<char, 2>> interactions;  // VW namespaces by first letter; ':' means any
  bool names = false;
  bool names_again = false;  // report a name in each block that has it, not only in the first
  std::shared_ptr<const KeySet> wanted;     // with `names`: report only the names of these keys
  std::shared_ptr<const FirstNames> first;  // report the names that it may not have yet
  bool sketch = false;
  std::string level = "auto";  // of VW's parser; see Marks
};

// Each thread needs its own parser.
class Parser {
 public:
  virtual ~Parser() = default;

  // Parses whole lines into a block, whose offset is already set. `padding` bytes before and after
  // the text must be readable; the first byte after it is a newline.
  virtual void parse(std::string_view text, std::shared_ptr<Storage> storage, Block& block) = 0;
};

// Why a line failed to parse: the position, and the message.
struct Complaint {
  const char* at;
  std::string what;
};

inline constexpr std::size_t shown_bytes = 4096;  // of a bad line that is only shown in a message

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline const char* end_of_line(const char* p, const char* end) {
  const void* found = std::memchr(p, '\n', static_cast<std::size_t>(end - p));
  return found ? static_cast<const char*>(found) : end;
}

// Whether the line ends at p.
inline bool at_end(const char* p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }

// The message for p: what was expected, and what was found.
inline Complaint complain(const char* p, std::string_view expected) {
  std::string what = "expected " + std::string(expected) + "; found ";
  const auto escape = [&](char c) {
    static constexpr char hex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F) what += c;
    else what += "\\x", what += hex[byte >> 4], what += hex[byte & 15];
  };
  if (at_end(p)) return {p, what + "the end of the line"};
  if (*p == '\0') return {p, what + "a NUL byte"};
  if (is_blank(*p)) return {p, what + "a blank"};
  what += '"';
  const char* q = p;
  for (; q - p < 24 && !is_blank(*q) && !at_end(q) && *q != '\0'; ++q) escape(*q);
  if (q - p == 24 && !is_blank(*q) && !at_end(q)) what += "...";
  return {p, what + '"'};
}

}  // namespace thresher::io
