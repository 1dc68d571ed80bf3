"""Config: which model a predictor runs, and how."""

from __future__ import annotations

import os
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, message
from .kinds import PrecisionType

#: Switches that change nothing here: what they turn on is always on, or belongs to another engine.
_WITHOUT_EFFECT = """switch_ir_optim switch_use_feed_fetch_ops switch_specify_input_names enable_memory_optim enable_new_executor enable_new_ir enable_mkldnn
disable_mkldnn enable_onednn disable_onednn set_mkldnn_cache_capacity set_onednn_cache_capacity set_mkldnn_op set_onednn_op disable_gpu disable_glog_info
disable_onnxruntime disable_mkldnn_fc_passes disable_onednn_fc_passes enable_cinn switch_ir_debug set_optimization_level set_optim_cache_dir
enable_save_optim_model enable_profile enable_ort_optimization delete_pass""".split()
#: Engines and devices that this build does not have.
_MISSING = {
    "enable_use_gpu": "a GPU", "enable_xpu": "an XPU", "enable_ipu": "an IPU", "enable_custom_device": "custom devices", "enable_onnxruntime": "ONNX Runtime",
    "enable_tensorrt_engine": "TensorRT", "enable_openvino_engine": "OpenVINO", "enable_onednn_int8": "8-bit inference", "enable_mkldnn_int8": "8-bit inference",
    "enable_low_precision_io": "16-bit inputs of a float32 model",
}  # fmt: skip


class Config:
    """Which model a predictor runs, and how.

    Args:
        prog_file: the model's file (``.pdmodel`` or ``.json``), or the folder that holds it as ``model`` or ``inference``.
        params_file: the file of its parameters (``.pdiparams``).

    Example:
        >>> import sampan as paddle
        >>> config = paddle.inference.Config("net.pdmodel", "net.pdiparams")
        >>> config.set_cpu_math_library_num_threads(1)
        >>> config.prog_file()
        'net.pdmodel'
    """

    Precision = PrecisionType

    def __init__(self, prog_file: str | None = None, params_file: str | None = None) -> None:
        self._program: str | bytes | None = None
        self._parameters: str | bytes | None = None
        self._threads = 0
        if prog_file is not None:
            self.set_model(prog_file, params_file)

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Name the model's files, or the folder that holds them."""
        for what, path in (("prog_file", prog_file), ("params_file", params_file)):
            if path is not None and not isinstance(path, (str, os.PathLike)):
                raise ArgumentTypeError(message(f"Config(): {what} is a {type(path).__name__}", "it must be a path"))
        if params_file is None and os.path.isdir(prog_file):
            found = [
                os.path.join(prog_file, f"{stem}{suffix}")
                for stem in ("inference", "model", "__model__")
                for suffix in (".json", ".pdmodel")
            ]
            chosen = next((path for path in found if os.path.exists(path)), None)
            if chosen is None:
                raise ArgumentError(
                    message(
                        f"Config(): the folder {prog_file!r} holds no model",
                        "it was looked for as inference and model",
                        "pass the files",
                    )
                )
            prog_file, params_file = chosen, f"{os.path.splitext(chosen)[0]}.pdiparams"
        self._program, self._parameters = os.fspath(prog_file), None if params_file is None else os.fspath(params_file)

    def set_prog_file(self, path: str) -> None:
        """Name the model's file."""
        self._program = os.fspath(path)

    def set_params_file(self, path: str) -> None:
        """Name the file of its parameters."""
        self._parameters = os.fspath(path)

    def set_model_buffer(self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes, params_buffer_size: int) -> None:
        """Give the model and its parameters as bytes."""
        self._program, self._parameters = bytes(prog_buffer[:prog_buffer_size]), bytes(params_buffer[:params_buffer_size])

    def model_from_memory(self) -> bool:
        """Whether the model was given as bytes."""
        return isinstance(self._program, bytes)

    def prog_file(self) -> str:
        """The model's file."""
        return self._program if isinstance(self._program, str) else ""

    def params_file(self) -> str:
        """The file of its parameters."""
        return self._parameters if isinstance(self._parameters, str) else ""

    def model_dir(self) -> str:
        """The folder of the model's file."""
        return os.path.dirname(self.prog_file())

    def set_cpu_math_library_num_threads(self, num: int) -> None:
        """Run on this many threads; the number is the whole process's."""
        if isinstance(num, bool) or not isinstance(num, int) or num < 1:
            raise ArgumentError(message(f"set_cpu_math_library_num_threads(): num={num!r}", "it must be 1 or more"))
        self._threads = num

    def cpu_math_library_num_threads(self) -> int:
        """The number of threads that was asked for; 0: the process's own."""
        return self._threads

    def use_gpu(self) -> bool:
        """Whether it runs on a GPU: no."""
        return False

    def ir_optim(self) -> bool:
        """Whether Programs are optimised: always."""
        return True

    def summary(self) -> str:
        """The settings as text."""
        shown = "bytes" if self.model_from_memory() else self.prog_file()
        return f"model: {shown}\nparameters: {self.params_file() or '-'}\nthreads: {self._threads or 'of the process'}\n"

    def __getattr__(self, name: str) -> Any:
        if name in _WITHOUT_EFFECT:
            return lambda *args, **kwargs: None
        if name in _MISSING:

            def refuse(*args: Any, **kwargs: Any) -> None:
                raise UnsupportedError(
                    message(f"Config.{name}(): this build has no {_MISSING[name].removeprefix('a ').removeprefix('an ')}")
                )

            return refuse
        raise AttributeError(f"'Config' object has no attribute '{name}'")
