"""Kernels as machine code of this process: compile(kernel) gives an address to call.

Compilation is LLVM's code generator alone: the emitter writes vectors, accumulators and loop-invariant values itself, so no
middle-end pass has anything to do. A kernel takes 5 to 25 ms to compile once, and 0.2 ms to load from the disk cache.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import hashlib
import pathlib
import sys
from collections.abc import Sequence

import llvmlite
import llvmlite.binding as llvm

from sampan.base import flags
from sampan.base.locks import new_lock
from sampan.codegen.disk_cache import DiskCache, Entry
from sampan.codegen.dtypes import KernelError
from sampan.codegen.emit import emit_kernel
from sampan.codegen.llvm_text import Writer
from sampan.codegen.loop_nodes import Kernel

# One vector instruction of 256 bits takes about this long on a core of 2017; a threading threshold needs no more precision.
_INSTRUCTION_NS = 0.5
# What each instruction set builds on: lowering one lowers all that need it.
_NEEDED_BY = {
    "sse4.1": ("sse4.2", "avx"),
    "sse4.2": ("avx",),
    "avx": ("avx2", "fma", "f16c"),
    "avx2": ("avx512f",),
    "fma": ("avx512f",),
    "f16c": ("avx512f",),
    "avx512f": ("avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512vnni", "avx512bf16", "avx512fp16", "avx512vbmi"),
}


_EMITTER_SOURCES = ("dtypes.py", "emit*.py", "jit.py", "llvm_text.py", "loop_nodes.py", "mathlib*.py", "scalar_ops.py")


@dataclasses.dataclass(frozen=True)
class CompiledKernel:
    """Machine code of this process, alive as long as its Compiler is. cost_ns estimates one lane element of one row."""

    address: int
    scratch_rows: int
    cost_ns: float
    key: str


@dataclasses.dataclass(frozen=True)
class Target:
    """A processor to emit for."""

    triple: str
    cpu: str
    feature_text: str
    features: frozenset[str]

    @property
    def vector_bits(self) -> int:
        """The size of a vector register."""
        return 512 if "avx512f" in self.features else 256 if "avx" in self.features else 128


@functools.cache
def host_target(without: tuple[str, ...] = ()) -> Target:
    """This machine's processor, less the named features (such as 'avx2') and whatever needs them."""
    _initialize()
    features = dict(llvm.get_host_cpu_features())
    removed = list(without)
    while removed:
        name = removed.pop()
        features[name] = False
        removed += _NEEDED_BY.get(name, ())
        removed += [f for f in features if name == "avx512f" and f.startswith("avx512") and features[f]]
    # What is off stands last: in LLVM a feature turns on all that it needs ("+vaes" brings avx2), and one turned off takes along what needs it.
    text = ",".join(("+" if on else "-") + name for name, on in sorted(features.items(), key=lambda item: (not item[1], item[0])))
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), text, frozenset(n for n, on in features.items() if on))


@functools.cache
def last_level_cache_bytes() -> int:
    """The largest cache that a core reaches; 32 MiB where the system does not say."""
    sizes = []
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with contextlib.suppress(OSError, ValueError, KeyError), open(path) as file:
            text = file.read().strip()
            sizes.append(int(text[:-1]) * {"K": 1024, "M": 1024**2}[text[-1]])
    return max(sizes, default=32 * 1024**2)


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Half of the code generator's time, and of no use here: the emitter's addresses are already base + index.
    llvm.set_option("sampan", "-disable-lsr")
    with contextlib.suppress(RuntimeError):  # where libm is part of libc, or has another name, the process has it already
        llvm.load_library_permanently("libm.so.6")


@functools.cache
def emitter_version() -> str:
    """A digest of everything that decides what is emitted: the emitter's sources, and LLVM's version."""
    digest = hashlib.sha256(llvmlite.__version__.encode() + repr(llvm.llvm_version_info).encode())
    folder = pathlib.Path(__file__).parent
    for path in sorted(p for pattern in _EMITTER_SOURCES for p in folder.glob(pattern)):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


