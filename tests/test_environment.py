"""A secret of the environment is gone from what /proc shows of it, too."""

import os
import subprocess
import sys

CODE = """
from pathlib import Path
from bottleneck import environment
shown = Path("/proc/self/environ").read_bytes()
assert b"WORD=hunter2 and more" in shown
assert environment.take("WORD") == "hunter2 and more" and environment.take("WORD") is None
shown = Path("/proc/self/environ").read_bytes()
assert b"hunter2" not in shown and b"more" not in shown
assert b"BEFORE=1" in shown and b"WORDS=2" in shown
import subprocess
assert "WORD=" not in subprocess.run(["env"], capture_output=True, text=True).stdout
"""


def test_a_secret_that_is_taken_is_overwritten_where_proc_shows_it():
    words = {"BEFORE": "1", "WORD": "hunter2 and more", "WORDS": "2"}
    environment = {**os.environ, **words}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
