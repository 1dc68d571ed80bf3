"""Run by the real PaddlePaddle: saves models of many kinds, in the format that FLAGS_enable_pir_api chooses, with inputs and outputs.

Usage: make_models.py FOLDER. Each model NAME becomes NAME.pdmodel or NAME.json, NAME.pdiparams and NAME.npz (in0 ..., out0 ...).
"""

import json
import os
import sys

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.static import InputSpec
from paddle.vision import models as vision

FOLDER = sys.argv[1]
IS_PIR = os.environ.get("FLAGS_enable_pir_api") == "1"
done, failed = [], {}


def append(kind, inputs, attributes, dtypes=None):
    """Append one ProgramDesc operation by hand: PaddlePaddle 3 has functions that no longer do it for the older format."""
    block = paddle.static.default_main_program().current_block()
    first = next(v[0] if isinstance(v, list) else v for v in inputs.values())
    slots = {"rnn": ("Out", "State", "Reserve", "DropoutState")}.get(kind, ("Out",))
    made = {}
    for slot in slots:
        count = len(inputs["PreState"]) if slot == "State" else 1
        dtype = "bool" if kind in ("logical_not", "less_than", "greater_than") else first.dtype
        made[slot] = [block.create_var(name=paddle.base.unique_name.generate(kind), dtype=dtype) for _ in range(count)]
    block.append_op(type=kind, inputs=inputs, outputs=made, attrs=attributes)
    return made["Out"][0] if kind != "rnn" else (made["Out"][0], made["State"])


def legacy(kind, *slots, **names):
    """What stands in for one of those functions: (tensors by slot, attributes by their positions' names)."""

    def call(*args, **kwargs):
        given = dict(zip([*slots, *names], args), **kwargs)
        if paddle.in_dynamic_mode():
            return original(*args, **kwargs)
        inputs = {slot: given.pop(slot, given.pop(slot.lower(), None)) for slot in slots}
        attributes = {names[k]: v for k, v in given.items() if names.get(k) and v is not None}
        if kind == "reduce_sum":
            axes = given.get("axis")
            axes = [] if axes is None else axes if isinstance(axes, (list, tuple)) else [axes]
            attributes = {"dim": list(axes) or [0], "keep_dim": bool(given.get("keepdim")), "reduce_all": not axes}
        return append(kind, inputs, attributes)

    original = None

    def install(name):
        nonlocal original
        original = getattr(paddle._C_ops, name)
        setattr(paddle._C_ops, name, call)

    return install


if not IS_PIR:
    for function in ("tanh", "sigmoid", "logical_not", "exp", "sqrt", "abs"):
        legacy(function, "X")(function)
    legacy("gelu", "X", approximate="approximate")("gelu")
    legacy("matmul_v2", "X", "Y", transpose_x="trans_x", transpose_y="trans_y")("matmul")
    legacy("elementwise_mul", "X", "Y")("multiply")
    legacy("greater_than", "X", "Y")("greater_than")
    legacy("less_than", "X", "Y")("less_than")
    legacy("reduce_sum", "X", axis="axis", dtype="dtype", keepdim="keepdim")("sum")


class LeNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5), nn.ReLU(), nn.AvgPool2D(2, 2)
        )
        self.head = nn.Sequential(nn.Linear(400, 120), nn.Tanh(), nn.Dropout(0.3), nn.Linear(120, 10))

    def forward(self, x):
        return F.softmax(self.head(paddle.flatten(self.features(x), 1)))


