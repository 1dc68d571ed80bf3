"""Summary tables: rows, columns and counts as PaddlePaddle 3.3.1 printed them for the same networks."""

import re

import pytest

import sampan as paddle
from sampan import nn
from sampan.vision.models import mobilenet_v2, resnet18


class Sequences(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 32, 2)
        self.out = nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0][:, -1])


class Two(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(5, 4)

    def forward(self, x, y):
        return self.a(x) + self.b(y)


def lenet():
    return nn.Sequential(
        nn.Conv2D(1, 6, 3, 1, 1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Flatten(),
        nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10),
    )  # fmt: skip


def table(capsys, make, *args, **kwargs):
    """The rows without the layers' numbers, and the text."""
    result = paddle.summary(make(), *args, **kwargs)
    text = capsys.readouterr().out
    body = text.split("=\n")[1].splitlines()[:-1] if "=\n" in text else []
    return [re.sub(r"-\d+", "", " ".join(line.split())) for line in body], text, result


def test_a_recurrent_layer_is_one_row_with_its_states(capsys):
    rows, text, result = table(capsys, Sequences, (4, 7), dtypes="int64")
    assert rows == [
        "Embedding [[4, 7]] [4, 7, 16] 800",
        "LSTM [[4, 7, 16]] [[4, 7, 32], [[2, 4, 32], [2, 4, 32]]] 14,848",
        "Linear [[4, 32]] [4, 4] 132",
    ]
    assert result == {"total_params": 15780, "trainable_params": 15780}
    assert "Forward/backward pass size (MB): 0.01\nParams size (MB): 0.06\nEstimated Total Size (MB): 0.07" in text
    assert rows == table(capsys, Sequences, input=paddle.ones([4, 7], "int64"))[0]


def test_absent_masks_are_shown_where_they_are_passed_by_position(capsys):
    rows, _, result = table(capsys, lambda: nn.Transformer(32, 4, 1, 1, 64), [(2, 7, 32), (2, 5, 32)])
    assert [row for row in rows if not row.startswith(("Linear", "Dropout", "LayerNorm"))] == [
        "MultiHeadAttention [[2, 7, 32], [2, 7, 32], [2, 7, 32], None] [2, 7, 32] 0",
        "TransformerEncoderLayer [[2, 7, 32]] [2, 7, 32] 0",
        "TransformerEncoder [[2, 7, 32]] [2, 7, 32] 0",
        "MultiHeadAttention [[2, 5, 32], [2, 5, 32], [2, 5, 32], None, None] [2, 5, 32] 0",
        "MultiHeadAttention [[2, 5, 32], [2, 7, 32], [2, 7, 32], None, None] [2, 5, 32] 0",
        "TransformerDecoderLayer [[2, 5, 32], [2, 7, 32]] [2, 5, 32] 0",
        "TransformerDecoder [[2, 5, 32], [2, 7, 32]] [2, 5, 32] 0",
    ]
    assert len(rows) == 37
    assert result["total_params"] == 21504


@pytest.mark.parametrize(
    ("make", "size", "total", "trainable", "sizes"),
    [
        (lenet, (1, 1, 28, 28), 61610, 61610, ("0.00", "0.11", "0.24", "0.35")),
        (resnet18, (1, 3, 224, 224), 11699112, 11689512, ("0.57", "57.05", "44.63", "102.25")),
        (mobilenet_v2, (1, 3, 224, 224), 3538984, 3504872, ("0.57", "152.88", "13.50", "166.95")),
    ],
)
def test_counts_and_sizes_of_known_networks(capsys, make, size, total, trainable, sizes):
    _, text, result = table(capsys, make, size)
    assert result == {"total_params": total, "trainable_params": trainable}
    assert tuple(re.findall(r"\(MB\): (\S+)", text)) == sizes
    assert f"Non-trainable params: {total - trainable:,}" in text


def test_shortcuts_of_residual_nets_come_after_their_blocks(capsys):
    rows, _, _ = table(capsys, resnet18, (1, 3, 224, 224))
    first = rows.index("Conv2D [[1, 64, 56, 56]] [1, 128, 28, 28] 8,192")
    assert rows[first - 1 : first + 2] == [
        "BatchNorm2D [[1, 128, 28, 28]] [1, 128, 28, 28] 512",
        "Conv2D [[1, 64, 56, 56]] [1, 128, 28, 28] 8,192",
        "BatchNorm2D [[1, 128, 28, 28]] [1, 128, 28, 28] 512",
    ]


def test_several_inputs(capsys):
    rows, _, result = table(capsys, Two, [(2, 3), (2, 5)])
    assert rows == ["Linear [[2, 3]] [2, 4] 16", "Linear [[2, 5]] [2, 4] 24"]
    assert result["total_params"] == 40


class Reused(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.relu = nn.Linear(3, 4), nn.Linear(4, 5), nn.ReLU()

    def forward(self, x):
        return self.relu(self.b(self.relu(self.a(x))))


def test_a_layer_that_is_called_again_stays_in_its_place_with_the_shapes_of_the_last_call(capsys):
    rows, _, result = table(capsys, Reused, (2, 3))
    assert rows == ["Linear [[2, 3]] [2, 4] 16", "ReLU [[2, 5]] [2, 5] 0", "Linear [[2, 4]] [2, 5] 25"]
    assert result == {"total_params": 41, "trainable_params": 41}
