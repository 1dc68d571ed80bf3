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

    def is_xpu_place(self) -> bool:
        """Whether this is a Kunlun XPU."""
        return self.kind == "xpu"

    def is_ipu_place(self) -> bool:
        """Whether this is a Graphcore IPU."""
        return self.kind == "ipu"

    def is_custom_place(self) -> bool:
        """Whether this is a device of a plug-in."""
        return False

    def is_cuda_pinned_place(self) -> bool:
        """Whether this is pinned host memory for CUDA."""
        return False

    def is_xpu_pinned_place(self) -> bool:
        """Whether this is pinned host memory for XPUs."""
        return False

    def get_device_id(self) -> int:
        """The device's number."""
        return self.index

    gpu_device_id = xpu_device_id = ipu_device_id = custom_device_id = get_device_id

    def custom_device_type(self) -> str:
        """The kind of a plug-in's device; empty for other devices."""
        return ""

    def set_place(self, place: Place) -> None:
        """Become the other place, which must be a place of this build."""
        if not isinstance(place, Place):
            raise ArgumentTypeError(message(f"set_place(): place is a {type(place).__name__}", "it must be a Place"))
        self.kind, self.index = place.kind, place.index

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


def missing_device(kind: str) -> UnsupportedError:
    """The error for a device that this build does not have."""
    return UnsupportedError(
        message(f"this build of sampan has no {kind} support", "it computes on the CPU", "use CPUPlace() or set_device('cpu')")
    )


class CUDAPlace(Place):
    """A CUDA device; this build has none."""

    def __init__(self, index: int = 0) -> None:
        raise missing_device("CUDA")


class CUDAPinnedPlace(Place):
    """Pinned host memory for CUDA; this build has none."""

    def __init__(self) -> None:
        raise missing_device("CUDA")


class XPUPinnedPlace(Place):
    """Pinned host memory for Kunlun XPUs; this build has none."""

    def __init__(self) -> None:
        raise missing_device("XPU")


class IPUPlace(Place):
    """A Graphcore IPU; this build has none."""

    def __init__(self) -> None:
        raise missing_device("IPU")


class XPUPlace(Place):
    """A Kunlun XPU device; this build has none."""

    def __init__(self, index: int = 0) -> None:
        raise missing_device("XPU")


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
            raise missing_device(kind)
        raise ArgumentError(message(f"{name}(): {place!r} is no device", "", "use 'cpu'"))
    raise ArgumentTypeError(message(f"{name}(): place is a {type(place).__name__}", "it must be a Place or a device string"))


class Device(str):
    """A device's name, such as ``cpu``, with its ``type`` and ``index``."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The kind of device."""
        return self.split(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The device's number; None where there is one only."""
        return int(self.split(":")[1]) if ":" in self else None
