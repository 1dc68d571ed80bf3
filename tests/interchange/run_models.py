"""Run by the real PaddlePaddle: loads every model of a folder that has a NAME.npz of fed arrays, runs it, and writes NAME.out.npz.

Usage: run_models.py FOLDER [FIRST]. Prints each name when it is done, so that a crash of the process shows where it was.
"""

import os
import sys

import numpy as np
import paddle

FOLDER = sys.argv[1]
paddle.enable_static()
executor = paddle.static.Executor()
names = sorted(f[:-4] for f in os.listdir(FOLDER) if f.endswith(".npz") and not f.endswith(".out.npz"))
for name in names[int(sys.argv[2]) if len(sys.argv) > 2 else 0 :]:
    fed = np.load(f"{FOLDER}/{name}.npz")
    error = ""
    try:
        with paddle.static.scope_guard(paddle.static.Scope()):
            program, feeds, fetches = paddle.static.load_inference_model(f"{FOLDER}/{name}", executor)
            results = executor.run(program, feed={k: fed[k] for k in feeds}, fetch_list=fetches)
        np.savez(f"{FOLDER}/{name}.out.npz", **{f"out{k}": np.asarray(r) for k, r in enumerate(results)})
    except Exception as found:
        error = f"{type(found).__name__}: {str(found).strip()[-300:]}".replace("\n", " ")
    print(f"@{name}@{error}", flush=True)
print("done")
