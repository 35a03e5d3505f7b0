#!/usr/bin/env python3
"""`convoy check` of whole networks under every kind of plan, in float64 and in float32, by four processes under mpirun.

    plans_test.py PATH_OF_CONVOY PATH_OF_MPIEXEC [MODEL ...] [PLAN ...] [f64] [f32]

A sample (LeNet-5) unless models are named or CONVOY_TEST_FULL=1 asks for all. Plans are named as the lines that it prints name them; "hand" is the one with
grids of its own for some layers. `make plan-table` runs the whole.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 1800  # seconds for one check: the longest takes minutes
GRACE = 10  # seconds for the launcher to end its ranks
SMALL = ["--input", "3x64x64", "--classes", "10"]
VOLUME = "depth:2,height:2"
# name -> (flags, layers split in space, layers split in channels, layers split in filters)
MODELS = {
    "lenet5": ([], ["conv1"], ["conv2"], ["fc1"]),
    "alexnet": (SMALL, ["features.0", "features.3"], ["features.8", "features.10"], ["classifier.1", "classifier.4"]),
    # Without momentum: four replicas of its 138 million parameters and one process take 11 GB so, 17 with.
    "vgg16": ([*SMALL, "--optimizer", "sgd"], ["features.0", "features.2"], ["features.24", "features.26", "features.28"], ["classifier.0", "classifier.3"]),
    "googlenet": (["--input", "3x96x96", "--classes", "10"], ["conv*.conv", "inception3a.*.conv"], ["inception5*.conv"], ["fc"]),
    "resnet50": (SMALL, ["conv1", "layer1.*.conv*"], ["layer4.*.conv*"], ["fc"]),
    "densenet121": (SMALL, ["features.conv0", "features.denseblock1.*.conv*"], ["features.denseblock4.*.conv2"], ["features.denseblock4.*.conv1"]),
    "cosmoflow64": ([], ["features.0", "features.3"], ["features.9"], ["head.0"]),
    "unet3d": (["--input", "1x32x32x32"], ["down.0.0", "down.0.3"], ["bottom.3"], ["bottom.0"]),
}
VOLUMES = ("cosmoflow64", "unet3d")


def by_hand(model):
    """A plan with a grid and a placement of its own for some layers: space first, then channels and filters on ranks in another order."""
    _, space, channels, filters = MODELS[model]
    axes = ["depth", "height"] if model in VOLUMES else ["sample", "height"]
    dims = [2, 3] if model in VOLUMES else [0, 2]
    split = [{"split": dims[0]}, {"split": dims[1]}]
    entries = [{"layers": layer, "grid": 0, "input": split, "weight": ["replicate", "replicate"], "output": split} for layer in space]
    entries += [{"layers": layer, "grid": 1, "input": [{"split": 1}], "weight": [{"split": 1}], "output": [{"split": 1}]} for layer in channels]
    entries += [{"layers": layer, "grid": 1, "input": ["replicate"], "weight": [{"split": 0}], "output": [{"split": 1}]} for layer in filters]
    entries.append({"layers": "*", "grid": 0})
    grids = [{"axes": [{"name": axis, "size": 2} for axis in axes], "ranks": [0, 1, 2, 3]}, {"axes": [{"name": "channel", "size": 4}], "ranks": [2, 0, 3, 1]}]
    return {"grids": grids, "layers": entries}


def plans(model):
    space = VOLUME if model in VOLUMES else "height:2,width:2"
    return ["sample:4", "sample:2,height:2", space, "channel:4@x", "channel:4@y", "channel:2,filter:2@w", "sample:2,channel:2@x", "hybrid-fc", "zero", "hand"]


PLANS = [*plans("lenet5"), VOLUME]


def end_session(leader):
    """Ends the launcher and what it started. Ranks are in process groups of their own, but in its session."""
    try:
        os.killpg(leader.pid, signal.SIGTERM)
        leader.wait(timeout=GRACE)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.getsid(int(entry)) == leader.pid:
                os.kill(int(entry), signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def run(command, environment):
    """Exit status, stdout and stderr. Nothing that was started is left behind, whatever happens."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        out, err = child.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        end_session(child)
        out, err = child.communicate()
        return 1, out, f"{err.strip()}\nit hangs: ended after {LIMIT} s"
    except BaseException:
        end_session(child)
        raise
    return child.returncode, out, err


def check(convoy, mpiexec, model, plan, dtype):
    """Whether it passed, and the largest error."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, f"{model}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(by_hand(model), file)
        return check_by(convoy, mpiexec, model, (plan, path if plan == "hand" else plan), dtype)


def check_by(convoy, mpiexec, model, plan, dtype):
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    crowded = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    command = [mpiexec, "-n", "4", convoy, "check", model, *MODELS[model][0], "--plan", plan[1], "--dtype", dtype, "--threads", "1", "--json", "-"]
    begin = time.time()
    code, out, err = run(command, {**os.environ, **as_root, **crowded})
    seconds = time.time() - begin
    try:
        result = json.loads(out)
    except ValueError:
        result = {"pass": False, "max_error": float("nan"), "worst": err.strip()[-600:]}
    passed = code == 0 and result["pass"] is True
    # Every plan here divides something of every model, and what is summed in another order is rounded differently.
    if passed and dtype == "f64" and not result["max_error"] > 0:
        passed, result["worst"] = False, "the ranks have the very numbers of one process: nothing was divided"
    print(f"{'pass' if passed else 'FAIL'}  {model:<12} {plan[0]:<22} {dtype}  error {result['max_error']:.1e}  {seconds:5.1f} s"
          + ("" if passed else f"\n      {result['worst']}"), flush=True)
    return passed, result["max_error"]


def main():
    convoy, mpiexec, *words = sys.argv[1:]
    unknown = [word for word in words if word not in (*MODELS, *PLANS, "f64", "f32")]
    if unknown:
        sys.exit(f"plans_test.py: \"{unknown[0]}\" is no model ({', '.join(MODELS)}), plan ({', '.join(PLANS)}) or type (f64, f32)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that no rank is left behind
    models = [word for word in words if word in MODELS]
    chosen = [word for word in words if word in PLANS] or PLANS
    dtypes = [word for word in words if word in ("f64", "f32")] or ["f64", "f32"]
    if not models:
        models = list(MODELS) if os.environ.get("CONVOY_TEST_FULL") == "1" else ["lenet5"]
    begin = time.time()
    results = {(model, plan, dtype): check(convoy, mpiexec, model, plan, dtype)
               for dtype in dtypes for model in models for plan in plans(model) if plan in chosen}
    for dtype in dtypes:
        of_type = {case: result for case, result in results.items() if case[2] == dtype}
        passed = sum(result[0] for result in of_type.values())
        (model, plan, _), (_, worst) = max(of_type.items(), key=lambda item: item[1][1])
        print(f"{dtype}: {passed} of {len(of_type)} passed, the largest error {worst:.1e} ({model}, {plan})")
    print(f"{time.time() - begin:.0f} s in all")
    sys.exit(0 if all(result[0] for result in results.values()) else 1)


if __name__ == "__main__":
    main()
