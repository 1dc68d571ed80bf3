"""Reads reports of LeakSanitizer and fails on memory that csrc/ itself allocated. Usage: find_leaks.py FOLDER

CPython and other libraries keep memory on purpose when a process ends. A block counts as ours when nothing points to it any more (what hangs from a lost
object of CPython's is that object's) and the first frame below the allocator lies in the extension module.
"""

import pathlib
import re
import sys

#: With its sources at hand, the sanitizer's own frames are named after them.
_ALLOCATORS = re.compile(
    r"libasan|libsanitizer|libstdc\+\+|in (__interceptor_)?(operator new|malloc|calloc|realloc|aligned_alloc|posix_memalign)\b"
)
_OURS = re.compile(r"/_rt\.|\bcsrc/")


def our_leaks(report: str) -> list[str]:
    """The records of a report that describe memory which the extension module allocated."""
    found = []
    for record in re.split(r"\n\s*\n", report):
        if "Direct leak of " not in record:
            continue
        frames = [line for line in record.splitlines() if re.match(r"\s+#\d+ ", line)]
        callers = [line for line in frames if not _ALLOCATORS.search(line)]
        if callers and _OURS.search(callers[0]):
            found.append(record)
    return found


def main(folder: str) -> int:
    """The exit status: 1 when there is a leak of ours, or no report's folder."""
    reports = [path.read_text() for path in sorted(pathlib.Path(folder).iterdir())]
    leaks = [record for report in reports for record in our_leaks(report)]
    print(*leaks, sep="\n\n")
    print(f"{len(leaks)} leaks of memory that csrc/ allocated, in {len(reports)} reports")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
