"""Reads reports of LeakSanitizer and fails on memory that csrc/ itself allocated. Usage: find_leaks.py FOLDER

CPython and other libraries keep memory on purpose when a process ends. A block counts as ours when the first frame below the allocator lies in the
extension module.
"""

import pathlib
import re
import sys

_ALLOCATORS = re.compile(r"libasan|libstdc\+\+|in (operator new|malloc|calloc|realloc|aligned_alloc|posix_memalign)\b")


def our_leaks(report: str) -> list[str]:
    """The records of a report that describe memory which the extension module allocated."""
    found = []
    for record in re.split(r"\n\s*\n", report):
        if " leak of " not in record:
            continue
        frames = [line for line in record.splitlines() if re.match(r"\s+#\d+ ", line)]
        callers = [line for line in frames if not _ALLOCATORS.search(line)]
        if callers and "/_rt." in callers[0]:
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
