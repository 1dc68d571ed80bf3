"""Which records of a leak report are ours."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "find_leaks.py"

REPORT = """
==7==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 64 byte(s) in 1 object(s) allocated from:
    #0 0x7f in malloc (/usr/lib/libasan.so.8+0xb)
    #1 0x7f in PyObject_Malloc Objects/obmalloc.c:7
    #2 0x7f in sampan::wrap(sampan::Ref<sampan::Tensor>) (/tree/sampan/_rt.cpython-311-x86_64-linux-gnu.so+0x1)

Direct leak of 48 byte(s) in 2 object(s) allocated from:
    #0 0x7f in operator new(unsigned long) (/usr/lib/libasan.so.8+0xb)
    #1 0x7f in sampan::meta_of(sampan::Tensor&) csrc/eager/node.cpp:9 (/tree/sampan/_rt.cpython-311-x86_64-linux-gnu.so+0x1)

Indirect leak of 96 byte(s) in 1 object(s) allocated from:
    #0 0x7f in operator new(unsigned long) (/usr/lib/libasan.so.8+0xb)
    #1 0x7f in sampan::held_by_a_lost_module() (/tree/sampan/_rt.cpython-311-x86_64-linux-gnu.so+0x2)

SUMMARY: AddressSanitizer: 208 byte(s) leaked in 4 allocation(s).
"""

# The same where the sanitizer's sources and the module's lines are known.
SYMBOLIZED = """
Direct leak of 1376 byte(s) in 43 object(s) allocated from:
    #0 0x7f in operator new(unsigned long) ../../../../src/libsanitizer/asan/asan_new_delete.cpp:95
    #1 0x7f in LLVMPY_LLJIT_Link (/site-packages/llvmlite/binding/libllvmlite.so+0x4)

Direct leak of 928 byte(s) in 29 object(s) allocated from:
    #0 0x7f in __interceptor_malloc ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:69
    #1 0x7f in gc_alloc Modules/gcmodule.c:2283

Direct leak of 40 byte(s) in 1 object(s) allocated from:
    #0 0x7f in __interceptor_malloc ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:69
    #1 0x7f in sampan::allocate_lost() /tree/csrc/base/allocator.cpp:12
"""


@pytest.fixture
def script():
    if not SCRIPT.exists():
        pytest.skip("the repository's tools are not beside the tests")
    spec = importlib.util.spec_from_file_location("find_leaks", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_block_is_ours_when_the_module_called_the_allocator(script):
    (record,) = script.our_leaks(REPORT)
    assert "meta_of" in record


def test_frames_named_after_the_sanitizers_sources_are_the_allocators(script):
    (record,) = script.our_leaks(SYMBOLIZED)
    assert "allocate_lost" in record


def test_a_leak_is_a_failure_and_none_is_success(script, tmp_path, capsys):
    assert script.main(str(tmp_path)) == 0
    (tmp_path / "report.7").write_text(REPORT)
    assert script.main(str(tmp_path)) == 1
    assert "1 leaks of memory" in capsys.readouterr().out
