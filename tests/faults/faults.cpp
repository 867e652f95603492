// A preloaded library: calls of the system and allocations fail when a test wants it.
//
// Two sets of calls are counted:
// - calls on files in one folder, whoever makes them: the core, Python, pyarrow, safetensors
//   (files.cpp);
// - allocations and new threads of one loaded library: the core.
// A test arms one fault: the n-th counted call of some kinds fails once, or all calls from the n-th
// on fail. The library can also write a log of all changes of files, for simulated power cuts.
//
// Linux with glibc only. `library.py` compiles and controls it.
#include "faults.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

constexpr int most_frames = 24;

struct Code {  // the addresses of a loaded library
  std::uintptr_t from = 0, to = 0;
  bool has(const void* at) const {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return from <= address && address < to;
  }
};

std::atomic<unsigned> kinds{0}, failed_kinds{0};
std::atomic<long> count{0}, fired{0};
long wanted = 0;
bool from_then_on = false;
int failure = 0;  // errno; 0: half of the bytes are read or written
Code core, standard;
// Where the first failed call was made; shared with the parent process, as the child may crash.
struct Place {
  int count;
  void* frames[most_frames];
}* place = nullptr;

// ---- callers -------------------------------------------------------------------------------------

struct Walk {
  int frames = 0;
  bool core = false;
};

_Unwind_Reason_Code walk(_Unwind_Context* context, void* data) {
  Walk& found = *static_cast<Walk*>(data);
  const auto* at = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  if (core.has(at)) {
    found.core = true;
    return _URC_END_OF_STACK;
  }
  return ++found.frames > 12 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// Whether the core called: directly, or through the C++ standard library.
bool by_core(const void* caller) {
  if (core.has(caller)) return true;
  if (!standard.has(caller)) return false;
  Walk found;
  _Unwind_Backtrace(walk, &found);
  return found.core;
}

_Unwind_Reason_Code keep_frame(_Unwind_Context* context, void*) {
  if (place->count == most_frames) return _URC_END_OF_STACK;
  place->frames[place->count++] = reinterpret_cast<void*>(_Unwind_GetIP(context));
  return _URC_NO_REASON;
}

}  // namespace

bool fails(unsigned kind) {
  if (!(kinds.load(std::memory_order_relaxed) & kind)) return false;
  const long number = ++count;
  if (from_then_on ? number < wanted : number != wanted) return false;
  failed_kinds |= kind;
  if (fired++ == 0) _Unwind_Backtrace(keep_frame, nullptr);
  errno = failure;
  return true;
}

void add_failed(unsigned kind) { failed_kinds |= kind; }

bool memory_fails(const void* caller) {
  return (kinds.load(std::memory_order_relaxed) & memory_kind) && by_core(caller) &&
         fails(memory_kind);
}

bool halves_bytes() { return failure == 0; }

extern "C" {

// ---- control -------------------------------------------------------------------------------------

void faults_watch(const char* path, int unnamed, std::uintptr_t from, std::uintptr_t to,
                  std::uintptr_t standard_from, std::uintptr_t standard_to) {
  watch_folder(path, unnamed != 0);
  core.from = from, core.to = to;
  standard.from = standard_from, standard.to = standard_to;
}
void faults_arm(unsigned which, long n, int then_on, int error) {
  kinds = 0;
  count = 0, fired = 0, failed_kinds = 0, place->count = 0;
  wanted = n, from_then_on = then_on != 0, failure = error;
  kinds = which;
}
long faults_disarm() {  // returns how many calls have failed
  kinds = 0;
  return fired;
}
unsigned faults_failed() { return failed_kinds; }  // their kinds
void faults_share() {  // before processes are forked
  place = static_cast<Place*>(mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}
int faults_frames(void** into) {
  std::memcpy(into, place->frames, sizeof place->frames);
  return place->count;
}

// ---- memory and threads --------------------------------------------------------------------------

void* malloc(size_t size) noexcept {
  return memory_fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(size_t items, size_t size) noexcept {
  return memory_fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(items, size);
}
void* realloc(void* old, size_t size) noexcept {
  return memory_fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return memory_fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** into, size_t alignment, size_t size) noexcept {
  if (memory_fails(__builtin_return_address(0))) return ENOMEM;
  *into = __libc_memalign(alignment, size);
  return *into ? 0 : ENOMEM;
}

int pthread_create(pthread_t* into, const pthread_attr_t* about, void* (*run)(void*),
                   void* with) noexcept {
  static const auto system_call =
      reinterpret_cast<decltype(&::pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  const bool ours = (kinds & thread_kind) && by_core(__builtin_return_address(0));
  if (ours && fails(thread_kind)) return EAGAIN;
  return system_call(into, about, run, with);
}

}  // extern "C"

namespace {

void* made(std::size_t size, std::size_t alignment, const void* caller) {
  if (memory_fails(caller)) return nullptr;
  if (size == 0) size = 1;
  return alignment ? __libc_memalign(alignment, size) : __libc_malloc(size);
}
void* or_throw(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

#define CALLER __builtin_return_address(0)
void* operator new(std::size_t size) { return or_throw(made(size, 0, CALLER)); }
void* operator new[](std::size_t size) { return or_throw(made(size, 0, CALLER)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(made(size, static_cast<std::size_t>(alignment), CALLER));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return or_throw(made(size, static_cast<std::size_t>(alignment), CALLER));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return made(size, 0, CALLER);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return made(size, 0, CALLER);
}
