"""Compilation and its disk cache: what is kept and refused, several processes and threads, directories of no use."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from codegen.kernel_checks import map_kernel
from codegen.kernel_runner import Call

from sampan.base import flags
from sampan.cli import info
from sampan.codegen import jit
from sampan.codegen.disk_cache import DiskCache, Entry, pack, unpack

_KEY, _OTHER = bytes(range(32)), bytes(32)
_ENTRY = Entry(b"object code" * 50, 3, 1.5)


def test_entries_come_back_as_they_were_written(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "deep" / "folder"))
    assert cache.read(_KEY) is None
    cache.write(_KEY, _ENTRY)
    assert cache.read(_KEY) == _ENTRY
    assert cache.read(_OTHER) is None
    assert not list((tmp_path / "deep" / "folder").glob("*.tmp"))


def test_any_changed_or_missing_byte_makes_an_entry_unreadable() -> None:
    data = pack(_KEY, _ENTRY)
    assert unpack(_KEY, data) == _ENTRY
    assert unpack(_OTHER, data) is None
    for k in range(len(data)):
        assert unpack(_KEY, data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :]) is None
    for k in range(0, len(data), 7):
        assert unpack(_KEY, data[:k]) is None
    assert unpack(_KEY, data + b"x") is None


def test_the_oldest_entries_leave_when_the_size_is_exceeded(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), size_bytes=10 * len(pack(_KEY, _ENTRY)))
    keys = [bytes([k]) * 32 for k in range(12)]
    for age, key in enumerate(keys):
        cache.write(key, _ENTRY)
        os.utime(str(cache.path(key)), (1e9 + age, 1e9 + age))
    cache.sweep()
    assert [cache.read(k) is not None for k in keys] == [False] * 3 + [True] * 9


@pytest.mark.parametrize("directory", ["/proc/no/such", None])
def test_directories_that_cannot_be_written_leave_memory_only(directory: str | None) -> None:
    compiler = jit.Compiler(jit.host_target(), DiskCache(directory))
    assert compiler.compile(map_kernel("neg", "float32", 1)).address
    assert DiskCache(directory).read(_KEY) is None


def test_a_file_in_the_directory_s_place_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    cache = DiskCache(str(tmp_path / "file"))
    cache.write(_KEY, _ENTRY)
    assert cache.read(_KEY) is None


def test_the_cache_lies_in_the_user_s_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags.KERNEL_CACHE, "value", "")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/own")
    assert flags.kernel_cache_directory() == "/var/cache/own/sampan/kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert flags.kernel_cache_directory() == "/home/somebody/.cache/sampan/kernels"


def test_a_user_without_a_home_folder_has_no_cache_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder named ~ in the current one would be its place otherwise."""

    def nobody(user: int) -> object:
        raise KeyError(user)

    monkeypatch.setattr(flags.KERNEL_CACHE, "value", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert flags.kernel_cache_directory() is None
    assert jit.compiler_for().cache.directory is None
    assert list(info.kernel_cache()) == ["location"]


def _compiler(folder: Path) -> jit.Compiler:
    return jit.Compiler(jit.host_target(), DiskCache(str(folder)))


def test_a_second_compiler_loads_what_the_first_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = map_kernel("exp", "float32", 1)
    compilers = _compiler(tmp_path), _compiler(tmp_path)
    first = compilers[0].compile(kernel)
    monkeypatch.setattr(jit, "llvm_text", None)  # compiling again would fail
    second = compilers[1].compile(kernel)
    assert (second.key, second.scratch_rows, second.cost_ns) == (first.key, first.scratch_rows, first.cost_ns)
    assert second.address != first.address


@pytest.mark.parametrize(
    "damage", [lambda d: d[: len(d) // 2], lambda d: d[:-1] + bytes([d[-1] ^ 255]), lambda d: b"", lambda d: b"\x7fELF" + d[4:]]
)
def test_damaged_entries_are_compiled_again(tmp_path: Path, damage: object) -> None:
    kernel = map_kernel("neg", "float32", 1)
    compiler = _compiler(tmp_path)
    compiler.compile(kernel)
    path = Path(str(compiler.cache.path(compiler.key(kernel))))
    whole = path.read_bytes()
    path.write_bytes(damage(whole))  # type: ignore[operator]
    assert _compiler(tmp_path).compile(kernel).address
    assert unpack(compiler.key(kernel), path.read_bytes()) is not None


def test_the_same_kernel_for_another_target_or_emitter_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = map_kernel("neg", "float32", 1)
    keys = {jit.Compiler(jit.host_target(w), DiskCache(None)).key(kernel) for w in ((), ("sse4.2",))}
    monkeypatch.setattr(jit, "emitter_version", lambda: "another")
    keys.add(jit.Compiler(jit.host_target(), DiskCache(None)).key(kernel))
    assert len(keys) == 3


def test_many_threads_get_one_kernel() -> None:
    compiler = jit.Compiler(jit.host_target(), DiskCache(None))
    kernel = map_kernel("tanh", "float32", 1)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(compiler.compile(kernel).address)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8
    assert len(set(found)) == 1


_CHILD = """
import sys
sys.path[:0] = {paths!r}
import numpy as np
from codegen.kernel_checks import map_kernel
from codegen.kernel_runner import Call
for name in ("neg", "abs", "exp", "tanh", "sqrt", "floor"):
    out = np.zeros(9, np.float32)
    Call(map_kernel(name, "float32", 1), [np.arange(9, dtype=np.float32), out], [[1], [1]], lane=9).run()
    print(name, out.tobytes().hex())
"""


def test_many_processes_share_one_directory(tmp_path: Path) -> None:
    environment = {**os.environ, "FLAGS_kernel_cache_dir": str(tmp_path), "FLAGS_kernel_cache_mb": "64"}
    command = [sys.executable, "-c", _CHILD.format(paths=[p for p in sys.path if p])]
    children = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = {child.communicate(timeout=120)[0] for child in children}
    assert all(child.returncode == 0 for child in children)
    assert len(outputs) == 1
    assert len(list(tmp_path.glob("*.kernel"))) == 6
    assert not list(tmp_path.glob("*.tmp"))


def test_many_kernels_stay_callable_side_by_side() -> None:
    names = ("neg", "abs", "floor", "ceil", "trunc", "sqrt", "exp", "log")
    compiled = jit.compile_many([map_kernel(n, d, 1) for n in names for d in ("float32", "float64")])
    assert len({c.address for c in compiled}) == 16
    x = np.arange(1, 50, dtype=np.float64)
    for name in names:
        out = np.zeros(49)
        Call(map_kernel(name, "float64", 1), [x, out], [[1], [1]], lane=49).run()
        np.testing.assert_allclose(out, getattr(np, {"neg": "negative"}.get(name, name))(x), rtol=1e-15)


def test_cost_grows_with_the_work() -> None:
    cheap, dear = (jit.compile(map_kernel(n, "float32", 1)).cost_ns for n in ("neg", "tanh"))
    assert 0 < cheap < dear


def test_lowered_targets_have_no_newer_instructions() -> None:
    """Newer features of this machine may need AVX (vaes, avxvnni); they must not bring it back."""
    kernel = map_kernel("exp", "float32", 1)
    narrow = jit.Compiler(jit.host_target(("avx",)), DiskCache(None)).assembly(kernel)
    instructions = {line.split()[0] for line in narrow.splitlines() if line.startswith("\t") and not line.startswith("\t.")}
    assert "mulps" in instructions
    assert not [name for name in instructions if name.startswith("v")]


@pytest.mark.parametrize("feature", ["vaes", "vpclmulqdq", "avxvnni", "gfni", "sha512"])
def test_features_of_newer_machines_do_not_bring_back_what_was_lowered(feature: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {**dict(jit.llvm.get_host_cpu_features()), feature: True}
    monkeypatch.setattr(jit.llvm, "get_host_cpu_features", lambda: found)
    target = jit.host_target.__wrapped__(("avx",))
    assembly = jit.Compiler(target, DiskCache(None)).assembly(map_kernel("neg", "float32", 1))
    assert not [line for line in assembly.splitlines() if line.startswith("\tv")]
