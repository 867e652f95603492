// Release and take the GIL, also while Python is ending.
//
// When Python ends, versions before 3.14 end every other thread that waits for the GIL, by
// pthread_exit. This unwinds the stack through destructors and through nanobind, which may not be
// unwound: the process would abort. Such a thread waits here instead, as it does in Python 3.14,
// until the process ends.
#pragma once

#include <Python.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "python_calls.hpp"

namespace bindings {

[[noreturn]] inline void wait_for_the_end() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Whether this thread has the GIL, or Python is not ending: otherwise it will never get the GIL.
inline bool can_take_gil() noexcept { return !python_is_ending() || has_gil(); }

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {  // the thread is being ended; to leave this block would abort the process
      wait_for_the_end();
    }
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// Throws if Python is ending: a worker then ends, and the thread that called it waits.
class GilAcquire {
 public:
  GilAcquire() {
    if (!can_take_gil()) throw std::runtime_error("Python is ending");
    try {
      state_ = PyGILState_Ensure();
    } catch (...) {
      wait_for_the_end();
    }
  }
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace bindings
