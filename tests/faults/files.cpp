// The calls on files in the watched folder: they are counted, may fail, and are logged.
#include "faults.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int handles = 4096;

char folder[PATH_MAX] = "";
std::size_t folder_length = 0;
bool unnamed_files = true;  // whether files can be made without a name
char watched[handles];      // 0: no; 1: a handle for reading; 2: for writing
bool temporary[handles];    // whether it is in the folder of temporary files
int log_handle = -1;
pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

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

// Whether a path is in the folder "tmp" of the watched one.
bool is_temporary(const char* full) {
  return std::strncmp(full, folder, folder_length) == 0 &&
         std::strncmp(full + folder_length, "/tmp/", 5) == 0;
}

// Counts a call on a path, or on a handle; true if it must fail.
bool fails_at(unsigned kind, const char* full) {
  if (!fails(kind)) return false;
  if (kind != create_kind && is_temporary(full)) add_failed(temporary_kind);
  return true;
}
bool fails_on(unsigned kind, int handle) {
  if (!fails(kind)) return false;
  if (temporary[handle]) add_failed(temporary_kind);
  return true;
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
    temporary[handle] = is_temporary(full);
    log(nullptr, 0, "open\t%d\t%d\t%s\n", handle, flags, full);
  }
  return handle;
}

unsigned kind_of(int flags) { return (flags & O_ACCMODE) == O_RDONLY ? open_kind : create_kind; }

long transfer(unsigned kind, int handle, std::size_t& size) {
  if (!known(handle) || (halves_bytes() && size < 2) || !fails(kind)) return 0;
  if (!halves_bytes()) return -1;
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

bool find_fails(int at, const char* path, int flags) {
  if ((flags & AT_EMPTY_PATH) && path && !*path) return known(at) && fails_on(look_kind, at);
  char full[PATH_MAX];
  return in_folder(at, path, full) && fails_at(find_kind, full);
}

int found_at(int at, const char* path, void* into, int flags) {
  if (find_fails(at, path, flags)) return -1;
  return static_cast<int>(::syscall(SYS_newfstatat, at, path, into, flags));
}

}  // namespace

void watch_folder(const char* path, bool unnamed) {
  std::snprintf(folder, sizeof folder, "%s", path);
  folder_length = std::strlen(folder);
  unnamed_files = unnamed;
}

