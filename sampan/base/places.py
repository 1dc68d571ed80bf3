"""Places: where a tensor lives. This build computes on the CPU."""

from __future__ import annotations

from .errors import ArgumentError, ArgumentTypeError, UnsupportedError, message


class Place:
    """A device."""

    def __init__(self, kind: str = "cpu", index: int = 0) -> None:
        self.kind = kind
        self.index = index

    def is_cpu_place(self) -> bool:
        """Whether this is the CPU."""
        return self.kind == "cpu"

    def is_gpu_place(self) -> bool:
        """Whether this is a GPU."""
        return self.kind == "gpu"

    def get_device_id(self) -> int:
        """The device's number."""
        return self.index

    def __repr__(self) -> str:
        return f"Place({self.kind})" if self.kind == "cpu" else f"Place({self.kind}:{self.index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self) -> int:
        return hash((self.kind, self.index))


class CPUPlace(Place):
    """The CPU."""

    def __init__(self) -> None:
        super().__init__("cpu")


def _missing(kind: str) -> UnsupportedError:
    return UnsupportedError(
        message(f"this build of sampan has no {kind} support", "it computes on the CPU", "use CPUPlace() or set_device('cpu')")
    )


class CUDAPlace(Place):
    """A CUDA device; this build has none."""

    def __init__(self, index: int = 0) -> None:
        raise _missing("CUDA")


class CUDAPinnedPlace(Place):
    """Pinned host memory for CUDA; this build has none."""

    def __init__(self) -> None:
        raise _missing("CUDA")


class XPUPlace(Place):
    """A Kunlun XPU device; this build has none."""

    def __init__(self, index: int = 0) -> None:
        raise _missing("XPU")


CPU = CPUPlace()


def parse_place(name: str, place: object) -> Place:
    """The Place of a Place, a device string such as ``cpu``, or None."""
    if place is None:
        return CPU
    if isinstance(place, Place):
        return place
    if isinstance(place, str):
        kind = place.split(":")[0].lower()
        if kind == "cpu":
            return CPU
        if kind in ("gpu", "cuda", "gpu_pinned", "xpu", "npu"):
            raise _missing(kind)
        raise ArgumentError(message(f"{name}(): {place!r} is no device", "", "use 'cpu'"))
    raise ArgumentTypeError(message(f"{name}(): place is a {type(place).__name__}", "it must be a Place or a device string"))
