"""Under wine a Windows Python prints what this host's prints. Where wine, its linker or maven is
missing the test says so and is skipped: `pytest -ra` shows it."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.windows import bed
from tests.windows.test_platforms import COMMANDS, ROOT, endings, said

OF_THIS_HOST = (
    # The system's own word for ENOENT.
    (r"File not found$", "No such file or directory"),
)
"""Patterns of what legitimately differs, once a path has its slashes, and what is compared."""
DOCTOR = ["doctor", "--format", "json"]
OFFLINE_TESTS = (
    ("tests/analysis", "tests/gate", "tests/doctor", "tests/fleet/test_reports.py"),
    (
        *"tests/documents tests/test_examples.py tests/cli/test_compare.py".split(),
        *"tests/cli/test_estimate.py tests/cli/test_check_runs.py".split(),
    ),
)
"""Tests of the offline commands with all their goldens, in two halves, one beside the other."""
OF_OTHERS = (
    # They ask an inventory of Ansible's, which is no program of Windows.
    "tests/fleet/test_reports.py::test_the_plan",
    "tests/fleet/test_reports.py::test_a_plan",
    "tests/fleet/test_reports.py::test_what_the_inventory",
)
SECONDS = 900
LEAST_TESTS = 300


def plain(ending):
    """Exit code and output as both systems have them."""
    code, *texts = ending
    texts = [text.replace("\\", "/") for text in texts]
    for pattern, words in OF_THIS_HOST:
        texts = [re.sub(pattern, words, text, flags=re.MULTILINE) for text in texts]
    return [code, *texts]


def checked(ending):
    """Returns what of doctor's document is not about the host itself: its form and its checks."""
    code, out, err = ending
    document = json.loads(out)
    checks = [(each["where"], each["name"], sorted(each)) for each in document.pop("checks")]
    assert code == (0 if document.pop("ready") else 3)
    return document, checks, err


@pytest.mark.long
def test_under_wine_help_and_offline_commands_say_the_same(windows):
    stub = bed.windows_path(Path(__file__).with_name("stub.py"))
    commands = [*COMMANDS, DOCTOR]
    command = [bed.WINE, str(windows.python), stub, "linux", "run", json.dumps(commands)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=windows.environment(COLUMNS="80", BOTTLENECK_CONFIG=""),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    here, there = said("linux", commands), endings(commands, done.stdout)
    doctor = " ".join(DOCTOR)
    document, checks, err = checked(there.pop(doctor))
    # Linux has no SMB client of the system's own to tell of.
    clients = [each for each in checks if each[1] == "SMB client"]
    assert len(clients) == 1
    checks.remove(*clients)
    assert (document, checks, err) == checked(here[doctor])
    for name, ending in there.items():
        if ending != here[name]:
            assert plain(ending) == plain(here[name]), name


@pytest.mark.long
@pytest.mark.parametrize("limits, text", [("9", "hello"), ("999", "WinError 87")])
def test_a_child_without_its_memory_limit_does_no_work(windows, limits, text):
    """Windows refuses limits of a kind that it does not know; the reason gets to the parent."""
    root = bed.windows_path(ROOT)
    code = f"import sys; sys.path[:0] = [{root!r}]; from probes.system.windows import process"
    code += f"; process.EXTENDED_LIMITS = {limits}; process.child()"
    done = subprocess.run(
        [bed.WINE, str(windows.python), "-c", code],
        cwd=ROOT,
        env=windows.environment(),
        input=b'["tests.windows.child_work", "say_hello", []]\n',
        capture_output=True,
        timeout=60,
    )
    assert text in done.stdout.decode(), done
    assert ("hello" in done.stdout.decode()) == (text == "hello")


@pytest.mark.long
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("tests", OFFLINE_TESTS, ids=lambda names: names[0])
def test_under_wine_the_goldens_of_offline_commands_hold(windows, tests):
    """The tests that hold them here, by Windows' own Python."""
    options = ("-q", "-p", "no:cacheprovider", "-m", "not long and not lab")
    without = [word for each in OF_OTHERS for word in ("--deselect", each)]
    without += ["--ignore", "tests/documents/html/test_browser.py"]
    done = subprocess.run(
        [bed.WINE, str(windows.python), "-m", "pytest", *options, *without, *tests],
        cwd=ROOT,
        env=windows.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS - 20,
    )
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0, text[-4000:]
    assert int(re.findall(r"(\d+) passed", text)[-1]) > LEAST_TESTS, text[-400:]


SMB_CLIENT = """import sys, time, winreg; sys.path[:0] = [{root!r}]
from probes.host import smb_client
from probes.system.windows.smb_client import PROFILE
began = time.monotonic()
with winreg.CreateKeyEx(winreg.HKEY_LOCAL_MACHINE, PROFILE, 0, winreg.KEY_ALL_ACCESS) as key:
    winreg.SetValueEx(key, "NetworkThrottlingIndex", 0, winreg.REG_DWORD, 10)
    print(smb_client.read("127.0.0.1"), time.monotonic() - began < smb_client.READ_SECONDS)
    winreg.DeleteValue(key, "NetworkThrottlingIndex")
    print(smb_client.read("127.0.0.1"))
"""


@pytest.mark.long
def test_the_registry_is_read_and_a_powershell_that_says_nothing_is_not_known(windows):
    """wine's PowerShell ends at once and prints nothing."""
    code = SMB_CLIENT.format(root=bed.windows_path(ROOT))
    command = [bed.WINE, str(windows.python), "-c", code]
    environment = windows.environment()
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60}
    done = subprocess.run(command, cwd=ROOT, env=environment, **quiet)
    assert done.stdout.decode().split("\r\n") == ["{'NetworkThrottlingIndex': '10'} True", "{}", ""]


@pytest.mark.long
def test_the_disk_of_a_windows_client_is_read_and_written_and_left_as_it_was(windows, tmp_path):
    report = windows.folder / "disk.json"
    options = ("--json", bed.windows_path(report), "--folder", bed.windows_path(tmp_path), "--yes")
    done = subprocess.run(
        windows.command("probe", "disk", *options, "--budget", "60"),
        cwd=tmp_path,
        env=windows.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
    )
    # The zones, which take fio, are missing.
    assert done.returncode == 3, done
    measured = {}
    for step in json.loads(report.read_text())["steps"]:
        setting, outcome = step["setting"], step["outcome"]
        measured[setting["pattern"], setting["verb"], setting["cache"]] = outcome
    for kind in (("read", "cached"), ("read", "uncached"), ("write", "uncached")):
        outcome = measured["sequential", *kind]
        assert outcome["details"]["direct"] == (kind != ("read", "cached"))
        assert outcome["details"]["zones"][0]["bytes_per_second"] > 0
    assert "cannot be used: it takes Linux" in measured["zones", "read", "uncached"]["reason"]
    assert not list(tmp_path.iterdir())
