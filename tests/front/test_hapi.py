"""Model and its callbacks: loops, logs, checkpoints, early stopping, schedules, event files, progress, summary and flops."""

from __future__ import annotations

import io as text_io
import re
import struct

import numpy as np
import pytest

from sampan import callbacks, hapi, io, metric, utils
from sampan.framework.arrays import to_array
from sampan.hapi.event_file import EventFile, masked_crc
from sampan.hapi.progress import Progress, format_seconds, format_value
from sampan.nn.layer import Layer
from sampan.optimizer import SGD, lr
from sampan.tensor import OPS, Parameter, to_tensor


class Linear(Layer):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.weight = Parameter(to_tensor(np.full((width_in, width_out), 0.01, "float32")))
        self.bias = Parameter(to_tensor(np.zeros(width_out, "float32")))

    def forward(self, x):
        return OPS["linear"](x, self.weight, self.bias)


class ReLU(Layer):
    def forward(self, x):
        return OPS["relu"](x)


class Net(Layer):
    def __init__(self, width_out=1):
        super().__init__()
        self.first, self.act, self.second = Linear(4, 3), ReLU(), Linear(3, width_out)

    def forward(self, x):
        return self.second(self.act(self.first(x)))


class Line(io.Dataset):
    """y = the sum of x."""

    def __init__(self, length=10):
        self.x = np.random.default_rng(0).random((length, 4)).astype("float32")

    def __getitem__(self, index):
        return self.x[index], self.x[index].sum(keepdims=True)

    def __len__(self):
        return len(self.x)


def prepared(rate=0.1, metrics=None, net=None):
    model = hapi.Model(net or Net())
    model.prepare(SGD(rate, parameters=model.parameters()), OPS["mse_loss"], metrics)
    return model


