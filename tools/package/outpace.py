"""Outpace, a laboratory for lossless LLM decoding: its program, called from Python. `outpace --help` teaches the commands."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig

__version__ = importlib.metadata.version("outpace")


class Error(RuntimeError):
    """What the program says of a failure; `code` is its exit code."""

    def __init__(self, code, said):
        lines = [line for line in said.splitlines() if line.startswith("outpace: ")]
        super().__init__(lines[-1][len("outpace: "):] if lines else f"outpace ended with exit code {code}")
        self.code = code


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
        raise Error(done.returncode, done.stderr)
    return done.stdout


def _errors(descriptor):
    """Shows what the program writes there, and returns the end of it."""
    said = b""
    try:
        while True:
            piece = os.read(descriptor, 4096)
            if not piece:
                break
            sys.stderr.write(piece.decode(errors="replace"))
            sys.stderr.flush()
            said = (said + piece)[-4096:]
    except OSError:  # a terminal ends so
        pass
    return said.decode(errors="replace")


def _watched(*arguments):
    """The exit code and the last of the errors of a program that shows its progress, on a terminal if we have one."""
    terminal = sys.stderr.isatty()
    ours, theirs = os.openpty() if terminal else os.pipe()
    process = subprocess.Popen([program(), *map(str, arguments)], stderr=theirs)
    os.close(theirs)
    try:
        said = _errors(ours)
    finally:  # a Ctrl-C is the program's, too, which keeps what it has
        code = process.wait()
        os.close(ours)
    return code, said


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
    not be run; else raises Error. The results are in the store, results/outpace.db unless the options name another with --db."""
    code, said = _watched("run", config, *options)
    if code not in (0, 3):
        raise Error(code, said)
    return code
