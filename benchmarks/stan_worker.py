"""The half of the comparison that runs in Stan's own environment: see ``stan.py``.

It is started by ``stan.py`` as ``python stan_worker.py PROGRAM INPUT OUTPUT`` with httpstan's
interpreter, and imports nothing of the library. INPUT and OUTPUT are NumPy archives. Without
chains it only evaluates the log density at the points given.
"""

import asyncio
import json
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from httpstan import models

STATS = ("stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "accept_stat__")


def build(program):
    """Compile the program, unless that was done before, and return its module."""
    name = models.calculate_model_name(program)
    try:
        return models.import_services_extension_module(name)
    except KeyError:
        print("Stan: compiling the program, about a minute", file=sys.stderr, flush=True)
        asyncio.run(models.build_services_extension_module(program))
        return models.import_services_extension_module(name)


def read(server, report, lines):
    """Collect the lines of everything that connects, until all have hung up."""
    texts, everyone_left = {}, False
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        while not everyone_left:
            for key, _ in selector.select():
                if key.fileobj is server:
                    connection, _ = server.accept()
                    selector.register(connection, selectors.EVENT_READ)
                    texts[connection] = b""
                    continue
                received = key.fileobj.recv(1 << 20)
                *whole, texts[key.fileobj] = (texts[key.fileobj] + received).split(b"\n")
                lines += whole
                for line in whole:
                    report(line)
                if not received:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    del texts[key.fileobj]
                    everyone_left = not texts


def run_chain(module, settings, report):
    """Every line that one chain writes, and the processor time of its thread in seconds."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        address = str(Path(folder, "socket"))
        server.bind(address)
        server.listen(4)
        lines = []
        # Stan keeps its tape in the thread that loaded it: the reading is what moves
        reader = threading.Thread(target=read, args=(server, report, lines), daemon=True)
        reader.start()
        start = time.thread_time()
        module.hmc_nuts_diag_e_adapt_wrapper(socket_filename=address, **settings)
        seconds = time.thread_time() - start
        reader.join()
    return lines, seconds


def main():
    program, source, target = map(Path, sys.argv[1:])
    given = dict(np.load(source))
    data = {k[5:]: v[()] for k, v in given.items() if k.startswith("data_")}
    inits = {k[5:]: v for k, v in given.items() if k.startswith("init_")}
    module = build(program.read_text())
    out = {
        "log_prob": np.array(
            [[module.log_prob(data | {"centred": int(c)}, list(x), True) for x in points]
             for c, points in enumerate((given["points"], given["points_centred"]))]
        )
    }
    warmup, draws, chains = (int(given[name]) for name in ("warmup", "draws", "chains"))
    found = []
    for chain in range(chains):
        settings = {
            "data": data,
            "init": {name: values[chain] for name, values in inits.items()},
            "random_seed": int(given["seed"]),
            "chain": chain + 1,
            "init_radius": 2.0,
            "num_warmup": warmup,
            "num_samples": draws,
            "num_thin": 1,
            "save_warmup": True,
            "refresh": 0,
            "stepsize": 1.0,
            "stepsize_jitter": 0.0,
            "max_depth": int(given["max_depth"]),
            "delta": float(given["target_accept"]),
            "gamma": 0.05,
            "kappa": 0.75,
            "t0": 10.0,
            "init_buffer": 75,
            "term_buffer": 50,
            "window": 25,
        }
        seen = [0]

        def report(line, chain=chain, seen=seen):
            if not (b'"sample"' in line and b"n_leapfrog__" in line):
                return
            seen[0] += 1
            print(f"\rStan: chain {chain + 1} of {chains}, {seen[0]} of {warmup + draws} ",
                  end="", file=sys.stderr, flush=True)

        lines, seconds = run_chain(module, settings, report)
        messages = [json.loads(line)["values"] for line in lines if b'"sample"' in line]
        messages = [values for values in messages if isinstance(values, dict)]
        if len(messages) != warmup + draws:
            said = [line.decode() for line in lines if b'"logger"' in line][-5:]
            raise RuntimeError(f"Stan wrote {len(messages)} of {warmup + draws} draws: {said}")
        found.append((messages, seconds))
    if not found:
        np.savez(target, **out)
        return
    print(file=sys.stderr)
    names = list(found[0][0][0])
    array = np.array([[list(m.values()) for m in messages] for messages, _ in found])
    for name in STATS:
        out[name] = array[:, :, names.index(name)]
    for name in ("concentration", "log_pi", "sigma", "beta"):
        # columns of a matrix come one after another, as Stan keeps them
        columns = [i for i, x in enumerate(names) if x.split(".")[0] == name]
        out[name] = array[:, warmup:, columns]
    out["seconds"] = np.array([seconds for _, seconds in found])
    np.savez(target, **out)


if __name__ == "__main__":
    # Stan's loop listens to no one: end at once when interrupted
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
