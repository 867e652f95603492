#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "thresher/io/cache.hpp"
#include "thresher/io/cache_check.hpp"
#include "thresher/io/cache_file.hpp"
#include "thresher/io/cache_format.hpp"
#include "thresher/io/storage.hpp"

namespace thresher::io {

using namespace format;

namespace {

using Bytes = Column<std::byte>;

// Owns the memory of a block: its bytes in the file, and values converted to another type.
struct Held {
  std::shared_ptr<Bytes> bytes;
  std::unique_ptr<float[]> floats;
  std::unique_ptr<double[]> doubles;
  std::shared_ptr<const void> ones;
};

// A shared array of ones, long enough for any block, created at first use.
template <class T>
class Ones {
 public:
  std::shared_ptr<const std::vector<T>> get(std::size_t count) {
    const std::lock_guard lock(mutex_);
    if (!ones_ || ones_->size() < count)
      ones_ = std::make_shared<const std::vector<T>>(std::max<std::size_t>(count, 1), T(1));
    return ones_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const std::vector<T>> ones_;
};

// A block that a background thread is reading.
struct Coming {
  std::size_t number;
  Real real;
  bool names;
  pid_t process = ::getpid();
  Block block;
  std::exception_ptr error;
  std::thread thread;

  // Waits for the thread. Returns false in a process that was forked since: it has no such thread.
  bool wait() {
    if (process == ::getpid()) {
      if (thread.joinable()) thread.join();
      return true;
    }
    if (thread.joinable()) thread.detach();
    return false;
  }
};

}  // namespace

struct CacheReader::Open {
  template <class From>
  explicit Open(const From& from) : file(from) {
    read_header();
    read_index();
    sums = std::make_unique<std::atomic<std::uint64_t>[]>(entries.size());
    for (const Entry& entry : entries) most = std::max<std::size_t>(most, entry.nonzeros);
  }
  ~Open() {
    // After a fork, the copy of the parent's thread object must not be destroyed.
    if (coming && !coming->wait()) coming.release();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw CacheError(file.path() + ": " + what);
  }
  [[noreturn]] void cut() const {
    fail("the cache is cut short or still being copied: its end is missing; create it again");
  }

  void read_header() {
    if (file.size() < sizeof(FileHeader)) {
      if (file.size() == 0) fail("the file is empty, not a Thresher cache");
      cut();
    }
    FileHeader header;
    file.read(0, sizeof header, &header);
    if (header.magic != file_magic) fail("the file is not a Thresher cache");
    if (header.version < oldest || header.version > version)
      fail("the cache has format " + std::to_string(header.version) + "; this version reads " +
           std::to_string(oldest) + " to " + std::to_string(version) + "; create it again");
    if (header.size > file.size()) cut();
    if (header.size < sizeof header || header.size % alignment != 0 ||
        header.about_bytes > header.size - sizeof header)
      fail("the header of the cache is damaged; create it again");
    std::vector<std::byte> rest(header.size - sizeof header);
    file.read(sizeof header, rest.size(), rest.data());
    if (header.sum != sum_of(header, rest))
      fail("the header of the cache is damaged; create it again");
    about.assign(reinterpret_cast<const char*>(rest.data()), header.about_bytes);
    first = header.size;
  }

  void read_index() {
    const std::uint64_t size = file.size();
    if (size < first + sizeof(Trailer) || size % alignment != 0) cut();
    const std::uint64_t end = size - sizeof(Trailer);
    file.read(end, sizeof totals, &totals);
    if (totals.magic != end_magic || totals.file_bytes != size) cut();
    const auto damaged = [this] { fail("the index of the cache is damaged; create it again"); };
    if (totals.index < first || totals.index > end || totals.index % alignment != 0) damaged();
    const std::uint64_t room = end - totals.index;
    if (totals.blocks > room / sizeof(Entry) ||
        totals.sketch_bytes > room - totals.blocks * sizeof(Entry) || totals.width > INT64_MAX)
      damaged();
    std::vector<std::byte> index(room);
    file.read(totals.index, room, index.data());
    if (totals.sum != sum_of(totals, index)) damaged();
    entries.resize(totals.blocks);
    if (!entries.empty())
      std::memcpy(static_cast<void*>(entries.data()), index.data(), entries.size() * sizeof(Entry));
    const auto* bytes =
        reinterpret_cast<const std::uint8_t*>(index.data()) + totals.blocks * sizeof(Entry);
    sketch.assign(bytes, bytes + totals.sketch_bytes);

    // Blocks must follow each other without gaps, and the totals must be the sums over blocks.
    std::uint64_t at = first, rows = 0, nonzeros = 0;
    for (const Entry& entry : entries) {
      if (entry.at != at || entry.size < sizeof(BlockHeader) || entry.size > totals.index - at ||
          entry.size % alignment != 0 || entry.rows > entry.size || entry.nonzeros > entry.size ||
          entry.columns > INT64_MAX)
        damaged();
      at += entry.size, rows += entry.rows, nonzeros += entry.nonzeros;
      const bool bounded = totals.width == 0 || entry.nonzeros == 0 ||
                           (entry.columns > 0 && entry.columns <= totals.width);
      if (!bounded) damaged();
    }
    if (at != totals.index || rows != totals.rows || nonzeros != totals.nonzeros) damaged();
  }