extern "C" {

void faults_watch_handle(int handle) { watched[handle] = 2; }
void faults_log(int handle) { log_handle = handle; }

// ---- handles -------------------------------------------------------------------------------------

int open_from(int at, const char* path, int flags, mode_t mode)
    __attribute__((visibility("hidden")));
int open_from(int at, const char* path, int flags, mode_t mode) {
  char full[PATH_MAX];
  const bool ours = in_folder(at, path, full);
  if (ours && !unnamed_files && (flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (ours && fails_at(kind_of(flags), full)) return -1;
  const auto handle = static_cast<int>(::syscall(SYS_openat, at, path, flags, mode));
  return ours ? opened(handle, full, flags) : handle;
}

#define WITH_MODE(call) \
  va_list more; \
  va_start(more, flags); \
  const mode_t mode = va_arg(more, mode_t); \
  va_end(more); \
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
#define PREAD(name) \
  ssize_t name(int handle, void* into, size_t size, off_t at) { \
    if (transfer(read_kind, handle, size) < 0) return -1; \
    return ::syscall(SYS_pread64, handle, into, size, at); \
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
#define PWRITE(name) \
  ssize_t name(int handle, const void* from, size_t size, off_t at) { \
    if (transfer(write_kind, handle, size) < 0) return -1; \
    const ssize_t result = ::syscall(SYS_pwrite64, handle, from, size, at); \
    log_write(handle, from, result, at); \
    return result; \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

// Less than all may be written: the first bytes.
ssize_t writev(int handle, const struct iovec* parts, int count) {
  if (!known(handle)) return ::syscall(SYS_writev, handle, parts, count);
  while (count > 1 && parts->iov_len == 0) ++parts, --count;
  return write(handle, parts->iov_base, parts->iov_len);
}
// A copy in the kernel is refused, as some file systems do: callers read and write instead.
#define SENDFILE(name) \
  ssize_t name(int to, int from, off_t* at, size_t size) noexcept { \
    if (!known(to)) return ::syscall(SYS_sendfile, to, from, at, size); \
    errno = EINVAL; \
    return -1; \
  }
SENDFILE(sendfile)
SENDFILE(sendfile64)
ssize_t copy_file_range(int from, off_t* from_at, int to, off_t* to_at, size_t size,
                        unsigned how) {
  if (!known(to)) return ::syscall(SYS_copy_file_range, from, from_at, to, to_at, size, how);
  errno = EOPNOTSUPP;
  return -1;
}

int fsync(int handle) {
  if (known(handle) && fails(sync_kind)) return -1;
  return synced(handle, static_cast<int>(::syscall(SYS_fsync, handle)));
}
int fdatasync(int handle) {
  if (known(handle) && fails(sync_kind)) return -1;
  return synced(handle, static_cast<int>(::syscall(SYS_fdatasync, handle)));
}

#define TRUNCATE(name) \
  int name(int handle, off_t size) noexcept { \
    if (known(handle) && fails(size_kind)) return -1; \
    const int result = static_cast<int>(::syscall(SYS_ftruncate, handle, size)); \
    if (result == 0 && known(handle)) \
      log(nullptr, 0, "size\t%d\t%lld\n", handle, static_cast<long long>(size)); \
    return result; \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SEEK(name) \
  off_t name(int handle, off_t to, int whence) noexcept { \
    if (known(handle) && fails_on(look_kind, handle)) return -1; \
    return ::syscall(SYS_lseek, handle, to, whence); \
  }
SEEK(lseek)
SEEK(lseek64)

#define FSTAT(name, kind_of_buffer) \
  int name(int handle, kind_of_buffer* into) noexcept { \
    if (known(handle) && fails_on(look_kind, handle)) return -1; \
    return static_cast<int>(::syscall(SYS_fstat, handle, into)); \
  }
FSTAT(fstat, struct stat)
FSTAT(fstat64, struct stat64)
// Programs that were linked with an older glibc call these.
#define OLD_FSTAT(name) \
  int name(int, int handle, struct stat* into) noexcept { return fstat(handle, into); }
OLD_FSTAT(__fxstat)
OLD_FSTAT(__fxstat64)

int fchmod(int handle, mode_t mode) noexcept {
  if (known(handle) && fails(access_kind)) return -1;
  return static_cast<int>(::syscall(SYS_fchmod, handle, mode));
}
int fchown(int handle, uid_t user, gid_t group) noexcept {
  if (known(handle) && fails(access_kind)) return -1;
  return static_cast<int>(::syscall(SYS_fchown, handle, user, group));
}
int flock(int handle, int how) noexcept {
  if (known(handle) && fails(lock_kind)) return -1;
  return static_cast<int>(::syscall(SYS_flock, handle, how));
}

// ---- names ---------------------------------------------------------------------------------------

#define STAT(suffix, kind_of_buffer) \
  int stat##suffix(const char* path, kind_of_buffer* into) noexcept { \
    return found_at(AT_FDCWD, path, into, 0); \
  } \
  int lstat##suffix(const char* path, kind_of_buffer* into) noexcept { \
    return found_at(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW); \
  } \
  int fstatat##suffix(int at, const char* path, kind_of_buffer* into, int flags) noexcept { \
    return found_at(at, path, into, flags); \
  }
STAT(, struct stat)
STAT(64, struct stat64)
#define OLD_STAT(name, flags) \
  int name(int, const char* path, void* into) noexcept { \
    return found_at(AT_FDCWD, path, into, flags); \
  }
OLD_STAT(__xstat, 0)
OLD_STAT(__xstat64, 0)
OLD_STAT(__lxstat, AT_SYMLINK_NOFOLLOW)
OLD_STAT(__lxstat64, AT_SYMLINK_NOFOLLOW)
int statx(int at, const char* path, int flags, unsigned wanted, struct statx* into) noexcept {
  if (find_fails(at, path, flags)) return -1;
  return static_cast<int>(::syscall(SYS_statx, at, path, flags, wanted, into));
}

DIR* opendir(const char* path) {
  char full[PATH_MAX];
  if (in_folder(AT_FDCWD, path, full) && fails_at(find_kind, full)) return nullptr;
  static const auto system_call =
      reinterpret_cast<decltype(&::opendir)>(dlsym(RTLD_NEXT, "opendir"));
  return system_call(path);
}

int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned how) noexcept {
  char old_path[PATH_MAX], new_path[PATH_MAX];
  const bool ours = in_folder(from_at, from, old_path) & in_folder(to_at, to, new_path);
  if (ours && fails(name_kind)) return -1;
  const int result = static_cast<int>(::syscall(SYS_renameat2, from_at, from, to_at, to, how));
  if (ours && result == 0) log(nullptr, 0, "rename\t%s\t%s\n", old_path, new_path);
  return result;
}
int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  return renameat2(from_at, from, to_at, to, 0);
}
int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
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

int link(const char* from, const char* to) noexcept {
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
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
  if (ours && fails_at(remove_kind, full)) return -1;
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

}  // extern "C"
