"""Each observation becomes one check; what is missing names its remedy and its stages."""

from dataclasses import replace

import pytest

from bottleneck.doctor.checks import BETWEEN_HOSTS, OVER_SMB, all_checks, install
from bottleneck.doctor.look import OK, STATES, Findings, Program, Request, Trouble
from bottleneck.login.target import parse
from probes.core.records import Access
from probes.host.facts import Place, Readiness

READY = Readiness(
    name="nas",
    system="Linux 6.8",
    distribution="Debian GNU/Linux 12",
    families=("debian",),
    python="3.11.7",
    privileged=True,
    clock_seconds=1.7e9,
    encoding="UTF-8",
    programs={"fio": "3.33", "ssh": "9.2p1", "smbclient": "4.17", "smbd": "4.17", "smartctl": "7"},
    engines=("libaio", "io_uring"),
    psutil="7.0",
    proc=True,
    cache="cachestat",
    quotas=True,
    interface="eth0",
    driver="igb",
    place=Place("/srv", "", "ext4", True, 10 << 30),
)
PROGRAM = Program("0.1.0", "3.11.7", {"smbprotocol": "1.17", "impacket": "0.13"}, True, "utf-8")
OFFERED = {"dialects": ["3.0", "3.1.1"], "signing": "signing enabled", "connect_seconds": 0.001}
SESSION = {
    **{"dialect": "3.1.1", "signing": "aes-gmac", "encryption": None, "may_write": True},
    **{"free_bytes": 9 << 30, "total_bytes": 1 << 30},
}
WANTED = Request("/home/anna", parse("//nas/media"), Access("anna", "x"), "ssh://anna@nas:2222")
SEEN = Findings(
    WANTED, PROGRAM, READY, offered=OFFERED, session=SESSION, server=READY, there="", here=""
)


def checks_of(**changes):
    return all_checks(replace(SEEN, **changes))


def problems_of(**changes):
    problems = [each for each in checks_of(**changes) if each.state != OK]
    assert all(each.sentence and each.state in STATES for each in problems)
    return problems


def test_where_all_is_there_every_check_is_ok():
    assert problems_of() == []
    assert {each.where for each in checks_of()} == {"client", "share", "server"}


HOST = {
    "old fio": {"programs": {**READY.programs, "fio": "2.19"}},
    "fio that does not start": {"programs": {**READY.programs, "fio": "?"}},
    "fio without libaio": {"engines": ()},
    "fio of no use": {"without_fio": True, "programs": {}},
    "no cgroups on such a system": {"quotas": False, "proc": False, "system": "Darwin 22.6"},
    "no root": {"privileged": False},
    "no page cache": {"cache": ""},
    "mincore": {"cache": "mincore"},
    "no sockets": {"sockets": "no netlink"},
    "no usage": {"proc": False},
    "no usage on a Mac": {"proc": False, "psutil": None, "system": "Darwin 22.6"},
    "no cgroup": {"quotas": False},
    "no driver": {"driver": None},
    "broken folder": {"place": Place("/srv", "no space")},
    "full folder": {"place": Place("/srv", "", "ext4", True, 1 << 20)},
    "nearly full folder": {"place": Place("/srv", "", "ext4", True, 64 << 20)},
    "folder without O_TMPFILE": {"place": Place("/srv", "", "vfat", False, 1 << 40)},
    "fio alone, of Rocky": {"programs": {"fio": "3.33"}, "families": ("rocky", "rhel", "fedora")},
    "no program, of Windows": {
        **{"programs": {}, "families": ("win32",), "without_fio": True, "driver": None},
        "privileged": False,
    },
    "of macOS": {"programs": {}, "families": ("darwin",), "without_fio": True, "driver": None},
    "no program, of Rocky": {"programs": {}, "families": ("rocky", "rhel", "fedora")},
}
NO_IMPACKET = replace(PROGRAM, packages={"smbprotocol": "1.17"})
CHANGED_FINDINGS = {
    "no agent": {"request": replace(WANTED, agent="none"), "server": None},
    "wrong password": {
        "session": None,
        "login_trouble": Trouble("login", "nas: login: wrong password"),
    },
    "a share that is read-only": {"session": {**SESSION, "may_write": False}},
    "a share with 200 MB free": {"session": {**SESSION, "free_bytes": 200 << 20}},
    "a full share": {"session": {**SESSION, "free_bytes": 1 << 20}},
    "no share": {
        **{"offered": None, "session": None},
        "share_trouble": Trouble("unreachable", "refused"),
    },
    "no dialect": {"offered": {"dialects": [], "connect_seconds": 0.1}, "session": None},
    "firewalls": {"there": "no answer within 4 s", "here": "refused"},
    "ports unknown": {"there": None, "here": None},
    "no impacket": {"program": NO_IMPACKET},
    "no impacket for SMB1": {
        "program": NO_IMPACKET,
        "offered": {**OFFERED, "dialects": ["smb1", "2.0.2"]},
    },
    "clock a little ahead": {"ahead_seconds": 3.0},
    "clock ahead": {"ahead_seconds": 90.0},
    "clock far behind": {"ahead_seconds": -4000.0},
    "ASCII": {"program": replace(PROGRAM, encoding="ascii")},
    "ASCII of Windows": {
        "program": replace(PROGRAM, encoding="cp1252"),
        "client": replace(READY, families=("win32",)),
    },
    "no python3 there": {
        "server": None,
        "agent_trouble": Trouble("unreachable", "nas has no python3", "install python3 there"),
    },
}