class Compiler:
    """Compiles for one target and keeps what it compiled. Safe to call from several threads; LLVM runs in one at a time."""

    def __init__(self, target: Target, cache: DiskCache) -> None:
        self.target, self.cache = target, cache
        self._compiled: dict[str, CompiledKernel] = {}
        self._lock = new_lock()
        self._machine: llvm.TargetMachine | None = None
        self._linker: llvm.LLJIT | None = None
        self._libraries: list[llvm.ResourceTracker] = []

    def compile(self, kernel: Kernel) -> CompiledKernel:
        """The kernel's machine code: from memory, from the disk cache, or compiled now."""
        known = self._compiled.get(kernel.text)
        if known is not None:
            return known
        with self._lock:
            known = self._compiled.get(kernel.text)
            if known is None:
                known = self._compiled[kernel.text] = self._load_or_compile(kernel)
            return known

    def key(self, kernel: Kernel) -> bytes:
        """What names the kernel's code for this target in the disk cache."""
        parts = (kernel.text, self.target.triple, self.target.cpu, self.target.feature_text, emitter_version())
        return hashlib.sha256("\0".join(parts).encode()).digest()

    def _load_or_compile(self, kernel: Kernel) -> CompiledKernel:
        key = self.key(kernel)
        entry = self.cache.read(key)
        if entry is None:
            entry = self._build(kernel, _symbol(key))
            self.cache.write(key, entry)
        return CompiledKernel(self._link(entry.code, _symbol(key)), entry.scratch_rows, entry.cost_ns, key.hex())

    def _build(self, kernel: Kernel, symbol: str) -> Entry:
        text, scratch_rows, cost = llvm_text(kernel, self.target, symbol)
        if flags.dumps("loops"):
            print(kernel.text, file=sys.stderr)
        if flags.dumps("llvm"):
            print(text, file=sys.stderr)
        module = _parse(text, kernel)
        return Entry(self._target_machine().emit_object(module), scratch_rows, cost)

    def assembly(self, kernel: Kernel) -> str:
        """The kernel's machine code as text, for reading."""
        with self._lock:
            module = _parse(llvm_text(kernel, self.target, "kernel")[0], kernel)
            return self._target_machine().emit_assembly(module)

    def _target_machine(self) -> llvm.TargetMachine:
        if self._machine is None:
            self._machine = self._make_machine()
        return self._machine

    def _make_machine(self) -> llvm.TargetMachine:
        _initialize()
        # Small code reaches its constants relative to the instruction; the linker puts all sections of an object in one block.
        return llvm.Target.from_triple(self.target.triple).create_target_machine(
            cpu=self.target.cpu, features=self.target.feature_text, opt=1, reloc="pic", codemodel="small", jit=True
        )

    def _link(self, code: bytes, symbol: str) -> int:
        if self._linker is None:
            self._linker = llvm.create_lljit_compiler(self._make_machine(), use_jit_link=True)
        library = (
            llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol).link(self._linker, symbol)
        )
        self._libraries.append(library)  # dropping it would unload the code
        return library[symbol]


def llvm_text(kernel: Kernel, target: Target, symbol: str = "kernel") -> tuple[str, int, float]:
    """The kernel's LLVM module, the scratch rows it needs and its cost in ns for one lane element."""
    writer = Writer(target.features)
    body, plan = emit_kernel(kernel, symbol, writer, target.vector_bits)
    text = "\n".join([f'target triple = "{target.triple}"', body, *writer.helpers.values(), *sorted(writer.declarations)])
    return text, plan.scratch_rows, plan.cost * _INSTRUCTION_NS / plan.lanes


def _symbol(key: bytes) -> str:
    return "kernel_" + key.hex()[:40]


def _parse(text: str, kernel: Kernel) -> llvm.ModuleRef:
    try:
        return llvm.parse_assembly(text, llvm.create_context())
    except RuntimeError as error:
        raise KernelError(
            f"LLVM refuses the code emitted for this kernel ({error}); this is a defect of sampan.codegen.\n{kernel.text}"
        ) from error


_WITHOUT_BY_MAX_ISA = {"": (), "sse4": ("avx",), "avx2": ("avx512f",), "avx512": ()}
_compilers: dict[tuple[Target, str | None, int], Compiler] = {}


def compiler_for(without: Sequence[str] = (), directory: str | None = None) -> Compiler:
    """The process's compiler for this machine less some instruction sets; its disk cache is `directory`, or where flags say."""
    max_isa = str(flags.MAX_ISA.value)
    if max_isa not in _WITHOUT_BY_MAX_ISA:
        raise KernelError(
            f"FLAGS_max_isa is {max_isa!r}; it must be one of {', '.join(filter(None, _WITHOUT_BY_MAX_ISA))}, or empty."
        )
    target = host_target((*_WITHOUT_BY_MAX_ISA[max_isa], *without))
    size_bytes = int(flags.KERNEL_CACHE_MB.value) * 1024 * 1024
    place = (target, directory or (flags.kernel_cache_directory() if size_bytes else None), size_bytes)
    if place not in _compilers:
        _compilers[place] = Compiler(target, DiskCache(place[1], size_bytes))
    return _compilers[place]


def compile(kernel: Kernel, without: Sequence[str] = ()) -> CompiledKernel:
    """The kernel's machine code for this machine; `without` names instruction sets not to use, such as ('avx2',)."""
    return compiler_for(without).compile(kernel)


def compile_many(kernels: Sequence[Kernel], without: Sequence[str] = ()) -> list[CompiledKernel]:
    """compile() of each kernel, in order."""
    compiler = compiler_for(without)
    return [compiler.compile(kernel) for kernel in kernels]