class Attended(nn.Layer):
    """A layer of a transformer by hand, for the older format."""

    def __init__(self):
        super().__init__()
        self.parts = nn.LayerList([nn.Linear(16, 16) for _ in range(4)])
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x, mask):
        q, k, v = (paddle.transpose(paddle.reshape(part(x), [0, 0, 4, 4]), [0, 2, 1, 3]) for part in self.parts[:3])
        weights = F.softmax(paddle.matmul(q * 0.5, k, transpose_y=True) + mask)
        y = paddle.reshape(paddle.transpose(paddle.matmul(weights, v), [0, 2, 1, 3]), [0, 0, 16])
        x = self.norm(x + self.parts[3](y))
        return x + self.down(F.gelu(self.up(x)))


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16, padding_idx=0), nn.Embedding(32, 16)
        self.norm = nn.LayerNorm(16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2) if IS_PIR else Attended()
        self.pooler = nn.Linear(16, 16)

    def forward(self, ids):
        place = paddle.arange(12, dtype="int64")
        hidden = self.norm(self.words(ids) + self.places(place))
        mask = ((ids == 0).astype("float32") * -1e4).unsqueeze([1, 2])
        hidden = self.encoder(hidden, mask)
        return hidden, paddle.tanh(self.pooler(hidden[:, 0]))


class Recurrent(nn.Layer):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = getattr(nn, kind)(5, 7, **options)
        self.out = nn.Linear(14 if options.get("direction") == "bidirect" else 7, 3)

    def forward(self, x):
        if not IS_PIR and not paddle.in_dynamic_mode():
            y, state = self.by_hand(x)
        else:
            y, state = self.rnn(x)
        return self.out(y), state[0] if isinstance(state, (tuple, list)) else state

    def by_hand(self, x):
        rnn = self.rnn
        kind, directions = type(rnn).__name__, rnn.num_directions
        parts = [f"_l{k}{s}" for k in range(rnn.num_layers) for s in ("", "_reverse")[:directions]]
        weights = [getattr(rnn, f"weight_{w}{part}") for part in parts for w in ("ih", "hh")]
        biases = [getattr(rnn, f"bias_{w}{part}") for part in parts for w in ("ih", "hh")]
        steps = paddle.transpose(x, [1, 0, 2])
        like = {"shape": [len(parts), -1, 7], "input_dim_idx": 1, "output_dim_idx": 1, "dtype": 5, "value": 0.0}
        start = append("fill_constant_batch_size_like", {"Input": steps}, like)
        attributes = {
            "mode": {"SimpleRNN": "RNN_TANH"}.get(kind, kind),
            "is_bidirec": directions == 2,
            "input_size": 5,
            "hidden_size": 7,
            "num_layers": rnn.num_layers,
            "is_test": True,
            "dropout_prob": 0.0,
            "seed": 0,
        }
        inputs = {"Input": steps, "PreState": [start] * (2 if kind == "LSTM" else 1), "WeightList": weights + biases}
        y, state = append("rnn", inputs, attributes)
        return paddle.transpose(y, [1, 0, 2]), state