  const Entry& entry(std::size_t number) const {
    if (number >= entries.size())
      throw std::out_of_range("block " + std::to_string(number) + " of a cache of " +
                              std::to_string(entries.size()));
    return entries[number];
  }

  void fill(std::size_t number, std::byte* base, const BlockHeader& header, const Layout& layout);
  Block read(std::size_t number, Real real, bool names);
  void start(std::size_t number, Real real, bool names);

  const CacheFile file;
  std::string about;
  std::uint64_t first = 0;  // where the first block begins
  Trailer totals;
  std::vector<Entry> entries;
  std::vector<std::uint8_t> sketch;
  std::unique_ptr<std::atomic<std::uint64_t>[]> sums;  // of blocks when first read; 0: not yet
  const std::shared_ptr<PoolOf<Bytes>> pool = std::make_shared<PoolOf<Bytes>>(3);
  std::size_t most = 0;  // largest number of nonzeros in a block
  Ones<float> float_ones;
  Ones<double> double_ones;

  std::mutex mutex;  // guards the members below
  std::unique_ptr<Coming> coming;
  std::size_t expected = 0;  // the block after the last requested one
};

// Reads a block, except for its header, and checks it. It must also be the same at every reading,
// because its bytes could be replaced by those of another valid cache.
void CacheReader::Open::fill(std::size_t number, std::byte* base, const BlockHeader& header,
                             const Layout& layout) {
  constexpr std::uint64_t piece = 1 << 17;
  const Entry& of = entries[number];
  std::uint64_t filled = sizeof header;
  const auto read_to = [&](std::uint64_t end) {
    if (end <= filled) return;
    end = std::min(of.size, std::max(end, filled + piece));
    file.read(of.at + filled, end - filled, base + filled);
    filled = end;
  };
  const char* fault = block_fault(base, of, header, layout, read_to);
  std::uint64_t before = fault ? sums[number].load() : 0;
  if (!fault && sums[number].compare_exchange_strong(before, header.sum)) return;
  if (!fault && before == header.sum) return;
  fail("block " + std::to_string(number) + " (bytes " + std::to_string(of.at) + " to " +
       std::to_string(of.at + of.size) + ") " +
       (before ? "has changed while the cache is in use" : "is damaged") +
       (fault ? std::string(": ") + fault : "") + "; create the cache again");
}

Block CacheReader::Open::read(std::size_t number, Real real, bool names) {
  const Entry& of = entry(number);
  auto held = std::make_shared<Held>();
  held->bytes = pool->take();
  held->bytes->reserve(of.size);
  std::byte* base = held->bytes->data();
  BlockHeader header;
  file.read(of.at, sizeof header, &header);
  const Layout layout(header, of.size);
  fill(number, base, header, layout);

  const auto at = [base](const Layout::Array& where) {
    return static_cast<const void*>(base + where.at);
  };
  Block block;
  Batch& batch = block.batch;
  batch.rows = static_cast<std::int64_t>(header.rows);
  batch.columns = static_cast<std::int64_t>(header.columns);
  batch.distinct = true;
  if (header.starts == Kind::narrow)
    batch.starts = static_cast<const std::int32_t*>(at(layout.starts));
  else batch.starts = static_cast<const std::int64_t*>(at(layout.starts));
  if (header.keys == Kind::narrow) batch.keys = static_cast<const std::int32_t*>(at(layout.keys));
  else batch.keys = static_cast<const std::int64_t*>(at(layout.keys));

  const auto values_as = [&]<class To>(Ones<To>& ones, std::unique_ptr<To[]>& converted) {
    const auto fill_with = [&](auto value_of) {
      converted = std::make_unique_for_overwrite<To[]>(header.nonzeros);
      for (std::uint64_t k = 0; k < header.nonzeros; ++k)
        converted[k] = static_cast<To>(value_of(k));
      batch.values = static_cast<const To*>(converted.get());
    };
    const auto convert = [&](const auto* from) {
      if constexpr (std::is_same_v<decltype(from), const To*>) batch.values = from;
      else fill_with([from](std::uint64_t k) { return from[k]; });
    };
    if (header.values == Kind::narrow) {
      convert(static_cast<const float*>(at(layout.values)));
    } else if (header.values == Kind::wide) {
      convert(static_cast<const double*>(at(layout.values)));
    } else if (is_decimal(header.values)) {
      const auto* from = static_cast<const std::int16_t*>(at(layout.values));
      fill_with([from, by = parts(header.values)](std::uint64_t k) { return from[k] / by; });
    } else {
      const auto shared = ones.get(most);
      batch.values = shared->data();
      held->ones = shared;
    }
  };
  if (real == Real::float32) values_as(float_ones, held->floats);
  else values_as(double_ones, held->doubles);

  const auto doubles = [&](Kind kind, const Layout::Array& where) {
    return kind == Kind::none ? nullptr : static_cast<const double*>(at(where));
  };
  batch.labels = doubles(header.labels, layout.labels);
  batch.weights = doubles(header.weights, layout.weights);
  block.label_values = doubles(header.lists, layout.label_values);
  if (header.lists != Kind::none)
    block.label_starts = static_cast<const std::int64_t*>(at(layout.label_starts));
  if (header.tags != Kind::none) {
    block.tag_starts = static_cast<const std::uint32_t*>(at(layout.tag_starts));
    block.tags = static_cast<const char*>(at(layout.tags));
  }
  if (header.lines != Kind::none) block.lines = static_cast<const std::uint32_t*>(at(layout.lines));
  block.offset = header.offset, block.bytes = header.bytes, block.digest = header.digest;
  block.sum = header.sum;
  block.first_line = header.first_line, block.line_count = header.line_count;
  if (names && header.name_count > 0) {
    const auto* keys = static_cast<const std::uint64_t*>(at(layout.name_keys));
    const auto* starts = static_cast<const std::uint64_t*>(at(layout.name_starts));
    const auto* text = static_cast<const char*>(at(layout.names));
    block.names.reserve(header.name_count);
    for (std::uint64_t i = 0; i < header.name_count; ++i)
      block.names.push_back({keys[i], std::string(text + starts[i], text + starts[i + 1])});
  }
  block.owner = std::move(held);
  return block;
}

// The caller holds the mutex.
void CacheReader::Open::start(std::size_t number, Real real, bool names) {
  auto next = std::make_unique<Coming>();
  next->number = number, next->real = real, next->names = names;
  Coming* into = next.get();
  // Block all signals in the new thread, so that Python's threads receive them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    next->thread = std::thread([this, into] {
      try {
        into->block = read(into->number, into->real, into->names);
      } catch (...) {
        into->error = std::current_exception();
      }
    });
    coming = std::move(next);
  } catch (const std::exception&) {
    file.expect(entries[number].at, entries[number].size);  // no thread, or no memory for it
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CacheReader::CacheReader(std::unique_ptr<Open> open) : open_(std::move(open)) {}
CacheReader::CacheReader(const std::string& path) : CacheReader(std::make_unique<Open>(path)) {}
CacheReader CacheReader::from_memory(std::span<const std::byte> bytes) {
  return CacheReader(std::make_unique<Open>(bytes));
}
CacheReader::~CacheReader() = default;
CacheReader::CacheReader(CacheReader&&) noexcept = default;

const std::string& CacheReader::about() const { return open_->about; }
std::size_t CacheReader::blocks() const { return open_->entries.size(); }
std::uint64_t CacheReader::rows() const { return open_->totals.rows; }
std::uint64_t CacheReader::nonzeros() const { return open_->totals.nonzeros; }
std::int64_t CacheReader::width() const { return static_cast<std::int64_t>(open_->totals.width); }
bool CacheReader::named() const { return open_->totals.named != 0; }
std::uint64_t CacheReader::file_bytes() const { return open_->file.size(); }
std::span<const std::uint8_t> CacheReader::sketch() const { return open_->sketch; }
std::uint64_t CacheReader::rows_of(std::size_t number) const { return open_->entry(number).rows; }

Block CacheReader::block(std::size_t number, Real real, bool names) {
  Open& file = *open_;
  file.entry(number);
  std::unique_ptr<Coming> coming;
  bool in_order = false;
  {
    const std::lock_guard lock(file.mutex);
    coming = std::move(file.coming);
    in_order = number == file.expected || number == 0;
    file.expected = number + 1;
  }
  if (coming && !coming->wait()) coming.release();
  const bool matches =
      coming && coming->number == number && coming->real == real && coming->names == names;
  if (matches && coming->error) std::rethrow_exception(coming->error);
  Block block = matches ? std::move(coming->block) : file.read(number, real, names);
  if (in_order && number + 1 < file.entries.size()) prefetch(number + 1, real, names);
  return block;
}

void CacheReader::prefetch(std::size_t number, Real real, bool names) {
  open_->entry(number);
  const std::lock_guard lock(open_->mutex);
  if (!open_->coming) open_->start(number, real, names);
}

}  // namespace thresher::io
