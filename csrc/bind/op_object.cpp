// The type _rt.Op: construction, attributes, the collector; how arguments are bound and what is said when they cannot be.
#include <algorithm>

#include "bind/op.h"
#include "bind/owned.h"

#include <structmember.h>

namespace sampan {

PyTypeObject* op_type = nullptr;
PyTypeObject* symbolic_type = nullptr;

namespace {

PyObject* required_marker = nullptr;  // _rt.REQUIRED
PyObject* name_keyword = nullptr;
PyObject* out_keyword = nullptr;
std::vector<OpObject*> living_ops;

int find_parameter(const OpObject& op, PyObject* name) {
  const auto& parameters = *op.parameters;
  // Keyword names of calls are interned, as ours are.
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return static_cast<int>(i);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (PyUnicode_Compare(parameters[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

bool same_text(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

// "; did you mean 'axis'?", or the list of parameters.
std::string suggestion(const OpObject& op, PyObject* name) {
  Owned names(PyList_New(0));
  if (!names) return PyErr_Clear(), "";
  for (const auto& p : *op.parameters) PyList_Append(names.get(), p.name);
  PyObject *alias, *target;
  Py_ssize_t position = 0;
  while (op.aliases && PyDict_Next(op.aliases, &position, &alias, &target)) PyList_Append(names.get(), alias);
  Owned difflib(PyImport_ImportModule("difflib"));
  Owned close(difflib ? PyObject_CallMethod(difflib.get(), "get_close_matches", "OO", name, names.get()) : nullptr);
  if (!close || !PyList_Check(close.get())) return PyErr_Clear(), "";
  std::string text;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(close.get()); ++i) text += (i ? " or " : "") + text_of(PyObject_Repr, PyList_GET_ITEM(close.get(), i));
  return text.empty() ? "" : "; did you mean " + text + "?";
}

bool parse_parameters(OpObject& op, PyObject* list) {
  Owned items(PySequence_Fast(list, "Op(name, parameters, miss): parameters must be a list of (name, kind, default)"));
  if (!items) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  if (count > kMaxParameters) return PyErr_Format(PyExc_ValueError, "Op %U: %zd parameters; %d are the most", op.text_name, count, kMaxParameters), false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *name, *kind, *value;
    int is_keyword_only = 0;
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!PyTuple_Check(item)) return PyErr_Format(PyExc_TypeError, "Op %U: parameter %zd must be a tuple (name, kind, default), not %R", op.text_name, i, item), false;
    if (!PyArg_ParseTuple(item, "UUO|p:Op parameter", &name, &kind, &value, &is_keyword_only)) return false;
    Parameter p;
    p.is_keyword_only = is_keyword_only;
    if (PyUnicode_CompareWithASCIIString(kind, "tensor") == 0) {
      p.kind = Parameter::kTensor;
    } else if (PyUnicode_CompareWithASCIIString(kind, "tensors") == 0) {
      p.kind = Parameter::kTensors;
    } else if (PyUnicode_CompareWithASCIIString(kind, "variadic") == 0) {
      p.kind = Parameter::kTensors;
      p.is_variadic = op.is_variadic = true;
    } else if (PyUnicode_CompareWithASCIIString(kind, "attr") == 0) {
      p.kind = Parameter::kAttribute;
    } else if (PyUnicode_CompareWithASCIIString(kind, "rest") == 0) {
      p.kind = Parameter::kAttribute;
      p.takes_rest = op.takes_rest = true;
    } else {
      return PyErr_Format(PyExc_ValueError, "Op %U: parameter %R has kind %R; there are 'tensor', 'tensors', 'variadic', 'attr' and 'rest'", op.text_name, name, kind), false;
    }
    const bool is_after_positional = i > static_cast<Py_ssize_t>(op.positional_count);
    if (!p.is_keyword_only && (is_after_positional || (op.is_variadic && !p.is_variadic) || (op.takes_rest && !p.takes_rest))) {
      return PyErr_Format(PyExc_ValueError, "Op %U: parameter %R must be keyword-only: it comes after one that is, or after a variadic one", op.text_name, name), false;
    }
    if (!p.is_keyword_only) ++op.positional_count;
    p.name = Py_NewRef(name);
    PyUnicode_InternInPlace(&p.name);
    p.default_value = value == required_marker ? nullptr : Py_NewRef(value);
    op.parameters->push_back(p);
  }
  return true;
}

PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"name", "parameters", "miss", "aliases", nullptr};
  PyObject *name, *parameters, *miss, *aliases = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UOO|O:Op", const_cast<char**>(names), &name, &parameters, &miss, &aliases)) return nullptr;
  if (aliases != Py_None && !PyDict_Check(aliases)) return PyErr_SetString(PyExc_TypeError, "Op: aliases must be a dict {other name: parameter}"), nullptr;
  Owned self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  OpObject& op = *as_op(self.get());
  op.vectorcall = op_vectorcall;
  op.text_name = Py_NewRef(name);
  op.miss = Py_NewRef(miss);
  op.parameters = new (std::nothrow) std::vector<Parameter>();
  op.table = new (std::nothrow) SignatureTable();
  if (!op.parameters || !op.table) return PyErr_NoMemory();
  if (!parse_parameters(op, parameters)) return nullptr;
  if (aliases != Py_None && PyDict_GET_SIZE(aliases)) {
    PyObject *alias, *target;
    Py_ssize_t position = 0;
    while (PyDict_Next(aliases, &position, &alias, &target)) {
      if (!PyUnicode_Check(alias) || !PyUnicode_Check(target) || find_parameter(op, target) < 0) {
        return PyErr_Format(PyExc_ValueError, "Op %U: alias %R names %R, which is no parameter", name, alias, target);
      }
    }
    op.aliases = PyDict_Copy(aliases);
    if (!op.aliases) return nullptr;
  }
  op.dict = PyDict_New();
  if (!op.dict || PyDict_SetItemString(op.dict, "__name__", name) || PyDict_SetItemString(op.dict, "__qualname__", name)) return nullptr;
  living_ops.push_back(&op);
  return self.release();
}

int op_traverse(PyObject* self, visitproc visit, void* arg) {
  OpObject& op = *as_op(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(op.dict);
  Py_VISIT(op.miss);
  Py_VISIT(op.static_handler);
  Py_VISIT(op.other_form);
  if (op.parameters) {
    for (auto& p : *op.parameters) Py_VISIT(p.default_value);
  }
  return 0;
}

int op_clear(PyObject* self) {
  OpObject& op = *as_op(self);
  Py_CLEAR(op.dict);
  Py_CLEAR(op.miss);
  Py_CLEAR(op.static_handler);
  Py_CLEAR(op.other_form);
  return 0;
}

void op_dealloc(PyObject* self) {
  OpObject& op = *as_op(self);
  PyObject_GC_UnTrack(self);
  std::erase(living_ops, &op);  // first: a weak reference's callback may go through them
  if (op.weak_references) PyObject_ClearWeakRefs(self);
  op_clear(self);
  Py_CLEAR(op.aliases);
  Py_CLEAR(op.text_name);
  delete op.table;
  op.table = nullptr;
  if (op.parameters) {
    for (auto& p : *op.parameters) {
      Py_XDECREF(p.name);
      Py_XDECREF(p.default_value);
    }
    delete op.parameters;
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* op_repr(PyObject* self) { return PyUnicode_FromFormat("<sampan op %s>", op_signature(*as_op(self)).c_str()); }

PyObject* op_descr_get(PyObject* self, PyObject* instance, PyObject*) {
  return !instance || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

// Pickles and copies by name, like a function.
PyObject* op_reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyObject* op_clear_cache(PyObject* self, PyObject*) {
  as_op(self)->table->clear();
  Py_RETURN_NONE;
}

PyObject* op_parameters(PyObject* self, void*) {
  static const char* kinds[] = {"tensor", "tensors", "attr"};
  const auto& parameters = *as_op(self)->parameters;
  Owned result(PyTuple_New(static_cast<Py_ssize_t>(parameters.size())));
  for (size_t i = 0; result && i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    PyObject* item = Py_BuildValue("(OsO)", p.name, kinds[p.kind], p.default_value ? p.default_value : required_marker);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), item);
  }
  return result.release();
}

PyObject* op_cached_calls(PyObject* self, void*) { return PyLong_FromSize_t(as_op(self)->table->size()); }

PyObject* get_other_form(PyObject* self, void*) {
  const OpObject& op = *as_op(self);
  return Py_NewRef(op.other_form ? op.other_form : Py_None);
}

int set_other_form(PyObject* self, PyObject* value, void*) {
  if (!value || !PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 3 || !PyLong_Check(PyTuple_GET_ITEM(value, 0)) ||
      !PyAnySet_Check(PyTuple_GET_ITEM(value, 1)) || !PyCallable_Check(PyTuple_GET_ITEM(value, 2))) {
    PyErr_SetString(PyExc_TypeError, "Op.other_form must be (position, set of keywords, function)");
    return -1;
  }
  Py_XSETREF(as_op(self)->other_form, Py_NewRef(value));
  return 0;
}

PyMethodDef op_methods[] = {
    {"__reduce__", op_reduce, METH_NOARGS, nullptr},
    {"clear_cache", op_clear_cache, METH_NOARGS, "Forgets every signature."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef op_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"parameters", op_parameters, nullptr, "(name, kind, default) of each parameter.", nullptr},
    {"other_form", get_other_form, set_other_form,
     "(position, keywords, function): a call with an int or bool at the position, or with one of the keywords, goes to function(op, *args, **kwargs).", nullptr},
    {"cached_calls", op_cached_calls, nullptr, "How many signatures are cached.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef op_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OpObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OpObject, weak_references), READONLY, nullptr},
    {"miss", T_OBJECT_EX, offsetof(OpObject, miss), 0, "miss(op, args) makes the Entry of a new signature."},
    {"static", T_OBJECT, offsetof(OpObject, static_handler), 0, "static(op, args) takes calls with symbolic values and calls under tracing."},
    {"takes_positional_out", T_BOOL, offsetof(OpObject, takes_positional_out), 0, "Whether out may be given by position, after the parameters."},
    {"aliases", T_OBJECT, offsetof(OpObject, aliases), READONLY, "{other name: parameter}."},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot op_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(op_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(op_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(op_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
    {Py_tp_descr_get, reinterpret_cast<void*>(op_descr_get)},
    {Py_tp_methods, op_methods},
    {Py_tp_getset, op_properties},
    {Py_tp_members, op_members},
    {0, nullptr},
};

PyType_Spec op_spec = {
    "sampan._rt.Op", sizeof(OpObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, op_slots};

}  // namespace

bool add_op_type(PyObject* module) {
  name_keyword = PyUnicode_InternFromString("name");
  out_keyword = PyUnicode_InternFromString("out");
  op_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&op_spec));
  PyObject* object_type = reinterpret_cast<PyObject*>(&PyBaseObject_Type);
  required_marker = PyObject_CallNoArgs(object_type);
  return name_keyword && out_keyword && op_type && required_marker && PyModule_AddObjectRef(module, "Op", reinterpret_cast<PyObject*>(op_type)) == 0 &&
         PyModule_AddObjectRef(module, "REQUIRED", required_marker) == 0;
}

const char* op_name(const OpObject& op) {
  const char* name = PyUnicode_AsUTF8(op.text_name);
  if (!name) PyErr_Clear();
  return name ? name : "op";
}

std::string op_signature(const OpObject& op) {
  std::string text = std::string(op_name(op)) + "(";
  bool first = true;
  for (const auto& p : *op.parameters) {
    const bool opens_keywords = p.is_keyword_only && !op.is_variadic && &p == op.parameters->data() + op.positional_count;
    text += std::string(first ? "" : ", ") + (opens_keywords ? "*, " : p.is_variadic ? "*" : "") + text_of(PyObject_Str, p.name);
    if (p.default_value) text += "=" + text_of(PyObject_Repr, p.default_value);
    first = false;
  }
  return text + ")";
}

PyObject* raise_argument_error(const OpObject& op, const std::string& message) {
  PyErr_Format(PyExc_TypeError, "%s: %s", op_signature(op).c_str(), message.c_str());
  return nullptr;
}

bool has_other_form(const OpObject& op, PyObject* const* args, size_t count, PyObject* keyword_names) {
  const auto at = PyLong_AsSize_t(PyTuple_GET_ITEM(op.other_form, 0));
  if (count > at && PyLong_Check(args[at])) return true;
  const Py_ssize_t keywords = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    if (PySet_Contains(PyTuple_GET_ITEM(op.other_form, 1), PyTuple_GET_ITEM(keyword_names, k)) == 1) return true;
  }
  return false;
}

bool bind_arguments(const OpObject& op, PyObject* const* args, size_t count, PyObject* keyword_names, PyObject** values, PyObject** out, Owned& packed) {
  const auto& parameters = *op.parameters;
  const size_t total = parameters.size();
  const size_t positional = std::min(count, op.positional_count);
  std::copy(args, args + positional, values);
  // Every public function takes name after its positional parameters, and some take out there, before it or after it.
  const auto is_name = [](PyObject* o) { return o == Py_None || PyUnicode_Check(o); };
  size_t given = count;
  for (int more = op.takes_positional_out ? 2 : 1; more && given > op.positional_count; --more, --given) {
    PyObject* last = args[given - 1];
    const bool is_out = op.takes_positional_out && !*out && (is_tensor(last) || (symbolic_type && PyObject_TypeCheck(last, symbolic_type)));
    if (is_out) *out = last;
    else if (!is_name(last)) break;
  }
  if (op.is_variadic && given >= op.positional_count) {
    const size_t at = op.positional_count - 1;
    const bool is_list = given == op.positional_count && (PyList_Check(args[at]) || PyTuple_Check(args[at]));
    if (!is_list) {
      packed = Owned(PyTuple_New(static_cast<Py_ssize_t>(given - at)));
      if (!packed) return false;
      for (size_t i = at; i < given; ++i) PyTuple_SET_ITEM(packed.get(), static_cast<Py_ssize_t>(i - at), Py_NewRef(args[i]));
      values[at] = packed.get();
    }
  } else if (op.takes_rest && given > op.positional_count) {
    const size_t at = op.positional_count - 1;
    packed = Owned(PyTuple_New(static_cast<Py_ssize_t>(given - at)));
    if (!packed) return false;
    for (size_t i = at; i < given; ++i) PyTuple_SET_ITEM(packed.get(), static_cast<Py_ssize_t>(i - at), Py_NewRef(args[i]));
    values[at] = packed.get();
  } else if (given > positional) {
    raise_argument_error(op, "takes at most " + std::to_string(positional) + " positional arguments, and " + std::to_string(given) + " were given");
    return false;
  }
  std::fill(values + positional, values + total, nullptr);
  const Py_ssize_t keywords = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(keyword_names, k);
    PyObject* value = args[count + static_cast<size_t>(k)];
    int i = find_parameter(op, name);
    if (i < 0 && op.aliases) {
      if (PyObject* target = PyDict_GetItemWithError(op.aliases, name)) i = find_parameter(op, target);
      if (PyErr_Occurred()) return false;
    }
    if (i >= 0) {
      if (values[i]) {
        raise_argument_error(op, "got more than one value for " + text_of(PyObject_Repr, parameters[static_cast<size_t>(i)].name));
        return false;
      }
      values[i] = value;
    } else if (same_text(name, out_keyword)) {
      *out = value == Py_None ? nullptr : value;
    } else if (!same_text(name, name_keyword)) {
      raise_argument_error(op, "has no parameter " + text_of(PyObject_Repr, name) + suggestion(op, name));
      return false;
    }
  }
  std::string missing;
  for (size_t i = 0; i < total; ++i) {
    if (values[i]) continue;
    values[i] = parameters[i].default_value;
    if (!values[i]) missing += (missing.empty() ? "" : ", ") + text_of(PyObject_Repr, parameters[i].name);
  }
  if (missing.empty()) return true;
  raise_argument_error(op, "needs a value for " + missing);
  return false;
}

void clear_signature_tables() {
  // An entry's end may run Python, which may end an op.
  const std::vector<OpObject*> ops = living_ops;
  for (OpObject* op : ops) Py_INCREF(op);
  for (OpObject* op : ops) op->table->clear();
  for (OpObject* op : ops) Py_DECREF(op);
}

size_t signature_count() {
  size_t total = 0;
  for (const OpObject* op : living_ops) total += op->table->size();
  return total;
}

}  // namespace sampan
