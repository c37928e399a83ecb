"""Outpace, a laboratory for lossless LLM decoding: its program, called from Python. `outpace --help` teaches the commands."""

import json
import os
import shutil
import subprocess
import sysconfig


def program():
    """The path of the program that was installed with this module, else of one on $PATH."""
    for scheme in (None, os.name + "_user"):
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, "outpace")
        if os.access(path, os.X_OK):
            return path
    path = shutil.which("outpace")
    if not path:
        raise FileNotFoundError("the program 'outpace' is neither next to Python nor on $PATH")
    return path


def _output(*arguments):
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"outpace ended with exit code {done.returncode}")
    return done.stdout


def sql(store, query):
    """The rows of a query over a store: a DataFrame if pandas is there, else a list of dicts."""
    rows = [json.loads(line) for line in _output("sql", query, "--db", store, "--format", "jsonl").splitlines()]
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def run(config, *options):
    """Runs an experiment as `outpace run CONFIG OPTIONS...` does, and returns its exit code: 0, or 3 if some points could
    not be run. The results are in the store, results/outpace.db unless the options name another with --db."""
    code = subprocess.run([program(), "run", str(config), *map(str, options)]).returncode
    if code not in (0, 3):
        raise RuntimeError(f"outpace run {config} ended with exit code {code}")
    return code
