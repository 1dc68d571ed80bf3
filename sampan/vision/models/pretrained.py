"""What every constructor of a network says about pretrained weights."""

from __future__ import annotations

from ...base.errors import UnsupportedError, message


def refuse_pretrained(name: str, pretrained: bool) -> None:
    """Raises UnsupportedError when pretrained weights are asked for: nothing is downloaded."""
    if pretrained:
        raise UnsupportedError(
            message(
                f"{name}(): pretrained=True",
                "sampan downloads no weights",
                f"get Paddle's {name}.pdparams, then model.set_state_dict(paddle.load(path))",
            )
        )
