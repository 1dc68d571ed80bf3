#!/usr/bin/env python3
"""Holds the rules of layers and sizes: who may import whom, import cycles, file sizes, and a few forbidden things.

Prints a table of numbers, then one line per violation (``file:line: rule: what``); exits with 1 when there is any.
Imports inside functions and under ``TYPE_CHECKING`` count like all others. The table itself is ``tools/layers.py``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import layers

SOURCE_FOLDERS = ("sampan", "csrc", "tests", "tools", "benchmarks")
_TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\s*\(?#\d+)")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
_REGISTERED = re.compile(r'(?:RegisterNative\s+\w+|register_native)\s*[({]\s*"(\w+)"')
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, order=True)
class Violation:
    """One broken rule, where it is and what it is."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


@dataclass(frozen=True)
class Import:
    """One imported module, by its absolute dotted name; ``name`` is what ``from`` takes out of it, if anything."""

    line: int
    module: str
    name: str = ""


@dataclass
class PythonFile:
    """One parsed module of the package."""

    path: str
    module: str
    tree: ast.Module
    text: str

    @property
    def package(self) -> str:
        """The first folder below ``sampan/``; the face for its top files, a module's own name for a layer of one file."""
        parts = self.path.split("/")
        if len(parts) > 2:
            return parts[1]
        stem = parts[1].removesuffix(".py")
        return stem if layers.layer_of(stem) else layers.FACE

    @property
    def is_package(self) -> bool:
        """Whether the file is an ``__init__.py``."""
        return self.path.endswith("/__init__.py")


@dataclass
class Report:
    """What was counted and what was found wrong."""

    numbers: list[tuple[str, str]] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)

    def add(self, path: str, line: int, rule: str, text: str) -> None:
        """Record one violation."""
        self.violations.append(Violation(path, line, rule, text))

    def count(self, name: str, value: object) -> None:
        """Record one number of the table."""
        self.numbers.append((name, str(value)))


def read_package(root: Path) -> list[PythonFile]:
    """Every module of ``sampan/``, parsed."""
    files = []
    for path in sorted((root / "sampan").rglob("*.py")):
        relative = path.relative_to(root)
        parts = relative.with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        files.append(PythonFile(relative.as_posix(), module, ast.parse(text, filename=str(path)), text))
    return files


def imports_of(file: PythonFile) -> Iterator[Import]:
    """Every import of the file, wherever it stands, relative ones resolved; ``import_module("literal")`` too."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                parents = file.module.split(".")
                keep = len(parents) - node.level + (1 if file.is_package else 0)
                module = ".".join([*parents[:keep], *([module] if module else [])])
            for alias in node.names:
                yield Import(node.lineno, module, alias.name)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield Import(node.lineno, node.args[0].value)


def resolve(found: Import, modules: set[str]) -> str:
    """The module that the import reaches: the submodule when ``from package import submodule`` names one."""
    inner = f"{found.module}.{found.name}"
    return inner if found.name and inner in modules else found.module


def target_package(found: Import, modules: set[str]) -> str:
    """The package of ``sampan`` that the import reaches."""
    parts = resolve(found, modules).split(".")
    name = parts[1] if len(parts) > 1 else found.name
    return name if name and layers.layer_of(name) else (layers.FACE if len(parts) < 3 else name)


def is_private(name: str) -> bool:
    """Whether the name has a leading underscore and is not a dunder."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def check_imports(files: list[PythonFile], report: Report) -> None:
    """The layer table: each package imports only what its row allows, and every package has a row."""
    modules = {f.module for f in files}
    unlisted: set[str] = set()
    edges = 0
    for file in files:
        if layers.layer_of(file.package) is None:
            if file.package not in unlisted:
                report.add(file.path, 1, "layer", f"package {file.package!r} has no row in tools/layers.py")
            unlisted.add(file.package)
            continue
        for found in imports_of(file):
            library = found.module.split(".")[0]
            if library == "sampan":
                edges += 1
                target = target_package(found, modules)
                if not layers.may_import(file.path, file.package, target):
                    report.add(file.path, found.line, "layer", f"{file.package} may not import {target}")
                if file.package in ("paddle_alias", "examples"):
                    private = [p for p in (*found.module.split("."), found.name) if is_private(p)]
                    if private:
                        report.add(file.path, found.line, "layer", f"{file.package} may use public names only, not {private[0]}")
            elif file.package == "base" and library not in (*sys.stdlib_module_names, *layers.BASE_LIBRARIES):
                report.add(file.path, found.line, "layer", f"base may import the standard library and NumPy only, not {library}")
            elif file.package not in layers.LIBRARY_OWNERS.get(library, (file.package,)):
                report.add(file.path, found.line, "layer", f"{file.package} may not import {library}")
        if file.package == "examples":
            check_private_use(file, report)
    report.count("modules of sampan", len(files))
    report.count("imports between them", edges)


