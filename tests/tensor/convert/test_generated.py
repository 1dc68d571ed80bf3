"""Random programs behave alike before and after conversion: on numbers as plain Python, on tensors as recorded Programs."""

import contextlib
import traceback
from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import sampan as paddle
from sampan.base.errors import ConversionError
from sampan.tensor.convert import convert

from .checks import recorded
from .programs import OutOfFuel, Writer, load

#: Without shrinking: a failing seed is a small program already, and each run compiles one.
PHASES = (Phase.explicit, Phase.generate)


def outcome(function, a, b):
    """Everything that can be seen of a run: the result or the exception with its line, and the order of side effects."""
    seen = []
    fuel = [60]

    def log(value):
        seen.append(("log", value))
        return len(seen)

    def tick():
        fuel[0] -= 1
        if not fuel[0]:
            raise OutOfFuel

    @contextlib.contextmanager
    def guard(number):
        seen.append(("enter", number))
        try:
            yield number
        finally:
            seen.append(("exit", number))

    try:
        return "result", function(a, b, log, tick, guard), seen
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<program")]
        return "error", type(error), str(error), lines[-1], seen


@settings(max_examples=200, deadline=None, phases=PHASES)
@given(st.integers(0, 2**40), st.integers(-3, 6), st.integers(-3, 6))
def test_a_converted_function_does_on_numbers_what_the_original_does(seed, a, b):
    random = Random(seed)
    text = Writer(random, size=random.choice([5, 10, 20])).text()
    try:
        original = load(text)
    except SyntaxError:
        return  # such as a comprehension's name that is nonlocal
    made = convert(original)
    assert made is not original
    assert outcome(made, a, b) == outcome(original, a, b), text


@settings(max_examples=25, deadline=None, phases=PHASES)
@given(st.integers(0, 2**40), st.integers(-3, 6), st.integers(-3, 6))
def test_a_recorded_program_gives_what_the_original_gives_on_tensors(seed, a, b):
    random = Random(seed)
    text = Writer(random, is_tensor_program=True, size=random.choice([4, 8])).text()
    program = load(text)
    tensors = paddle.to_tensor(a), paddle.to_tensor(b)

    def run(x, y):
        return program(x, y, None, None, None)

    wanted = run(*tensors)
    with contextlib.suppress(ConversionError):  # such as a variable that is a tensor on one side and a list on the other
        assert int(recorded(run, *tensors)) == int(wanted), text
