// Threads that wait for the next predictions: starting them for each call would take 0.1 ms.
//
// The caller of run() does not wait for threads that have not begun: on a busy machine it does all
// the work itself.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace thresher::predict {

class Helpers {
 public:
  // Calls f() in this thread and in up to `threads` - 1 others, and returns when none is in f. If
  // another call uses the threads, only this thread calls f. f must not throw.
  static void run(std::size_t threads, const std::function<void()>& f) {
    Helpers& helpers = of_process();
    const std::unique_lock lock(helpers.mutex_, std::try_to_lock);
    if (threads <= 1 || !lock.owns_lock()) return f();
    helpers.start(threads - 1);
    helpers.work_ = &f;
    helpers.wanted_.store(threads - 1);
    helpers.inside_.store(0);
    helpers.calls_.fetch_add(1);
    helpers.calls_.notify_all();
    f();
    for (std::int64_t none = 0; !helpers.inside_.compare_exchange_strong(none, closed); none = 0)
      helpers.inside_.wait(none);
  }

 private:
  static constexpr std::int64_t closed = -1;

  // Never destroyed: its threads wait until the process ends. A forked process makes its own.
  static Helpers& of_process() {
    static std::atomic<Helpers*> shared{new Helpers};
    Helpers* helpers = shared.load();
    if (helpers->owner_ == getpid()) return *helpers;
    Helpers* const fresh = new Helpers;
    if (shared.compare_exchange_strong(helpers, fresh)) return *fresh;
    delete fresh;
    return *helpers;
  }

  void start(std::size_t count) {
    try {
      for (; started_ < count; ++started_)
        std::thread([this, number = started_] { serve(number); }).detach();
    } catch (const std::exception&) {
      // No memory, or the system starts no more threads: those that have started do the work.
    }
  }

  void serve(std::size_t number) {
    for (std::uint32_t seen = 0;;) {
      calls_.wait(seen);
      seen = calls_.load();
      if (!enter()) continue;
      if (number < wanted_.load()) (*work_)();
      inside_.fetch_sub(1);
      inside_.notify_all();
    }
  }

  // Counts this thread, unless the call is over.
  bool enter() {
    std::int64_t inside = inside_.load();
    while (inside != closed)
      if (inside_.compare_exchange_weak(inside, inside + 1)) return true;
    return false;
  }

  const pid_t owner_ = getpid();
  std::mutex mutex_;
  std::size_t started_ = 0;
  const std::function<void()>* work_ = nullptr;
  std::atomic<std::size_t> wanted_{0};
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<std::int64_t> inside_{closed};  // threads that work, or closed
};

}  // namespace thresher::predict
