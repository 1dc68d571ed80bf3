// The Python object of an operator: a plain CPython heap type with vectorcall, because a whole call costs tens of nanoseconds.
#pragma once
#include <string>
#include <vector>

#include "bind/owned.h"
#include "bind/tensor_object.h"
#include "eager/signature.h"

namespace sampan {

constexpr int kMaxParameters = 64;

struct Parameter {
  enum Kind : uint8_t { kTensor, kTensors, kAttribute } kind;
  PyObject* name;           // interned
  PyObject* default_value;  // null: required
  bool is_keyword_only = false;
  bool is_variadic = false;  // takes the positional arguments that are left; only the last positional parameter
  bool takes_rest = false;   // the same for an attribute, where more are given than there are parameters: reshape(x, 2, 3)
};

struct OpObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
  PyObject* miss;
  PyObject* static_handler;
  PyObject* aliases;  // a dict {other name: parameter}, or null
  PyObject* other_form;  // (position, frozenset of keywords, function) or null
  PyObject* text_name;
  std::vector<Parameter>* parameters;
  size_t positional_count;  // parameters before the first keyword-only one
  bool is_variadic;
  bool takes_rest;
  char takes_positional_out;
  SignatureTable* table;
};

extern PyTypeObject* op_type;
inline bool is_op(PyObject* o) { return Py_TYPE(o) == op_type; }
inline OpObject* as_op(PyObject* o) { return reinterpret_cast<OpObject*>(o); }

bool add_op_type(PyObject* module);  // false with a Python error set

const char* op_name(const OpObject& op);
std::string op_signature(const OpObject& op);  // "softmax(x, axis=-1, name=None)"
// Sets TypeError "softmax(x, axis=-1): message"; returns null.
PyObject* raise_argument_error(const OpObject& op, const std::string& message);
// Sorts the arguments of a call into values, one borrowed object per parameter, and finds out=. packed: the tuple of a variadic parameter's
// arguments, if one was made. False with TypeError set.
bool bind_arguments(const OpObject& op, PyObject* const* args, size_t count, PyObject* keyword_names, PyObject** values, PyObject** out, Owned& packed);

// Whether a call is of the op's other form: an int or bool where its position is, or one of its keywords.
bool has_other_form(const OpObject& op, PyObject* const* args, size_t count, PyObject* keyword_names);

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t count_and_flags, PyObject* keyword_names);

// The type whose instances (in an argument or inside a list) send a call to op.static; null when none is registered.
extern PyTypeObject* symbolic_type;

// Every op's table; entries that are in use live until their call ends.
void clear_signature_tables();
size_t signature_count();

}  // namespace sampan
