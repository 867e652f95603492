// Calls of Python that the stable ABI does not have, or has only as slower functions.
//
// With Py_LIMITED_API, which wheels for Python 3.12 and newer are built with, objects are opaque:
// their content is read by functions. The fast macros are for builds for one version of Python.
#pragma once

#include <Python.h>

#ifdef Py_LIMITED_API
#include <dlfcn.h>
#endif

#include <string_view>

namespace bindings {

// The value of a float.
inline double float_value(PyObject* number) {
#ifdef Py_LIMITED_API
  return PyFloat_AsDouble(number);
#else
  return PyFloat_AS_DOUBLE(number);
#endif
}

inline Py_ssize_t list_size(PyObject* list) {
#ifdef Py_LIMITED_API
  return PyList_Size(list);
#else
  return PyList_GET_SIZE(list);
#endif
}

// An item of a list; the caller does not own it. The index must be in range.
inline PyObject* list_item(PyObject* list, Py_ssize_t index) {
#ifdef Py_LIMITED_API
  return PyList_GetItem(list, index);
#else
  return PyList_GET_ITEM(list, index);
#endif
}

// The text of a string of ASCII letters, if it can be read without a call; otherwise false.
inline bool ascii_text(PyObject* string, std::string_view& text) {
#ifdef Py_LIMITED_API
  (void)string, (void)text;
  return false;
#else
  if (!PyUnicode_IS_COMPACT_ASCII(string)) return false;
  text = {static_cast<const char*>(PyUnicode_DATA(string)),
          static_cast<std::size_t>(PyUnicode_GET_LENGTH(string))};
  return true;
#endif
}

// Whether Python is ending, and whether this thread has the GIL. Both may be called without it.
#ifdef Py_LIMITED_API
// Python has these functions, but the headers of the stable ABI do not declare them. Their names
// are looked up when the program runs, because Python 3.13 has renamed the first one.
using Question = int (*)();
inline Question find_question(const char* name) noexcept {
  return reinterpret_cast<Question>(dlsym(RTLD_DEFAULT, name));
}
inline bool python_is_ending() noexcept {
  static const Question newer = find_question("Py_IsFinalizing");
  static const Question older = find_question("_Py_IsFinalizing");
  return newer ? newer() != 0 : older && older() != 0;
}
inline bool has_gil() noexcept {
  static const Question found = find_question("PyGILState_Check");
  return found && found() != 0;
}
#elif PY_VERSION_HEX >= 0x030D0000
inline bool python_is_ending() noexcept { return Py_IsFinalizing() != 0; }
inline bool has_gil() noexcept { return PyGILState_Check() != 0; }
#else
inline bool python_is_ending() noexcept { return _Py_IsFinalizing() != 0; }
inline bool has_gil() noexcept { return PyGILState_Check() != 0; }
#endif

}  // namespace bindings
