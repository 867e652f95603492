// A few threads that wait for work and share its tasks. A stage lasts about 100 microseconds:
// starting new threads for each stage would take as long as the stage itself.
//
// Results do not depend on which worker takes a task: each task writes its own memory, and shared
// sums are sums of whole numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace thresher {

class Team {
 public:
  explicit Team(std::size_t workers) {
    errors_.resize(workers);
    threads_.reserve(workers);
    try {
      for (std::size_t w = 1; w < workers; ++w) threads_.emplace_back([this, w] { serve(w); });
    } catch (const std::exception&) {
      // No memory, or the system starts no more threads: those that have started do all the work.
    }
  }
  ~Team() {
    work_ = nullptr;
    call();
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::size_t size() const { return threads_.size() + 1; }

  // Runs f(worker) on every worker; the caller is worker 0. Returns when all are done. If workers
  // threw, it then throws the exception of the first of them.
  void together(const std::function<void(std::size_t)>& f) {
    work_ = &f;
    left_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
    call();
    attempt(0);
    wait_while(left_, [](std::uint32_t left) { return left != 0; });
    for (std::exception_ptr& error : errors_)
      if (error) {
        const std::exception_ptr first = error;
        for (std::exception_ptr& other : errors_) other = nullptr;
        std::rethrow_exception(first);
      }
  }

  // Runs f(task, worker) for the tasks 0 .. count - 1.
  template <class F>
  void each(std::size_t count, F&& f) {
    together([&](std::size_t worker) {
      for (std::size_t task = worker; task < count; task += size()) f(task, worker);
    });
  }

 private:
  void call() {
    calls_.fetch_add(1, std::memory_order_release);
    calls_.notify_all();
  }

  void serve(std::size_t worker) {
    for (std::uint32_t seen = 0;;) {
      wait_while(calls_, [&](std::uint32_t calls) { return calls == seen; });
      ++seen;
      if (!work_) return;
      attempt(worker);
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    }
  }

  void attempt(std::size_t worker) {
    try {
      (*work_)(worker);
    } catch (...) {
      errors_[worker] = std::current_exception();
    }
  }

  // Spins for a short time, as the next stage usually comes soon; then sleeps, as the machine may
  // be busy.
  template <class Waits>
  static void wait_while(std::atomic<std::uint32_t>& value, Waits&& waits) {
    for (int spin = 0; spin < 4000; ++spin) {
      if (!waits(value.load(std::memory_order_acquire))) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    for (std::uint32_t now = value.load(std::memory_order_acquire); waits(now);
         now = value.load(std::memory_order_acquire))
      value.wait(now, std::memory_order_acquire);
  }

  std::vector<std::thread> threads_;
  std::vector<std::exception_ptr> errors_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::atomic<std::uint32_t> calls_{0}, left_{0};
};

}  // namespace thresher