def golden_problems(golden, name, **changes):
    golden(f"# {name}")
    for each in problems_of(**changes):
        golden(" | ".join((each.where, each.name, each.state, each.kind, each.sentence)))
        stages = ", ".join(each.stages)
        for every, words in ((BETWEEN_HOSTS, "between the hosts"), (OVER_SMB, "over SMB")):
            stages = stages.replace(", ".join(every), words)
        golden(f"    -> {each.remedy} ({stages})")


@pytest.mark.parametrize("side", ["client", "server"])
def test_what_one_host_lacks_is_told_with_its_remedy(golden, side):
    for name, without in HOST.items():
        golden_problems(golden, name, **{side: replace(READY, **without)})


def test_what_is_otherwise_is_told_with_its_remedy(golden):
    """A firewall has its direction; SMB1 is missing only where it is offered."""
    for name, changes in CHANGED_FINDINGS.items():
        golden_problems(golden, name, **changes)


def test_without_a_target_this_host_alone_is_judged():
    checks = all_checks(Findings(Request("/home/anna"), PROGRAM, READY))
    assert {each.where for each in checks} == {"client"}
    assert all(each.state == OK for each in checks)


@pytest.mark.parametrize(
    ("families", "command"),
    [
        (("ubuntu", "debian"), "apt install openssh-client"),
        (("fedora",), "dnf install openssh-clients"),
        (("opensuse-leap", "suse"), "zypper install openssh-clients"),
        (("alpine",), "apk add openssh-client"),
        (("arch",), "pacman -S openssh"),
        (("win32",), "winget install Microsoft.OpenSSH.Preview"),
        (("darwin",), "brew install openssh"),
        (("",), "install openssh-client"),
    ],
)
def test_the_command_is_that_of_the_distribution(families, command):
    assert install("ssh", families) == command


@pytest.mark.parametrize("fact_count, word", [(0, "no facts"), (7, "7 facts")])
def test_the_systems_own_smb_client_is_told_as_untested(fact_count, word):
    ready = replace(READY, smb_client=fact_count)
    (check,) = [each for each in checks_of(client=ready) if "SMB c" in each.name]
    assert word in check.sentence and "untested" in check.sentence
    assert (check.state == OK) == (fact_count > 0)


def test_where_the_agents_files_are_is_told_where_it_may_not_write_to_the_share():
    place = Place("/srv", "", "ext4", usable_bytes=9 << 30, beside="/var/tmp")
    (check,) = [e for e in checks_of(server=replace(READY, place=place)) if e.name == "folder"][1:]
    assert check.state == OK and "/var/tmp" in check.sentence