class Recorder(callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda *args: self.calls.append((name, *args))
        return object.__getattribute__(self, name)


def test_fit_learns_and_evaluate_and_predict_agree():
    model, data = prepared(), Line(64)
    before = model.evaluate(data, batch_size=64, verbose=0)["loss"][0]
    model.fit(data, batch_size=8, epochs=20, verbose=0)
    after = model.evaluate(data, batch_size=64, verbose=0)
    assert list(after) == ["loss"]
    assert after["loss"][0] < before / 20
    (outputs,) = model.predict(data, batch_size=10, stack_outputs=True, verbose=0)
    np.testing.assert_allclose(((outputs[:, 0] - data.x.sum(1)) ** 2).mean(), after["loss"][0], rtol=1e-4)
    parts = model.predict(data, batch_size=10, verbose=0)
    assert [len(p) for p in parts[0]] == [10] * 6 + [4]


def test_callbacks_are_called_in_order_with_logs():
    recorder = Recorder()
    prepared().fit(Line(), Line(4), batch_size=4, epochs=2, verbose=0, callbacks=recorder)
    names = [call[0] for call in recorder.calls]
    batch = ["on_train_batch_begin", "on_train_batch_end"]
    tests = ["on_eval_begin", "on_eval_batch_begin", "on_eval_batch_end", "on_eval_end"]
    assert names == ["on_train_begin", *(["on_epoch_begin", *batch * 3, "on_epoch_end", *tests] * 2), "on_train_end"]
    logs = [call[2] for call in recorder.calls if call[0] == "on_train_batch_end"]
    assert [(entry["step"], entry["batch_size"]) for entry in logs[:3]] == [(0, 4), (1, 4), (2, 2)]
    assert recorder.params == {"batch_size": 4, "epochs": 2, "steps": 3, "verbose": 0, "metrics": ["loss"]}
    assert dict([call for call in recorder.calls if call[0] == "on_eval_begin"])["on_eval_begin"] == {
        "steps": 1,
        "metrics": ["loss"],
    }


def test_num_iters_counts_over_epochs_and_batches_of_any_iterable_are_taken():
    recorder = Recorder()
    batches = [[Line(4).x, np.ones((4, 1), "float32")]] * 3
    prepared().fit(batches, epochs=9, num_iters=4, verbose=0, callbacks=[recorder])
    assert [c[0] for c in recorder.calls].count("on_train_batch_end") == 4
    assert recorder.params["epochs"] == 2
    model = prepared()
    model.fit((batch for batch in batches), verbose=0)  # no length


def test_accumulated_gradients_equal_one_large_batch():
    x = Line(8).x
    large, small = prepared(), prepared()
    large.train_batch([x], [np.ones((8, 1), "float32")])
    small._loss = lambda *args: OPS["mse_loss"](*args) / 2.0
    halves = [[x[:4], np.ones((4, 1), "float32")], [x[4:], np.ones((4, 1), "float32")]]
    small.fit(halves, accumulate_grad_batches=2, verbose=0)
    for one, other in zip(large.parameters(), small.parameters(), strict=True):
        np.testing.assert_allclose(to_array(one), to_array(other), rtol=1e-5, atol=1e-7)


def test_metrics_and_batches_one_by_one():
    model = hapi.Model(Net(3))
    model.prepare(SGD(0.1, parameters=model.parameters()), OPS["cross_entropy"], metric.Accuracy(topk=(1, 2)))
    x, y = Line(6).x, np.zeros((6, 1), "int64")
    losses, measured = model.train_batch([x], [y])
    assert len(losses) == 1
    assert (losses[0].shape, losses[0].dtype) == ((), np.float32)
    assert f"{losses[0]:.3f}" == f"{float(losses[0]):.3f}"
    assert measured == [[1.0, 1.0]]
    losses, _ = model.eval_batch(x, y)
    assert losses[0] < 1.2
    assert model.predict_batch([x])[0].shape == (6, 3)
    result = model.evaluate([[x, y]], verbose=0)
    assert (result["acc_top1"], result["acc_top2"]) == (1.0, 1.0)


def test_save_and_load_go_on_where_it_was_left(tmp_path):
    first = prepared(lr.StepDecay(0.1, 2))
    first.fit(Line(), batch_size=5, verbose=0, shuffle=False)
    first.save(str(tmp_path / "deep" / "model"))
    second = prepared(lr.StepDecay(0.1, 2))
    second.load(str(tmp_path / "deep" / "model"))
    for model in (first, second):
        model.fit(Line(), batch_size=5, verbose=0, shuffle=False)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        np.testing.assert_array_equal(to_array(one), to_array(other))
    assert first._optimizer.get_lr() == second._optimizer.get_lr() == pytest.approx(0.001)


def test_a_file_that_does_not_fit_is_refused_or_reported(tmp_path, capsys):
    prepared(net=Net(2)).save(str(tmp_path / "m"))
    model = prepared(net=Net(1))
    with pytest.raises(ValueError, match=r"second.weight: \[3, 1\] here, \[3, 2\] there.*\n.*skip_mismatch=True"):
        model.load(str(tmp_path / "m"))
    model.load(str(tmp_path / "m"), skip_mismatch=True)
    assert "second.weight is left as it is: [3, 1] here, [3, 2] there" in capsys.readouterr().out
    with pytest.raises(FileNotFoundError):
        model.load(str(tmp_path / "none"))


def test_checkpoints_and_the_best_model_are_kept(tmp_path):
    stopping = callbacks.EarlyStopping("loss", patience=0, verbose=0)
    prepared().fit(Line(), Line(4), batch_size=5, epochs=4, save_dir=str(tmp_path), save_freq=2, verbose=0, callbacks=stopping)
    assert {path.name for path in tmp_path.iterdir()} >= {"0.pdparams", "2.pdparams", "final.pdparams", "best_model.pdparams"}


def test_early_stopping_waits_for_patience(capsys):
    recorder = Recorder()
    prepared(rate=0.0).fit(
        Line(),
        Line(4),
        batch_size=5,
        epochs=9,
        verbose=0,
        callbacks=[callbacks.EarlyStopping("loss", patience=1, save_best_model=False), recorder],
    )
    assert [c[0] for c in recorder.calls].count("on_epoch_begin") == 3
    assert "Epoch 3: early stopping; the best loss was " in capsys.readouterr().out


def test_a_value_that_the_evaluation_lacks_is_named(capsys):
    prepared().fit(Line(), Line(4), batch_size=5, verbose=0, callbacks=callbacks.EarlyStopping("accuracy"))
    assert "the evaluation has no 'accuracy' to watch; it has: loss" in capsys.readouterr().err


def test_the_learning_rate_falls_on_a_plateau(capsys):
    model = prepared(rate=1e-12)
    reducing = callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2, cooldown=1, min_lr=2e-13)
    model.fit(Line(), Line(4), batch_size=5, epochs=12, verbose=0, callbacks=reducing)
    assert model._optimizer.get_lr() == pytest.approx(2e-13)
    assert capsys.readouterr().out.count("The learning rate goes from") == 3


