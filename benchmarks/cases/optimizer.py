"""One step of Adam over a thousand small tensors, where the cost of each call counts, and over few large ones, where memory's speed does."""

from __future__ import annotations

from .case import Body, Case, random_array


def _paddle(count: int, shape: tuple[int, ...]) -> Body:
    def body(p):
        parameters = []
        for k in range(count):
            parameter = p.create_parameter(list(shape), "float32")
            parameter.set_value(p.to_tensor(random_array(*shape, seed=k)))
            parameters.append(parameter)
        sum((q * q).sum() for q in parameters).backward()
        optimizer = p.optimizer.Adam(learning_rate=1e-3, parameters=parameters)

        def step():
            optimizer.step()
            return parameters[-1]

        return step

    return body


def _torch(count: int, shape: tuple[int, ...], **options: bool) -> Body:
    def body(t):
        parameters = [t.from_numpy(random_array(*shape, seed=k)).requires_grad_() for k in range(count)]
        sum((q * q).sum() for q in parameters).backward()
        optimizer = t.optim.Adam(parameters, lr=1e-3, **options)

        def step():
            optimizer.step()
            return parameters[-1]

        return step

    return body


_SMALL, _LARGE = (1000, (16, 24)), (4, (1024, 1024))
CASES = (
    Case("Adam, 1,000 tensors of 16 x 24, peer's default", "optimizer", _paddle(*_SMALL), _torch(*_SMALL), target=3.0),
    Case("Adam, 1,000 tensors of 16 x 24, peer's fused form", "optimizer", _paddle(*_SMALL), _torch(*_SMALL, fused=True)),
    Case("Adam, 4 tensors of 1024 x 1024, peer's default", "optimizer", _paddle(*_LARGE), _torch(*_LARGE)),
    Case("Adam, 4 tensors of 1024 x 1024, peer's fused form", "optimizer", _paddle(*_LARGE), _torch(*_LARGE, fused=True)),
)