class DeepFM(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(100, 1), nn.Embedding(100, 8)
        self.deep = nn.Sequential(nn.Linear(48 + 3, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids, dense):
        vectors = self.second(ids)
        total = paddle.sum(vectors, 1)
        pairs = 0.5 * paddle.sum(total * total - paddle.sum(vectors * vectors, 1), 1, keepdim=True)
        deep = self.deep(paddle.concat([paddle.reshape(vectors, [-1, 48]), dense], 1))
        return F.sigmoid(paddle.sum(self.first(ids), [1, 2]).unsqueeze(-1) + pairs + deep)


class Branches(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if paddle.mean(x) > 0:
            y = self.a(x)
        else:
            y = self.b(x) * 2.0
        return y + 1.0


class Loops(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x, n):
        i = paddle.zeros([1], "int64")
        while i < n:
            if paddle.sum(x) > 1.0:
                x = self.a(x)
            else:
                x = x + 0.25
            i = i + 1
        return x, i


class Mixed(nn.Layer):
    """Shapes taken from tensors, slices, splits, pads, other normalisations."""

    def __init__(self):
        super().__init__()
        self.group, self.instance, self.prelu = nn.GroupNorm(2, 4), nn.InstanceNorm2D(4), nn.PReLU(4)
        self.up = nn.Conv2DTranspose(4, 2, 3, stride=2, padding=1, output_padding=1)
        self.spectral = nn.Conv2D(4, 4, 3, padding="SAME", groups=2, dilation=2)

    def forward(self, x):
        y = self.prelu(self.instance(self.group(x)))
        y = self.up(self.spectral(y))
        size = paddle.shape(x)
        y = F.interpolate(y, size=[7, 9], mode="bilinear") + F.adaptive_avg_pool2d(x, 1)[:, :2]
        left, right = paddle.split(F.pad(y, [1, 1, 0, 2], mode="reflect"), 2, axis=1)
        z = paddle.reshape(left, [size[0], -1]) * paddle.reshape(right, [size[0], -1])
        best, places = paddle.topk(z, 3, axis=-1)
        return F.log_softmax(best, axis=-1), places, paddle.transpose(y, [0, 2, 3, 1])[..., ::2]


def save(name, layer, specs, arrays):
    try:
        paddle.seed(1)
        layer = layer()
        layer.eval()
        for k, parameter in enumerate([*layer.parameters(), *layer.buffers()]):
            if parameter.dtype == paddle.float32 and "_mean" not in parameter.name:
                values = np.random.default_rng(k).uniform(-0.3, 0.3, parameter.shape).astype("float32")
                parameter.set_value(np.abs(values) + 0.5 if ".w_2" in parameter.name or parameter.stop_gradient else values)
        outputs = layer(*[paddle.to_tensor(a) for a in arrays])
        outputs = [o.numpy() for o in (outputs if isinstance(outputs, tuple) else (outputs,))]
        for part in layer.sublayers() if not IS_PIR else ():
            part._buffers.pop("_dropout_state", None)  # never given a value, which the older format cannot save
        paddle.jit.save(
            layer,
            f"{FOLDER}/{name}",
            input_spec=[InputSpec(s, str(a.dtype), f"in{k}") for k, (s, a) in enumerate(zip(specs, arrays))],
        )
        np.savez(
            f"{FOLDER}/{name}.npz", **{f"in{k}": a for k, a in enumerate(arrays)}, **{f"out{k}": a for k, a in enumerate(outputs)}
        )
        done.append(name)
    except Exception as error:  # what the real one cannot save is reported, not compared
        failed[name] = f"{type(error).__name__}: {str(error)[-300:]}"


def real(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype("float32")


save("mlp", lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)), [[None, 8]], [real(4, 8)])
save("lenet", LeNet, [[None, 1, 28, 28]], [real(2, 1, 28, 28)])
save("resnet18", lambda: vision.resnet18(num_classes=10), [[None, 3, 64, 64]], [real(2, 3, 64, 64)])
save("mobilenet_v1", lambda: vision.mobilenet_v1(scale=0.25, num_classes=10), [[None, 3, 64, 64]], [real(1, 3, 64, 64)])
save("mobilenet_v2", lambda: vision.mobilenet_v2(scale=0.25, num_classes=10), [[None, 3, 64, 64]], [real(1, 3, 64, 64)])
save("encoder", Encoder, [[None, 12]], [np.array([[3, 4, 5, 6, 7, 8, 9, 1, 2, 0, 0, 0], [9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 1, 2]])])
save("lstm", lambda: Recurrent("LSTM", num_layers=2), [[None, 6, 5]], [real(3, 6, 5)])
save("lstm_both", lambda: Recurrent("LSTM", direction="bidirect"), [[None, 6, 5]], [real(3, 6, 5)])
save("gru", lambda: Recurrent("GRU"), [[None, 6, 5]], [real(3, 6, 5)])
save("simple_rnn", lambda: Recurrent("SimpleRNN", num_layers=2), [[None, 6, 5]], [real(3, 6, 5)])
save("deepfm", DeepFM, [[None, 6], [None, 3]], [np.random.default_rng(0).integers(0, 100, (4, 6)), real(4, 3)])
save("branch", Branches, [[None, 4]], [np.abs(real(2, 4))])
save("branch_other", Branches, [[None, 4]], [-np.abs(real(2, 4))])
save("loop", Loops, [[None, 4], [1]], [real(2, 4), np.array([4])])
save("mixed", Mixed, [[None, 4, 5, 6]], [real(2, 4, 5, 6)])
print(json.dumps({"done": done, "failed": failed}))