def check_private_use(file: PythonFile, report: Report) -> None:
    """Examples: no attribute with a leading underscore on anything that came from sampan."""
    names = set()
    for node in ast.walk(file.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", None)
            for alias in node.names:
                if (module or alias.name).split(".")[0] == "sampan":
                    names.add(alias.asname or alias.name.split(".")[0])
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in names:
                report.add(file.path, node.lineno, "layer", f"examples may use public names only, not {node.attr}")


def required_libraries(root: Path) -> set[str]:
    """The import names of pyproject's plain dependencies."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r'"([A-Za-z0-9_]+)', block.group(1))) if block else set()


def check_optional_libraries(files: list[PythonFile], root: Path, report: Report) -> None:
    """A library that is not an ordinary dependency is imported in exactly one file (programs in ``examples`` aside)."""
    ordinary = {*sys.stdlib_module_names, *required_libraries(root), "sampan", "__future__"}
    users: dict[str, dict[str, int]] = defaultdict(dict)
    for file in files:
        if file.package != "examples":
            for found in imports_of(file):
                library = found.module.split(".")[0]
                if library and library not in ordinary:
                    users[library].setdefault(file.path, found.line)
    for library, places in sorted(users.items()):
        for path, line in sorted(places.items())[1:]:
            report.add(path, line, "optional library", f"{library} is imported in {min(places)} already; import it there only")
    report.count("optional libraries", ", ".join(sorted(users)) or "none")


def check_cycles(files: list[PythonFile], report: Report) -> None:
    """The largest import cycle is 1: no module imports itself through others."""
    modules = {f.module for f in files}
    known = modules | {layers.COMPILED}
    graph = {f.module: sorted({resolve(i, known) for i in imports_of(f)} & modules - {f.module}) for f in files}
    groups = strong_components(graph)
    paths = {f.module: f.path for f in files}
    for group in groups:
        if len(group) > 1:
            report.add(paths[group[0]], 1, "import cycle", " <-> ".join(group))
    report.count("largest import cycle", max((len(g) for g in groups), default=0))


def strong_components(graph: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components (Tarjan 1972), each sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    components: list[list[str]] = []

    for start in graph:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        work = [(start, iter(graph[start]))]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    components.append(sorted(stack[cut:]))
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
    return components


def check_python_rules(files: list[PythonFile], report: Report) -> None:
    """No bare except, no assert, and the environment is read in two files only."""
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ExceptHandler) and node.type is None:
                report.add(file.path, node.lineno, "bare except", "name the exceptions")
            elif isinstance(node, ast.Assert):
                report.add(file.path, node.lineno, "assert", "raise an error of sampan.base.errors")
            elif file.path not in layers.ENVIRONMENT_READERS and isinstance(node, (ast.Attribute, ast.ImportFrom)):
                if reads_environment(node):
                    allowed = " and ".join(layers.ENVIRONMENT_READERS)
                    report.add(file.path, node.lineno, "environment", f"os.environ is read in {allowed} only")


def reads_environment(node: ast.Attribute | ast.ImportFrom) -> bool:
    """Whether the node is ``os.environ``, ``os.getenv`` or an import of one of them."""
    names = ("environ", "environb", "getenv", "getenvb", "putenv", "unsetenv")
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr in names
    return node.module == "os" and any(a.name in names for a in node.names)


def comments_of(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The comments of a Python or C++ file with their lines."""
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        return
    block = False
    for number, line in enumerate(text.splitlines(), 1):
        if block or "//" in line or "/*" in line:
            begin = 0 if block else min(p for p in (line.find("//"), line.find("/*")) if p >= 0)
            yield number, line[begin:]
            if "/*" in line or block:
                block = "*/" not in line[line.rfind("/*") + 2 if "/*" in line else 0 :]


def source_files(root: Path) -> list[Path]:
    """Every Python and C++ file of the project."""
    found = (p for folder in SOURCE_FOLDERS for p in (root / folder).rglob("*") if p.suffix in (".py", ".cpp", ".h"))
    return sorted(found)


def check_sizes_and_comments(root: Path, report: Report) -> None:
    """File sizes, and TODOs without an issue's number."""
    paths = source_files(root)
    lines: dict[str, int] = {}
    todos = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        lines[name] = text.count("\n")
        if lines[name] > layers.MOST_LINES:
            report.add(
                name, layers.MOST_LINES + 1, "size", f"{lines[name]} lines; {layers.MOST_LINES} is the most: split the subject"
            )
        for number, comment in comments_of(path, text):
            match = _TODO.search(comment)
            todos += bool(re.search(r"\b(TODO|FIXME|XXX|HACK)\b", comment))
            if match:
                report.add(name, number, "todo", f"{match.group(1)} without an issue's number, as in TODO(#12)")
    for folder in SOURCE_FOLDERS:
        mine = [n for p, n in lines.items() if p.startswith(folder + "/")]
        if mine:
            report.count(f"{folder}/: files, lines", f"{len(mine)}, {sum(mine)}")
    largest = max(lines, key=lines.__getitem__, default="")
    report.count("largest file", f"{largest}, {lines.get(largest, 0)} lines")
    report.count(f"files over {layers.HINT_LINES} lines", sum(n > layers.HINT_LINES for n in lines.values()))
    report.count("TODOs", todos)


def check_native(root: Path, report: Report) -> None:
    """``csrc/``: includes point down, and only ``kernels/`` names operators."""
    csrc = root / "csrc"
    texts = {p: p.read_text(encoding="utf-8") for p in sorted(csrc.rglob("*")) if p.suffix in (".cpp", ".h")}
    operators = {n for p, t in texts.items() if p.parent.name == "kernels" for n in _REGISTERED.findall(t)}
    includes = 0
    for path, text in texts.items():
        name, folder = path.relative_to(root).as_posix(), path.relative_to(csrc).parts[0]
        if folder not in layers.NATIVE_LAYERS:
            report.add(name, 1, "include", f"csrc/{folder} has no row in tools/layers.py")
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = _INCLUDE.match(line)
            if match:
                target = match.group(1).split("/")[0] if "/" in match.group(1) else folder
                if target in layers.NATIVE_LAYERS:
                    includes += 1
                    if target != folder and target not in layers.NATIVE_LAYERS[folder]:
                        report.add(name, number, "include", f"csrc/{folder} may not include csrc/{target}")
            elif folder not in layers.NAMES_OPERATORS:
                for literal in _STRING.findall(line.split("//")[0]):
                    if literal in operators:
                        report.add(name, number, "operator name", f'only csrc/kernels names operators, and "{literal}" is one')
    report.count("includes within csrc", includes)
    report.count("native operators", len(operators))


def check(root: Path) -> Report:
    """All rules, over the checkout at ``root``."""
    report = Report()
    files = read_package(root)
    check_imports(files, report)
    check_cycles(files, report)
    check_optional_libraries(files, root, report)
    check_python_rules(files, report)
    check_native(root, report)
    check_sizes_and_comments(root, report)
    report.violations.sort()
    return report


def print_report(report: Report) -> None:
    """The table, then the violations."""
    width = max(len(name) for name, _ in report.numbers)
    for name, value in report.numbers:
        print(f"{name:<{width}}  {value}")
    for violation in report.violations:
        print(violation)
    print(f"{'violations':<{width}}  {len(report.violations)}")


def main(arguments: Iterable[str] | None = None) -> int:
    """Check the checkout; 1 when a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the checkout")
    report = check(parser.parse_args(None if arguments is None else list(arguments)).root)
    print_report(report)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
