"""Random Python functions: every statement and expression that conversion rewrites, in any nesting."""

from __future__ import annotations

import linecache
from random import Random
from typing import Any

NAMES = "abcd"


class OutOfFuel(Exception):
    """The program ran for too long."""


class Writer:
    """Writes one function ``program(a, b, log, tick, guard)``.

    is_tensor_program: only what a recorded Program can hold: variables keep their type and are always set, no exceptions, no logs.
    """

    def __init__(self, random: Random, is_tensor_program: bool = False, size: int = 14) -> None:
        self.random = random
        self.lines: list[str] = []
        self.left = size
        self.is_tensor = is_tensor_program
        self.functions = 0

    def text(self) -> str:
        self.lines = ["def program(a, b, log, tick, guard):"]
        if self.is_tensor or self.random.randrange(4):
            self.lines.append("    c, d = a + b, a - b")
        if self.is_tensor:
            self.lines.append("    fuel = 0")
        self.block(1, loop=False, final=False)
        self.lines.append(
            f"    return {self.pick(['a + b', 'c', 'd * 2 - a'] if self.is_tensor else ['a', 'a, b', '[a, b]', 'c', 'd'])}"
        )
        return "\n".join(self.lines) + "\n"

    def pick(self, items: Any) -> Any:
        return items[self.random.randrange(len(items))]

    def number(self) -> str:
        return str(self.random.randrange(-3, 6))

    def value(self, depth: int = 0) -> str:
        kind = self.random.randrange(10 if depth < 2 else 4)
        if kind < 3:
            return self.pick(NAMES)
        if kind == 3:
            return self.number()
        if kind < 7:
            return f"({self.value(depth + 1)} {self.pick('+-*')} {self.value(depth + 1)})"
        if kind == 7:
            return f"({self.value(depth + 1)} if {self.test(depth + 1)} else {self.value(depth + 1)})"
        if kind == 8 and not self.is_tensor:
            return f"(lambda v, w=2: {self.value(depth + 1)} + v * w)({self.value(depth + 1)})"
        if kind == 9 and not self.is_tensor:
            return f"({self.value(depth + 1)} {self.pick(['and', 'or'])} {self.value(depth + 1)})"
        return f"abs({self.value(depth + 1)})"

    def test(self, depth: int = 0) -> str:
        kind = self.random.randrange(7 if depth < 2 else 2)
        sign = self.pick(["<", ">", "==", "!=", "<=", ">="])
        if kind < 3:
            return f"{self.value(depth + 1)} {sign} {self.value(depth + 1)}"
        if kind == 3:
            return f"{self.value(depth + 1)} {sign} {self.value(depth + 1)} {self.pick(['<', '>='])} {self.value(depth + 1)}"
        if kind == 4:
            return f"not ({self.test(depth + 1)})"
        if kind == 5 and not self.is_tensor:
            return f"log({self.number()}) > {self.number()}"
        return f"({self.test(depth + 1)} {self.pick(['and', 'or'])} {self.test(depth + 1)})"

    def bounded(self, text: str) -> str:
        if self.is_tensor:
            return f"({text}) % 11"
        return f"({text}) % 1009" if "*" in text else text  # a loop that squares would need numbers of any length

    def block(self, depth: int, loop: bool, final: bool) -> None:
        for _ in range(1 + self.random.randrange(3)):
            self.statement(depth, loop, final)

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int, loop: bool, final: bool) -> None:
        self.left -= 1
        kind = self.random.randrange(20)
        if self.left < 0 or depth > 6 or kind < 5:
            self.add(depth, f"{self.pick(NAMES)} = {self.bounded(self.value())}")
        elif kind < 6:
            self.add(
                depth,
                f"{self.pick(NAMES)} {self.pick('+-')}= {self.bounded(self.value())}"
                if not self.is_tensor
                else "a = (a + d) % 7",
            )
        elif kind < 10:
            self.add(depth, f"if {self.test()}:")
            self.block(depth + 1, loop, final)
            if self.random.randrange(2):
                if self.random.randrange(3) == 0:
                    self.add(depth, f"elif {self.test()}:")
                    self.block(depth + 1, loop, final)
                self.add(depth, "else:")
                self.block(depth + 1, loop, final)
        elif kind < 12:
            self.loop(depth, final)
        elif kind < 14 and not final:
            if loop and self.random.randrange(3):
                self.add(depth, self.pick(["break", "continue"]))
            else:
                self.add(depth, f"return {self.value()}")
        elif self.is_tensor:
            self.add(depth, f"{self.pick(NAMES)} = {self.bounded(self.value())}")
        elif kind == 14:
            self.add(depth, f"log({self.value()})")
        elif kind == 15:
            self.tried(depth, loop, final)
        elif kind == 16:
            self.add(depth, f"with guard({self.number()}):")
            self.block(depth + 1, loop, final)
        elif kind == 17:
            comprehension = f"log([q for q in range(3) if q != {self.number()}])"
            others = [f"del {self.pick(NAMES)}", f"assert {self.test()}, 'told'", f"raise ValueError({self.value()})"]
            self.add(depth, self.pick([*others, comprehension]))
        elif kind == 18:
            self.nested(depth)
        else:
            self.add(depth, f"match {self.pick(NAMES)}:")
            self.add(depth + 1, f"case {abs(int(self.number()))}:")
            self.block(depth + 2, loop, final)
            self.add(depth + 1, f"case {self.pick(['_', self.pick(NAMES)])}:")
            self.block(depth + 2, loop, final)

    def loop(self, depth: int, final: bool) -> None:
        if self.random.randrange(2):
            name = self.pick("abcdij") if not self.is_tensor else self.pick("ij")
            over = f"range({self.random.randrange(5)})"
            if self.is_tensor and self.random.randrange(2):
                over = f"range(abs({self.pick(NAMES)}) % 4)"
            elif not self.is_tensor and self.random.randrange(3) == 0:
                over = f"[{self.bounded(self.value())}, {self.bounded(self.value())}]"
            self.add(depth, f"for {name} in {over}:")
        else:
            self.add(depth, f"while {self.test()}:")
        self.add(depth + 1, "tick()" if not self.is_tensor else "fuel += 1")
        if self.is_tensor:
            self.add(depth + 1, f"if fuel > {6 + self.random.randrange(9)}:")
            self.add(depth + 2, "break")
        self.block(depth + 1, True, final)
        if self.random.randrange(4) == 0:
            self.add(depth, "else:")
            self.block(depth + 1, False, True)

    def tried(self, depth: int, loop: bool, final: bool) -> None:
        self.add(depth, "try:")
        self.block(depth + 1, loop, final)
        has_handler = self.random.randrange(3) > 0
        if has_handler:
            self.add(
                depth, self.pick(["except ValueError as e:", "except (NameError, AssertionError):", "except TypeError as c:"])
            )
            self.block(depth + 1, loop, final)
            if self.random.randrange(2):
                self.add(depth, "else:")
                self.block(depth + 1, loop, final)
        if not has_handler or self.random.randrange(2):
            self.add(depth, "finally:")
            self.block(depth + 1, False, True)

    def nested(self, depth: int) -> None:
        self.functions += 1
        name = f"inner_{self.functions}"
        self.add(depth, f"def {name}(v):")
        changed = self.pick(NAMES)
        # parameters of the outer function may be declared nonlocal too
        self.add(depth + 1, f"nonlocal {changed}")
        self.add(depth + 1, f"if {self.pick(NAMES)} > v:")
        self.add(depth + 2, f"{changed} = v + {self.number()}")
        self.add(depth + 2, f"return {self.pick(NAMES)}")
        self.add(depth + 1, f"return v + {self.number()}")
        self.add(depth, f"{self.pick(NAMES)} = {name}({self.bounded(self.value())})")


_count = 0


def load(text: str, **names: Any) -> Any:
    """The function that the text defines, in a file of its own that Python's tracebacks can show."""
    global _count
    _count += 1
    filename = f"<program {_count}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    space: dict[str, Any] = {"__name__": "programs", **names}
    exec(compile(text, filename, "exec"), space)
    return space["program"]
