// A preloaded library: calls of the system and allocations fail when a test wants it.
//
// Two sets of calls are counted:
// - calls on files in one folder, whoever makes them: the core, Python, pyarrow, safetensors;
// - allocations and new threads of one loaded library: the core.
// A test arms one fault: the n-th counted call of some kinds fails once, or all calls from the n-th
// on fail. The library can also write a log of all changes of files, for simulated power cuts.
//
// Linux with glibc only. `library.py` compiles and controls it.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <link.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

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
};

constexpr int handles = 4096;
constexpr int most_frames = 24;

struct Code {  // the addresses of a loaded library
  std::uintptr_t from = 0, to = 0;
  bool has(const void* at) const {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return from <= address && address < to;
  }
};

std::atomic<unsigned> kinds{0};
std::atomic<long> count{0}, fired{0};
long wanted = 0;
bool from_then_on = false;
int failure = 0;  // errno; 0: half of the bytes are read or written
Code core, standard;
char folder[PATH_MAX] = "";
std::size_t folder_length = 0;
char watched[handles];  // 0: no; 1: a handle for reading; 2: for writing
// Where the first failed call was made; shared with the parent process, as the child may crash.
struct Place {
  int count;
  void* frames[most_frames];
}* place = nullptr;
int log_handle = -1;
pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

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

// Counts a call; true if it must fail. Then errno is set.
bool fails(unsigned kind) {
  if (!(kinds.load(std::memory_order_relaxed) & kind)) return false;
  const long number = ++count;
  if (from_then_on ? number < wanted : number != wanted) return false;
  if (fired++ == 0) _Unwind_Backtrace(keep_frame, nullptr);
  errno = failure;
  return true;
}

bool memory_fails(const void* caller) {
  return (kinds.load(std::memory_order_relaxed) & memory_kind) && by_core(caller) &&
         fails(memory_kind);
}

