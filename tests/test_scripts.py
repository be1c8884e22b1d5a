"""The shell around the product: ./demo, ./test, scripts/bootstrap, scripts/packages, .ci/run.

They run here in a copy of this clone with stand-ins for what they call, so that nothing on this
machine is installed or changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.living import until

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ("demo", "test", "scripts/bootstrap", "scripts/packages")
NOBODY = 65534


@pytest.fixture
def clone() -> Iterator[Path]:
    """The scripts in a folder that every account may read; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="bottleneck test "))
    folder.chmod(0o755)
    for name in (*SCRIPTS, ".ci/run", "uv.lock", "pyproject.toml"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    yield folder
    shutil.rmtree(folder)


def program(path: Path, body: str) -> None:
    """A stand-in: a shell script that does what body says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def tools(clone: Path, *names: str) -> Path:
    """A folder for PATH with the named programs of this system and no other."""
    folder = clone / "tools"
    folder.mkdir(exist_ok=True)
    for name in names:
        path = shutil.which(name)
        assert path, name
        (folder / name).symlink_to(path)
    return folder


def run(
    *command: str | Path, cwd: Path | None = None, user: int | None = None, path: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd or "/",
        env={**os.environ, "PATH": path or os.environ["PATH"]},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def ordinary() -> int | None:
    """An account without root: another one where this process is root."""
    return NOBODY if os.geteuid() == 0 else None


PYTHON = 'case "$*" in *sys.executable*) echo "$0" ;; "-m venv "*) exit 1 ;; esac'
"""A Python that is new enough and cannot make a virtual environment."""
BASICS = ("sh", "dirname", "readlink", "id", "cat", "sha256sum", "grep", "flock")


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_is_executable_posix_sh(name: str) -> None:
    path = ROOT / name
    assert os.access(path, os.X_OK)
    assert path.read_text().startswith("#!/bin/sh\n")
    assert run("sh", "-n", path).returncode == 0
    dash = shutil.which("dash")
    if dash:  # Debian's sh, which knows nothing of bash
        assert run(dash, "-n", path).returncode == 0


def test_continuous_integration_runs_what_a_person_runs(clone: Path) -> None:
    program(clone / "test", 'echo "ran in $PWD with $*"; exit 7')
    done = run(clone / ".ci/run", "a b")
    assert done.returncode == 7
    assert done.stdout == f"ran in {clone} with a b\n"
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_missing_packages_without_root_print_one_line_and_end_with_69(clone: Path) -> None:
    path = tools(clone, *BASICS)
    program(path / "apt-get", "exit 1")
    program(path / "python3", PYTHON)
    program(path / "smbd", "")
    program(path / "pdbedit", "")
    program(path / "smbclient", "")
    done = run(clone / "scripts/bootstrap", "demo", user=ordinary(), path=str(path))
    lines = [line for line in done.stderr.splitlines() if not line.startswith("bottleneck:")]
    assert done.returncode == 69
    assert lines == [
        "sudo apt-get update && sudo apt-get install --yes --no-install-recommends fio"
    ]
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("python", "says"),
    [
        (PYTHON, "package manager: fio"),
        (
            '[ "$1" = --version ] && echo Python 3.9.2 || exit 1',
            "Python 3.11 or newer is needed; here is Python 3.9.2",
        ),
    ],
)
def test_a_system_without_apt_or_with_an_older_python_is_told(
    clone: Path, python: str, says: str
) -> None:
    path = tools(clone, *BASICS)
    program(path / "python3", python)
    done = run(clone / "scripts/bootstrap", "demo", path=str(path))
    assert done.returncode == 69
    assert says in done.stderr


def ready(clone: Path) -> str:
    """A clone whose environment stands, made from the lock as it is; returns a PATH for it."""
    path = tools(clone, *BASICS)
    program(path / "python3", PYTHON)
    others = "fio smbd pdbedit smbclient iperf3 rsync sshd ssh ip tc nft smbnetfs fusermount3"
    for name in f"{others} systemd-analyze tmux groff chromium-headless-shell".split():
        program(path / name, "")
    (clone / ".venv/bin").mkdir(parents=True)
    program(clone / ".venv/bin/python", "")
    content = (clone / "uv.lock").read_bytes() + (clone / "pyproject.toml").read_bytes()
    recorded_path = f"{path}/python3\n"
    key = hashlib.sha256(content + recorded_path.encode() + f"{clone}\n".encode()).hexdigest()
    (clone / ".venv/ready").write_text(f"{key}  -\n")
    return str(path)


def test_a_second_run_of_the_bootstrap_does_and_says_nothing(clone: Path) -> None:
    path = ready(clone)
    for purpose in ("demo", "test"):
        done = run(clone / "scripts/bootstrap", purpose, path=path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_lock_makes_the_environment_again(clone: Path) -> None:
    path = ready(clone)
    with (clone / "uv.lock").open("a") as lock:
        lock.write("\n")
    program(clone / ".venv/bin/python", "exit 1")
    done = run(clone / "scripts/bootstrap", "demo", path=path)
    assert done.returncode == 69
    assert "making a virtual environment" in done.stderr


def test_the_demonstration_hands_its_arguments_on_and_keeps_stdout_clean(clone: Path) -> None:
    program(clone / "scripts/bootstrap", "echo chatter >&2")
    program(clone / ".venv/bin/bottleneck", 'for word; do echo "[$word]"; done; exit 3')
    (clone / "linked").symlink_to(clone / "demo")
    for script in ("demo", "linked"):
        done = run(clone / script, "--json", "a b.json", cwd=Path("/tmp"))
        assert done.returncode == 3
        assert done.stdout == "[demo]\n[--json]\n[a b.json]\n"


SHORT = ["pytest -n 3 --dist loadfile -m not long and not lab"]
LONG = [
    "coverage run -m pytest tests/analysis",
    "coverage report",
    "pytest -n 2 --dist loadfile -m not lab --ignore=tests/analysis",
    "pytest -m lab",
]


@pytest.mark.parametrize(("options", "runs"), [((), SHORT), (("--long",), LONG)])
def test_the_checks_all_run_and_the_first_failure_is_the_code(
    clone: Path, options: tuple[str, ...], runs: list[str]
) -> None:
    program(clone / "scripts/bootstrap", "")
    for name, code in (("ruff", 0), ("mypy", 4), ("coverage", 2), ("pytest", 5)):
        program(clone / ".venv/bin" / name, f'echo "{name} $* in $PWD" >&2; exit {code}')
    done = run(clone / "test", *options)
    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        f"{check} in {clone}" for check in ("ruff check .", "ruff format --check .", "mypy ", *runs)
    ]


def test_arguments_go_to_pytest_alone(clone: Path) -> None:
    program(clone / "scripts/bootstrap", "")
    for name in ("ruff", "mypy"):
        program(clone / ".venv/bin" / name, "exit 9")
    program(clone / ".venv/bin/pytest", 'for word; do echo "[$word]"; done; exit 5')
    done = run(clone / "test", "-k", "a b")
    assert done.returncode == 5
    assert done.stdout == "[-k]\n[a b]\n"


def packages(clone: Path, apt_get: str) -> tuple[Path, Path, str]:
    """scripts/packages on a policy file and an apt-get of the test's own: script, policy, PATH."""
    policy = clone / "policy-rc.d"
    script = clone / "scripts/packages"
    text = script.read_text()
    assert "policy=/usr/sbin/policy-rc.d" in text
    script.write_text(text.replace("/usr/sbin/policy-rc.d", f"'{policy}'"))
    path = tools(clone, "sh", "cat", "grep", "chmod", "rm", "mktemp", "tail", "touch")
    program(path / "apt-get", f'case "$*" in *" install "*) {apt_get} ;; esac')
    program(path / "dpkg-query", 'case "$*" in *present*) echo "ii " ;; *) exit 1 ;; esac')
    program(path / "update-rc.d", f"echo \"$*\" >>'{clone}/disabled'")
    return script, policy, str(path)


def test_packages_start_no_server_and_leave_none_for_the_next_boot(clone: Path) -> None:
    policy_seen = f"cat '{clone}/policy-rc.d' >'{clone}/seen'"
    script, policy, path = packages(clone, policy_seen)
    done = run(script, "fio", "samba", path=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert not policy.exists()
    assert (clone / "disabled").read_text().splitlines() == [
        "smbd disable",
        "nmbd disable",
        "samba-ad-dc disable",
    ]
    call_log = clone / "seen"
    for service, code in (("smbd", 101), ("smbd.service", 101), ("nmbd", 101), ("cron", 0)):
        assert run("sh", call_log, service, "start").returncode == code


def test_a_server_whose_package_was_there_before_is_left_alone(clone: Path) -> None:
    script, _, path = packages(clone, ":")
    text = script.read_text()
    script.write_text(text.replace("    samba) echo", "    present) echo"))
    assert run(script, "present", "fio", path=path).returncode == 0
    assert not (clone / "disabled").exists()


def test_a_failed_installation_tells_apt_s_words_and_removes_the_policy(clone: Path) -> None:
    script, policy, path = packages(clone, "echo E: no such package; exit 100")
    done = run(script, "samba", path=path)
    assert done.returncode == 100
    assert "E: no such package" in done.stderr
    assert not policy.exists()


def stays_below(pid: int) -> bool:
    """Whether a process below that one is the program tail by now."""
    with contextlib.suppress(psutil.NoSuchProcess):  # one that ended just now
        return any(each.name() == "tail" for each in psutil.Process(pid).children(recursive=True))
    return False


def test_an_interrupted_installation_removes_the_policy(clone: Path) -> None:
    script, policy, path = packages(clone, "tail -f /dev/null")
    installing = subprocess.Popen(
        [str(script), "samba"],
        env={**os.environ, "PATH": path},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # A signal that comes before the program is loaded is the shell's, which loses it.
    assert until(lambda: stays_below(installing.pid))
    assert policy.exists()
    os.killpg(installing.pid, signal.SIGINT)
    assert installing.wait() == 130
    assert not policy.exists()
