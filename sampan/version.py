"""The version; the package's metadata is read from here."""

full_version = "0.1.0"
major, minor, patch = full_version.split(".")
rc = "0"
cuda_version = cudnn_version = nccl_version = xpu_version = "False"
hip_version = tensorrt_version = None
with_mkl = "OFF"
is_tagged = False
commit = ""


def cuda() -> str:
    """The CUDA version that sampan was built with: ``False``."""
    return cuda_version


def cudnn() -> str:
    """The cuDNN version that sampan was built with: ``False``."""
    return cudnn_version


def nccl() -> str:
    """The NCCL version that sampan was built with: ``0``, for none."""
    return "0"


def xpu() -> str:
    """The XPU version that sampan was built with: ``False``."""
    return xpu_version


def xpu_xre() -> str:
    """The XPU run-time version that sampan was built with: ``False``."""
    return xpu_version


def xpu_xccl() -> str:
    """The XPU communication library's version that sampan was built with: ``False``."""
    return xpu_version


def xpu_xhpc() -> str:
    """The XPU kernel library's version that sampan was built with: ``False``."""
    return xpu_version


def hip() -> None:
    """The HIP version that sampan was built with: None."""


def tensorrt() -> None:
    """The TensorRT version that sampan was built with: None."""


def cuda_archs() -> list[int]:
    """The CUDA architectures that sampan was built for: none."""
    return []


def show() -> None:
    """Print the versions of sampan and of what it was built with."""
    for name, value in (
        ("full_version", full_version), ("major", major), ("minor", minor), ("patch", patch), ("rc", rc), ("cuda", cuda()), ("cudnn", cudnn()),
        ("nccl", nccl()), ("xpu", xpu()),
    ):  # fmt: skip
        print(f"{name}: {value}")
