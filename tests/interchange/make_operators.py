"""Run by the real PaddlePaddle: saves a model of one call for each case, in the format that FLAGS_enable_pir_api chooses.

Usage: make_operators.py CASES.pkl FOLDER. CASES: (name, public path, arguments, keywords) with arrays for tensors. FOLDER/results.pkl gets, by name,
(what was fed, the results, None), or (None, None, why there is no model).
"""

import functools
import os
import pickle
import sys

import numpy as np
import paddle
from paddle.static import Executor, Program, data, program_guard, save_inference_model

CASES, FOLDER = sys.argv[1:3]
IS_PIR = os.environ.get("FLAGS_enable_pir_api") == "1"
paddle.enable_static()


def flat(value):
    if value is None:
        return []
    return [x for item in value for x in flat(item)] if isinstance(value, (list, tuple)) else [value]


def make(name, path, arguments, keywords):
    main, startup, feed = Program(), Program(), {}

    def lift(value):
        if isinstance(value, np.ndarray):
            key = f"in{len(feed)}"
            feed[key] = value
            return data(key, list(value.shape), str(value.dtype))
        if isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value):
            return [lift(item) for item in value]
        return value

    with program_guard(main, startup):
        function = functools.reduce(getattr, path.split("."), paddle)
        results = flat(function(*[lift(a) for a in arguments], **{k: lift(v) for k, v in keywords.items()}))
    executor, fed = Executor(), {k: v.copy() for k, v in feed.items()}
    executor.run(startup)
    expected = [np.asarray(e) for e in executor.run(main, feed=feed, fetch_list=results)]
    if IS_PIR:
        inputs = [op.result(0) for op in main.global_block().ops if op.name() == "pd_op.data"]
    else:
        inputs = [main.global_block().var(key) for key in fed]
    save_inference_model(f"{FOLDER}/{name}", inputs, results, executor, program=main)
    return fed, expected, None


with open(CASES, "rb") as file:
    cases = pickle.load(file)
results = {}
for case in cases:
    try:
        results[case[0]] = make(*case)
    except Exception as error:  # an old-format program cannot be built by every function of PaddlePaddle 3
        results[case[0]] = None, None, f"{type(error).__name__}: {str(error).strip()[-200:]}"
with open(f"{FOLDER}/results.pkl", "wb") as file:
    pickle.dump(results, file)
print(sum(r[2] is None for r in results.values()))
