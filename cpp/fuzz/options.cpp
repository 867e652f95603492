// Options of the address sanitizer: freed memory is checked for a short time, which fits into the
// caches of a processor, and the stacks of allocations are not recorded: both took a third of the
// time. ASAN_OPTIONS=malloc_context_size=30 shows them when one input is replayed.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0";
}