// ---- files ---------------------------------------------------------------------------------------

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) \
  static const auto system_call = real<decltype(&::name)>(#name)

// Writes the absolute path; false if the file is not in the folder.
bool in_folder(int at, const char* path, char* full) {
  if (folder_length == 0 || !path) return false;
  if (path[0] == '/') {
    std::snprintf(full, PATH_MAX, "%s", path);
  } else {
    char base[PATH_MAX], link[64];
    std::snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
    const ssize_t length = ::readlink(link, base, sizeof base - 1);
    if (length < 0) return false;
    base[length] = 0;
    if (std::snprintf(full, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return false;
  }
  if (std::strcmp(full, "/proc/self/fd") == 0) return true;  // how a file gets its name
  return std::strncmp(full, folder, folder_length) == 0 &&
         (full[folder_length] == '/' || full[folder_length] == 0);
}

bool known(int handle) { return handle >= 0 && handle < handles && watched[handle]; }

void record(const char* text, std::size_t size) {
  while (size > 0) {
    const ssize_t done = ::syscall(SYS_write, log_handle, text, size);
    if (done <= 0) std::abort();
    text += done, size -= static_cast<std::size_t>(done);
  }
}

// Each entry of the log: a line of words, and for a write the bytes.
[[gnu::format(printf, 3, 4)]] void log(const void* bytes, std::size_t size, const char* form, ...) {
  if (log_handle < 0) return;
  const int code = errno;
  char line[3 * PATH_MAX];
  va_list words;
  va_start(words, form);
  const int length = std::vsnprintf(line, sizeof line, form, words);
  va_end(words);
  pthread_mutex_lock(&log_mutex);
  record(line, static_cast<std::size_t>(length));
  record(static_cast<const char*>(bytes), size);
  pthread_mutex_unlock(&log_mutex);
  errno = code;
}

int opened(int handle, const char* full, int flags) {
  if (handle >= 0 && handle < handles) {
    watched[handle] = (flags & O_ACCMODE) == O_RDONLY ? 1 : 2;
    log(nullptr, 0, "open\t%d\t%d\t%s\n", handle, flags, full);
  }
  return handle;
}

unsigned kind_of(int flags) { return (flags & O_ACCMODE) == O_RDONLY ? open_kind : create_kind; }

long transfer(unsigned kind, int handle, std::size_t& size) {
  if (!known(handle) || (failure == 0 && size < 2) || !fails(kind)) return 0;
  if (failure != 0) return -1;
  size /= 2;
  return 0;
}

void log_write(int handle, const void* bytes, ssize_t size, off_t at) {
  if (size > 0 && known(handle))
    log(bytes, static_cast<std::size_t>(size), "write\t%d\t%lld\t%lld\n", handle,
        static_cast<long long>(at), static_cast<long long>(size));
}

int synced(int handle, int result) {
  if (result == 0 && known(handle)) log(nullptr, 0, "sync\t%d\n", handle);
  return result;
}

}  // namespace

extern "C" {

// ---- control -------------------------------------------------------------------------------------

void faults_watch(const char* path, std::uintptr_t from, std::uintptr_t to,
                  std::uintptr_t standard_from, std::uintptr_t standard_to) {
  std::snprintf(folder, sizeof folder, "%s", path);
  folder_length = std::strlen(folder);
  core.from = from, core.to = to;
  standard.from = standard_from, standard.to = standard_to;
}
void faults_watch_handle(int handle) { watched[handle] = 2; }
void faults_arm(unsigned which, long n, int then_on, int error) {
  kinds = 0;
  count = 0, fired = 0, place->count = 0;
  wanted = n, from_then_on = then_on != 0, failure = error;
  kinds = which;
}
long faults_disarm() {  // returns how many calls have failed
  kinds = 0;
  return fired;
}
void faults_share() {  // before processes are forked
  place = static_cast<Place*>(mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}
int faults_frames(void** into) {
  std::memcpy(into, place->frames, sizeof place->frames);
  return place->count;
}
void faults_log(int handle) { log_handle = handle; }

// ---- files ---------------------------------------------------------------------------------------

int open_from(int at, const char* path, int flags, mode_t mode)
    __attribute__((visibility("hidden")));
int open_from(int at, const char* path, int flags, mode_t mode) {
  char full[PATH_MAX];
  const bool ours = in_folder(at, path, full);
  if (ours && fails(kind_of(flags))) return -1;
  const auto handle = static_cast<int>(::syscall(SYS_openat, at, path, flags, mode));
  return ours ? opened(handle, full, flags) : handle;
}

#define WITH_MODE(call)                        \
  va_list more;                                \
  va_start(more, flags);                       \
  const mode_t mode = va_arg(more, mode_t);    \
  va_end(more);                                \
  return call;
#define FORWARD_OPEN(name) \
  int name(const char* path, int flags, ...) { WITH_MODE(open_from(AT_FDCWD, path, flags, mode)) }
#define FORWARD_OPENAT(name) \
  int name(int at, const char* path, int flags, ...) { WITH_MODE(open_from(at, path, flags, mode)) }
FORWARD_OPEN(open)
FORWARD_OPEN(open64)
FORWARD_OPENAT(openat)
FORWARD_OPENAT(openat64)

int close(int handle) {
  const int kind = known(handle) ? watched[handle] : 0;
  if (kind) {
    watched[handle] = 0;
    log(nullptr, 0, "close\t%d\n", handle);
  }
  const int result = static_cast<int>(::syscall(SYS_close, handle));
  return kind == 2 && fails(close_kind) ? -1 : result;
}

ssize_t read(int handle, void* into, size_t size) {
  if (transfer(read_kind, handle, size) < 0) return -1;
  return ::syscall(SYS_read, handle, into, size);
}
#define PREAD(name)                                                        \
  ssize_t name(int handle, void* into, size_t size, off_t at) {            \
    if (transfer(read_kind, handle, size) < 0) return -1;                  \
    return ::syscall(SYS_pread64, handle, into, size, at);                 \
  }
PREAD(pread)
PREAD(pread64)

ssize_t write(int handle, const void* from, size_t size) {
  if (transfer(write_kind, handle, size) < 0) return -1;
  const off_t at = log_handle >= 0 ? ::syscall(SYS_lseek, handle, 0, SEEK_CUR) : 0;
  const ssize_t result = ::syscall(SYS_write, handle, from, size);
  log_write(handle, from, result, at);
  return result;
}
#define PWRITE(name)                                                       \
  ssize_t name(int handle, const void* from, size_t size, off_t at) {      \
    if (transfer(write_kind, handle, size) < 0) return -1;                 \
    const ssize_t result = ::syscall(SYS_pwrite64, handle, from, size, at); \
    log_write(handle, from, result, at);                                   \
    return result;                                                         \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int handle) {
  if (known(handle) && fails(sync_kind)) return -1;
  return synced(handle, static_cast<int>(::syscall(SYS_fsync, handle)));
}
int fdatasync(int handle) {
  if (known(handle) && fails(sync_kind)) return -1;
  return synced(handle, static_cast<int>(::syscall(SYS_fdatasync, handle)));
}

#define TRUNCATE(name)                                                               \
  int name(int handle, off_t size) noexcept {                                        \
    if (known(handle) && fails(size_kind)) return -1;                                \
    const int result = static_cast<int>(::syscall(SYS_ftruncate, handle, size));     \
    if (result == 0 && known(handle))                                                \
      log(nullptr, 0, "size\t%d\t%lld\n", handle, static_cast<long long>(size));     \
    return result;                                                                   \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SEEK(name)                                                         \
  off_t name(int handle, off_t to, int whence) noexcept {                  \
    if (known(handle) && fails(look_kind)) return -1;                      \
    return ::syscall(SYS_lseek, handle, to, whence);                       \
  }
SEEK(lseek)
SEEK(lseek64)

int fstat(int handle, struct stat* into) noexcept {
  if (known(handle) && fails(look_kind)) return -1;
  return static_cast<int>(::syscall(SYS_fstat, handle, into));
}
int fstat64(int handle, struct stat64* into) noexcept {
  if (known(handle) && fails(look_kind)) return -1;
  return static_cast<int>(::syscall(SYS_fstat, handle, into));
}

int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  char old_path[PATH_MAX], new_path[PATH_MAX];
  const bool ours = in_folder(from_at, from, old_path) & in_folder(to_at, to, new_path);
  if (ours && fails(name_kind)) return -1;
  const int result = static_cast<int>(::syscall(SYS_renameat, from_at, from, to_at, to));
  if (ours && result == 0) log(nullptr, 0, "rename\t%s\t%s\n", old_path, new_path);
  return result;
}
int rename(const char* from, const char* to) noexcept {
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

// A file without a name gets one: `from` is the number of its handle in /proc/self/fd.
int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept {
  char full[PATH_MAX];
  const bool ours = in_folder(to_at, to, full);
  if (ours && fails(name_kind)) return -1;
  const int result = static_cast<int>(::syscall(SYS_linkat, from_at, from, to_at, to, flags));
  const char* number = std::strrchr(from, '/');
  if (ours && result == 0) log(nullptr, 0, "link\t%s\t%s\n", number ? number + 1 : from, full);
  return result;
}

int mkdirat(int at, const char* path, mode_t mode) noexcept {
  char full[PATH_MAX];
  const bool ours = in_folder(at, path, full);
  if (ours && fails(name_kind)) return -1;
  const int result = static_cast<int>(::syscall(SYS_mkdirat, at, path, mode));
  if (ours && result == 0) log(nullptr, 0, "mkdir\t%s\n", full);
  return result;
}
int mkdir(const char* path, mode_t mode) noexcept { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int at, const char* path, int flags) noexcept {
  char full[PATH_MAX];
  const bool ours = in_folder(at, path, full);
  if (ours && fails(remove_kind)) return -1;
  const int result = static_cast<int>(::syscall(SYS_unlinkat, at, path, flags));
  if (ours && result == 0) log(nullptr, 0, "remove\t%s\n", full);
  return result;
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

void* map_pages(void* near, size_t size, int access, int flags, int handle, off_t at,
                const void* caller) __attribute__((visibility("hidden")));
void* map_pages(void* near, size_t size, int access, int flags, int handle, off_t at,
                const void* caller) {
  if ((flags & MAP_ANONYMOUS) ? memory_fails(caller) : known(handle) && fails(map_kind)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, near, size, access, flags, handle, at));
}
void* mmap(void* near, size_t size, int access, int flags, int handle, off_t at) noexcept {
  return map_pages(near, size, access, flags, handle, at, __builtin_return_address(0));
}
void* mmap64(void* near, size_t size, int access, int flags, int handle, off_t at) noexcept {
  return map_pages(near, size, access, flags, handle, at, __builtin_return_address(0));
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
  REAL(pthread_create);
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
