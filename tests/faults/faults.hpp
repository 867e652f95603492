// What the two parts of the preloaded library share: see faults.cpp.
#pragma once

#include <cstddef>

// Kinds of calls; `library.py` has the same numbers.
enum Kind : unsigned {
  open_kind = 1,
  create_kind = 2,  // opens for writing
  read_kind = 4,
  write_kind = 8,
  sync_kind = 16,
  name_kind = 32,  // rename, link, mkdir
  remove_kind = 64,
  map_kind = 128,
  size_kind = 256,
  look_kind = 512,  // fstat, lseek
  close_kind = 1024,
  memory_kind = 2048,
  thread_kind = 4096,
  find_kind = 8192,     // stat of a path, opendir
  access_kind = 16384,  // fchmod, fchown
  lock_kind = 32768,
  temporary_kind = 65536,  // only of calls that failed: temporary files may stay because of it
};

#pragma GCC visibility push(hidden)

// Counts a call; true if it must fail. Then errno is set.
bool fails(unsigned kind);

// Adds a kind to those of the calls that have failed.
void add_failed(unsigned kind);

// Counts a call, for an allocation that the core makes, directly or through the C++ standard library.
bool memory_fails(const void* caller);

// Whether a fault makes calls read or write half of the bytes.
bool halves_bytes();

// Names the folder whose files are watched. Without `unnamed`, all files in it need a name.
void watch_folder(const char* path, bool unnamed);

#pragma GCC visibility pop
