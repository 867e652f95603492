// Threads that wait for the next predictions: starting them for each call would take 0.1 ms.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <mutex>

#include "thresher/core/threads.hpp"

namespace thresher::predict {

// Holds the team of the process for one call.
class TeamLease {
 public:
  // Without a team, if another call uses it.
  explicit TeamLease(std::size_t threads) {
    Kept& kept = of_process();
    lock_ = std::unique_lock(kept.mutex, std::try_to_lock);
    if (!lock_.owns_lock()) return;
    if (kept.team && kept.threads != threads) {
      delete kept.team;
      kept.team = nullptr;
    }
    if (!kept.team) kept.team = new Team(threads), kept.threads = threads;
    team_ = kept.team;
  }

  Team* team() const { return team_; }

 private:
  struct Kept {
    pid_t owner = getpid();
    std::mutex mutex;
    Team* team = nullptr;
    std::size_t threads = 0;
  };

  // Never destroyed: its threads wait until the process ends. A forked process makes its own.
  static Kept& of_process() {
    static std::atomic<Kept*> shared{new Kept};
    Kept* kept = shared.load();
    if (kept->owner == getpid()) return *kept;
    Kept* const fresh = new Kept;
    if (shared.compare_exchange_strong(kept, fresh)) return *fresh;
    delete fresh;
    return *kept;
  }

  std::unique_lock<std::mutex> lock_;
  Team* team_ = nullptr;
};

}  // namespace thresher::predict
