"""The real Ansible carries out no word on its way to a client, and shows the password nowhere."""

import sys

import pytest

from bottleneck.fleet import run
from bottleneck.fleet.records import Fleet, Pair
from probes.core.records import Access

pytestmark = pytest.mark.long
SHOT = "lookup('pipe', 'touch {folder}/shot')"
WORDS = (
    "{{ " + SHOT + " }}",
    "{% set a = " + SHOT + " %}",
    "{# a comment #}",
    "{{ query('pipe', 'touch {folder}/shot') }}",
    "{{ cycler.__init__.__globals__.os.system('touch {folder}/shot') }}",
    "{{ '{{ ' ~ \"" + SHOT + "\" ~ ' }}' }}",
    "!unsafe {{ " + SHOT + " }}",
    "$(touch {folder}/shot)",
    "`touch {folder}/shot`",
    "'; touch {folder}/shot #",
)
PROGRAM = """#!/bin/sh
cat "$BOTTLENECK_ANSWERS/../round.json" > {folder}/round.json
printf '%s\\n' "$@" > {folder}/words.$$
grep -slaF -f /dev/fd/$BOTTLENECK_PASSWORD_FD \
    {folder}/control /proc/[0-9]*/environ /proc/[0-9]*/cmdline > {folder}/shown.$$
"""


@pytest.fixture
def run_fleet(tmp_path, monkeypatch):
    """Runs a fleet on this host, one client for each share; what each client was given."""

    def start(shares, access):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        program, hosts = tmp_path / "program", tmp_path / "hosts"
        program.write_text(PROGRAM.replace("{folder}", str(tmp_path)))
        program.chmod(0o700)
        (tmp_path / "control").write_text(access.password)
        clients, servers = (
            [f"{name}{index}" for index in range(len(shares))] for name in ("pc", "nas")
        )
        local = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        command = f"bottleneck_command='[\"{program}\"]'"
        hosts.write_text("".join(f"{each} {local} {command}\n" for each in clients))
        fleet = Fleet(tuple(clients), tuple(servers))
        pairs = [Pair(*each) for each in zip(clients, servers, strict=True)]
        with run.prepare_folder(tmp_path / "kept", resume=False) as (progress, log):
            targets = dict(zip(servers, shares, strict=True))
            options = (fleet, targets, hosts, tmp_path / "kept", log, access, 5.0, True)
            run.measure_pairs(run.Run(*options), progress, pairs, lambda text: None)
        said = (tmp_path / "kept" / run.LOG).read_text()
        values = [each.read_text().splitlines() for each in tmp_path.glob("words.*")]
        assert len(values) == len(shares), said
        return values

    return start


def test_a_word_that_looks_like_a_template_arrives_as_it_is(run_fleet, tmp_path):
    words = [each.replace("{folder}", str(tmp_path)) for each in WORDS]
    shares = [f"//nas/{each}" for each in words]
    values = run_fleet(shares, Access(words[0], words[0], words[1]))
    assert not (tmp_path / "shot").exists()
    assert sorted(each[1] for each in values) == sorted(shares)
    for each in values:
        assert each[each.index("--user") + 1] == words[0]
        assert each[each.index("--domain") + 1] == words[1]


def test_no_process_shows_the_password_in_its_environment_or_arguments(run_fleet, tmp_path):
    run_fleet(["//nas/media"], Access("anna", "hunter2 {{ and }} m\u00f6re 4711"))
    (file,) = tmp_path.glob("shown.*")
    assert file.read_text().splitlines() == [str(tmp_path / "control")]
    assert "//nas/media" in (variables := (tmp_path / "round.json").read_text())
    assert "hunter2" not in variables
    assert "hunter2" not in (tmp_path / "kept" / run.LOG).read_text()
