"""The syntax tree of a function that runs: found by its file, name and line, with the file's own line and column numbers."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType

from ...base.errors import ConversionError, message

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """A function's definition, the file it stands in, and the class around it, whose name private names are mangled with."""

    definition: Definition
    filename: str
    class_name: str


#: What Python calls the text of ``python -c``, which 3.13 keeps to be read, and every text given to ``exec``, which it does not.
_UNNAMED = "<string>"
_files: dict[str, tuple[str, dict[tuple[int, str], list[Source]]]] = {}


def source_of(function: FunctionType) -> Source:
    """The function's source.

    Raises:
        ConversionError: there is none (it was made by ``exec``, or typed at a prompt), it has changed, or it cannot be told apart from another.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text or (code.co_filename == _UNNAMED and not _is_of(code, text)):
        raise _missing(function, f"the source file {code.co_filename} cannot be read", "put it into a file that can be read")
    cached = _files.get(code.co_filename)
    if cached is None or cached[0] != text:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise _missing(function, f"{code.co_filename} no longer parses: {error}", "load the module again") from None
        cached = _files[code.co_filename] = text, _definitions(tree, code.co_filename)
    candidates = [s for s in cached[1].get((code.co_firstlineno, code.co_name), []) if _fits(s.definition, code)]
    if len(candidates) > 1:
        candidates = _enclosing(candidates, code) if _has_columns(code) else _alike(candidates, code, text)
    if not candidates:
        raise _missing(function, f"{code.co_filename} has changed since it was loaded", "load the module again")
    if len(candidates) > 1:
        raise _missing(function, "several functions like it begin on the same line", "put each on a line of its own")
    return candidates[0]


def _is_of(code: CodeType, text: str) -> bool:
    """Whether the text compiles to the code, at its top or within."""
    try:
        return code in _codes_in(compile(text, code.co_filename, "exec", dont_inherit=True))
    except SyntaxError:
        return False


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes_in(inner)


def _missing(function: FunctionType, why: str, fix: str) -> ConversionError:
    code = function.__code__
    return ConversionError(
        message(f"{function.__qualname__} cannot be converted", why, fix) + f"\n  at {code.co_filename}:{code.co_firstlineno}"
    )


def _definitions(tree: ast.Module, filename: str) -> dict[tuple[int, str], list[Source]]:
    found: dict[tuple[int, str], list[Source]] = {}
    for node, class_name in _functions(tree, ""):
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
        line = min([node.lineno, *(d.lineno for d in decorators)])
        found.setdefault((line, name), []).append(Source(node, filename, class_name))
    return found


def _functions(node: ast.AST, class_name: str) -> Iterator[tuple[Definition, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield child, class_name
        yield from _functions(child, child.name if isinstance(child, ast.ClassDef) else class_name)


def _fits(node: Definition, code: CodeType) -> bool:
    """Whether the code object can come from the definition: their parameters have the same names."""
    named = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    named += [a.arg for a in (node.args.vararg, node.args.kwarg) if a is not None]
    flags = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return tuple(named) == tuple(
        n if not n.startswith("_") else _unmangled(n, named)
        for n in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
    )


def _unmangled(name: str, known: list[str]) -> str:
    return next((k for k in known if k.startswith("__") and name.endswith(k) and name.startswith("_")), name)


def _enclosing(candidates: list[Source], code: CodeType) -> list[Source]:
    """Of those whose body holds all positions of the code, the narrowest."""
    positions = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    first = min(((p[0], p[2]) for p in positions), default=(0, 0))
    last = max(((p[1], p[3]) for p in positions), default=(0, 0))

    def holds(source: Source) -> bool:
        node = source.definition
        body = node.body if isinstance(node, ast.Lambda) else node
        end = (body.end_lineno or body.lineno, body.end_col_offset or body.col_offset)
        return (body.lineno, body.col_offset) <= first and last <= end

    fitting = [s for s in candidates if holds(s)]
    fitting.sort(key=lambda s: _extent(s.definition))
    return fitting[:1]


def _has_columns(code: CodeType) -> bool:
    """Whether the code says where in a line it stands: Python 3.10 keeps lines only, and so does ``-X no_debug_ranges``."""
    return hasattr(code, "co_positions") and any(None not in p for p in code.co_positions())


def _alike(candidates: list[Source], code: CodeType, text: str) -> list[Source]:
    """One that compiles to the same instructions as the code; all of them where none does."""
    tree = ast.parse(text)
    places = {(s.definition.lineno, s.definition.col_offset): s for s in candidates}
    by_line: dict[int, Source] = {}
    for node, _ in _functions(tree, ""):
        source = places.get((node.lineno, node.col_offset))
        if source is not None:  # each gets a line of its own, below the text, which its code then names
            node.lineno = node.end_lineno = text.count("\n") + 2 + len(by_line)
            node.end_col_offset = node.col_offset
            by_line[node.lineno] = source
    found = [
        by_line[c.co_firstlineno]
        for c in _codes_in(compile(tree, code.co_filename, "exec", dont_inherit=True))
        if c.co_firstlineno in by_line and _same_instructions(c, code)
    ]
    return found[:1] or candidates


def _same_instructions(a: CodeType, b: CodeType) -> bool:
    if a.co_code != b.co_code or len(a.co_consts) != len(b.co_consts):
        return False
    if (a.co_names, a.co_varnames, a.co_freevars, a.co_cellvars) != (b.co_names, b.co_varnames, b.co_freevars, b.co_cellvars):
        return False
    return all(
        _same_instructions(x, y)
        if isinstance(x, CodeType) and isinstance(y, CodeType)
        else (type(x), repr(x)) == (type(y), repr(y))
        for x, y in zip(a.co_consts, b.co_consts)
    )


def _extent(node: Definition) -> tuple[int, int]:
    lines = (node.end_lineno or node.lineno) - node.lineno
    return lines, (node.end_col_offset or 0) - node.col_offset