@pytest.mark.parametrize(("options", "steps"), [({}, 4), ({"by_step": False, "by_epoch": True}, 2)])
def test_schedules_step_by_batch_or_by_epoch(options, steps):
    schedule = lr.StepDecay(0.1, 100)
    model = prepared(schedule)
    model.fit(Line(), batch_size=5, epochs=2, verbose=0, callbacks=callbacks.LRScheduler(**options))
    assert schedule.last_epoch == steps


def records(content):
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        assert struct.unpack("<I", content[8:12])[0] == masked_crc(content[:8])
        body = content[12 : 12 + length]
        assert struct.unpack("<I", content[12 + length : 16 + length])[0] == masked_crc(body)
        yield body
        content = content[16 + length :]


def test_event_files_hold_the_curves(tmp_path):
    prepared().fit(Line(), Line(4), batch_size=5, epochs=2, verbose=0, callbacks=callbacks.VisualDL(str(tmp_path)))
    (path,) = tmp_path.iterdir()
    first, *scalars = records(path.read_bytes())
    assert first.endswith(b"\x1a\x0dbrain.Event:2")
    assert [body.count(b"train/loss") for body in scalars].count(1) == 4
    assert [body.count(b"eval/loss") for body in scalars].count(1) == 2


def test_the_checksum_is_that_of_the_standard(tmp_path):
    crc = (0xE3069283 >> 15 | 0xE3069283 << 17) & 0xFFFFFFFF  # CRC-32C of "123456789", RFC 3720
    assert masked_crc(b"123456789") == (crc + 0xA282EAD8) & 0xFFFFFFFF
    with EventFile(tmp_path) as events:
        events.add_scalar("a", 1.5, step=300)
    (path,) = tmp_path.iterdir()
    assert list(records(path.read_bytes()))[1][9:] == b"\x10\xac\x02" + b"\x2a\x0a\x0a\x08\x0a\x01a\x15" + struct.pack("<f", 1.5)


class Terminal(text_io.StringIO):
    def isatty(self):
        return True


def test_the_bar_draws_one_line_again_on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    bar = Progress(4, is_live=True, stream=stream)
    for step in range(1, 5):
        bar.samples += 8
        bar.show(step, {"loss": [0.25], "acc": 0.5}, is_last=step == 4)
    *drawn, end = stream.getvalue().split("\r")[1:]
    assert len(drawn) == 3
    assert re.match(r"step 1/4 \[======>\.{23}\] - loss: 0.2500 - acc: 0.5000 - \S+/step - [\d,]+ samples/s.*", drawn[0])
    assert re.match(r"step 4/4 \[={30}\] - loss", end)
    assert end.endswith("\n")
    assert "ETA" not in end


def test_plain_lines_elsewhere(capsys):
    prepared().fit(Line(), Line(4), batch_size=2, epochs=1, verbose=1, log_freq=2)
    lines = capsys.readouterr().out.splitlines()
    assert "\r" not in "".join(lines)
    assert [line.split(" - ")[0] for line in lines if line.startswith("step")] == ["step 2/5", "step 4/5", "step 5/5", "step 2/2"]
    assert "Epoch 1/1" in lines
    assert lines[-1] == "Eval samples: 4"


def test_numbers_and_times_are_short():
    assert [format_value(v) for v in (0.12345, [1.0, 2e-5], np.float32(3), 7, "x")] == [
        "0.1235",
        "1.0000 2.0000e-05",
        "3.0000",
        "7",
        "x",
    ]
    assert [format_seconds(s) for s in (0.2, 45, 187, 7627)] == ["0s", "45s", "3:07", "2:07:07"]


def test_summary_shows_each_layer(capsys):
    with utils.unique_name.guard():  # wider numbers of layers move the columns
        net = Net(1000)
    net.train()
    assert hapi.summary(net, (None, 4)) == {"total_params": 4015, "trainable_params": 4015}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "-" * 75
    assert lines[1] == " Layer (type)       Input Shape          Output Shape         Param #    "
    assert re.fullmatch(r" +Linear-\d+ +\[\[1, 4\]\]              \[1, 3\]              15       ", lines[3])
    assert re.fullmatch(r" +ReLU-\d+ +\[\[1, 3\]\]              \[1, 3\]               0       ", lines[4])
    assert re.fullmatch(r" +Linear-\d+ +\[\[1, 3\]\]            \[1, 1000\]            4,000     ", lines[5])
    sizes = ["Input size (MB): 0.00", "Forward/backward pass size (MB): 0.01", "Params size (MB): 0.02"]
    assert lines[-6:] == [*sizes, "Estimated Total Size (MB): 0.02", "-" * 75, ""]
    assert net.training
    with pytest.raises(ValueError, match="neither input_size nor input"):
        hapi.summary(net)


def test_flops_counts_by_layer(capsys):
    assert hapi.flops(Net(2), [5, 4], print_detail=True) == 5 * (4 * 3 + 3 * 2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        "|",
        "Layer",
        "Name",
        "|",
        "Input",
        "Shape",
        "|",
        "Output",
        "Shape",
        "|",
        "Params",
        "|",
        "Flops",
        "|",
    ]
    assert lines[-1] == "Total Flops: 90     Total Params: 23"
    custom = {ReLU: lambda layer, inputs, output: setattr(layer, "total_ops", layer.total_ops + 7)}
    assert hapi.flops(Net(2), [5, 4], custom_ops=custom) == 97


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: hapi.Model(3), TypeError, "network is 3"),
        (
            lambda: hapi.Model(Net()).fit(Line()),
            RuntimeError,
            r"there is no optimizer\n.*call model.prepare\(\) with an optimizer",
        ),
        (lambda: hapi.Model(Net()).prepare(3), TypeError, "optimizer is 3"),
        (lambda: hapi.Model(Net()).prepare(None, 3), TypeError, "loss is 3"),
        (lambda: hapi.Model(Net()).prepare(None, None, 3), TypeError, "metrics holds 3"),
        (lambda: prepared().fit(), ValueError, "no train_data"),
        (lambda: prepared().fit(3), TypeError, "the data is 3"),
        (lambda: prepared().fit(Line(), callbacks=[3], verbose=0), TypeError, "callbacks holds 3"),
        (lambda: prepared().save("/tmp/"), ValueError, "must name a file"),
        (lambda: prepared().save("/tmp/x", training=False), NotImplementedError, "use jit.save"),
        (lambda: callbacks.LRScheduler(True, True), ValueError, "by_step and by_epoch"),
        (lambda: callbacks.EarlyStopping(mode="up"), ValueError, "mode is 'up'"),
        (lambda: callbacks.ReduceLROnPlateau(factor=2.0), ValueError, "factor is 2.0"),
        (lambda: callbacks.WandbCallback(), NotImplementedError, "use VisualDL"),
        (lambda: hapi.flops(3, [1]), TypeError, "net is 3"),
    ],
)
def test_bad_arguments_raise_with_the_argument_and_the_value(call, error, text):
    with pytest.raises(error, match=text):
        call()
