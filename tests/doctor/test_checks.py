"""What was seen becomes one check each; whatever is missing names its remedy and its stages."""

from dataclasses import replace

import pytest

from bottleneck.doctor.checks import install, judged
from bottleneck.doctor.look import COSTS, MISSING, OK, STATES, Looked, Program, Trouble, Wanted
from bottleneck.target import parse
from probes.host.facts import Place, Readiness
from probes.records import Access

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
WANTED = Wanted("/home/anna", parse("//nas/media"), Access("anna", "x"), "ssh://anna@nas:2222")
SEEN = Looked(
    WANTED,
    PROGRAM,
    READY,
    offered=OFFERED,
    session={"dialect": "3.1.1", "signing": "aes-gmac", "encryption": None},
    server=READY,
    there="",
    here="",
)


def checks(**changes):
    return judged(replace(SEEN, **changes))


def bad(**changes):
    found = [each for each in checks(**changes) if each.state != OK]
    assert all(each.sentence and each.state in STATES for each in found)
    return found


def test_where_all_is_there_every_check_is_ok():
    assert bad() == []
    assert {each.where for each in checks()} == {"client", "share", "server"}


@pytest.mark.parametrize(
    ("without", "name", "state", "remedy"),
    [
        ({"programs": {**READY.programs, "fio": "2.19"}}, "fio", MISSING, "apt install fio"),
        ({"programs": {**READY.programs, "fio": "?"}}, "fio", MISSING, "apt install fio"),
        ({"engines": ()}, "fio", MISSING, "libaio"),
        ({"privileged": False}, "rights", COSTS, "root"),
        ({"cache": ""}, "page cache", COSTS, "Linux"),
        ({"sockets": "no netlink"}, "sockets", COSTS, "sock_diag"),
        ({"proc": False, "psutil": None}, "usage", COSTS, "psutil"),
        ({"quotas": False}, "cgroup", COSTS, "cgroup"),
        ({"driver": None}, "interface", COSTS, "host itself"),
        ({"place": Place("/srv", "no space")}, "folder", MISSING, "--"),
        ({"place": Place("/srv", "", "ext4", True, 1 << 20)}, "folder", MISSING, "free some space"),
        ({"place": Place("/srv", "", "ext4", True, 64 << 20)}, "folder", COSTS, "free some space"),
        ({"place": Place("/srv", "", "vfat", False, 1 << 40)}, "folder", COSTS, "cleanup"),
    ],
)
@pytest.mark.parametrize("side", ["client", "server"])
def test_what_one_host_lacks_is_told_with_its_remedy(side, without, name, state, remedy):
    (found,) = bad(**{side: replace(READY, **without)})
    assert (found.where, found.name, found.state) == (side, name, state)
    assert remedy in found.remedy
    assert found.stages or name in ("cgroup", "folder")


@pytest.mark.parametrize("programs", [{"fio": "3.33"}, {}])
def test_missing_programs_are_named_with_their_packages(programs):
    ready = replace(READY, programs=programs, families=("rocky", "rhel", "fedora"))
    found = {each.name: each for each in bad(client=ready, server=ready) if each.where == "server"}
    assert "dnf install samba-client" in found["smbclient"].remedy
    assert found["smbclient"].state == MISSING
    assert found["smartctl"].remedy == "dnf install smartmontools"
    assert ("fio" in found) == (not programs)


def test_a_server_with_the_product_needs_no_smbclient():
    assert (
        bad(server=replace(READY, programs={"fio": "3.33", "smartctl": "7"}), installed=True) == []
    )


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("Host key verification failed.", "ssh -p 2222 anna@nas"),
        ("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!", "ssh-keygen -R '[nas]:2222'"),
        ("anna@nas: Permission denied (publickey).", "ssh-copy-id -p 2222 anna@nas"),
        ("ssh: Could not resolve hostname nas", "name"),
        ("connect to host nas port 22: Connection refused", "sshd"),
        ("connect to host nas port 22: Connection timed out", "firewall"),
        ("sh: 1: python3: not found", "python3"),
        ("bash: python3: command not found", "python3"),
        ("SyntaxError: invalid syntax", "3.9"),
        ("something else", "ssh -o BatchMode=yes -p 2222 anna@nas"),
    ],
)
def test_what_ssh_says_becomes_a_command(words, remedy):
    trouble = Trouble("unreachable", f"the server's agent ended ({words})")
    (found,) = bad(server=None, agent_trouble=trouble)
    assert remedy in found.remedy
    assert found.kind == "unreachable" and found.state == MISSING


def test_without_an_agent_the_stages_between_hosts_are_missing():
    wanted = replace(WANTED, agent="none")
    (found,) = bad(wanted=wanted, server=None)
    assert "tcp" in found.stages and found.remedy == "--agent ssh://nas"


def test_without_a_target_this_host_alone_is_judged():
    alone = judged(Looked(Wanted("/home/anna"), PROGRAM, READY))
    assert {each.where for each in alone} == {"client"}
    assert all(each.state == OK for each in alone)


def test_what_the_share_says_is_told():
    trouble = Trouble("login", "nas: login: wrong password")
    (found,) = bad(session=None, login_trouble=trouble)
    assert (found.name, found.kind) == ("login", "login")
    (found,) = bad(offered=None, session=None, share_trouble=Trouble("unreachable", "refused"))
    assert (found.where, found.kind) == ("share", "unreachable")
    (found,) = bad(offered={"dialects": [], "connect_seconds": 0.1}, session=None)
    assert found.kind == "unreachable" and "file server" in found.sentence


def test_a_firewall_between_the_hosts_is_told_with_its_way():
    there, here = bad(there="no answer within 4 s", here="refused")
    assert (there.where, here.where) == ("server", "client")
    assert "tcp" in there.stages and "the server's firewall" in there.remedy
    assert here.stages == ("copies started by the server",)
    assert bad(there=None, here=None) == []


def test_smb1_is_missing_only_where_it_is_offered():
    program = replace(PROGRAM, packages={"smbprotocol": "1.17"})
    (found,) = bad(program=program)
    assert (found.name, found.state) == ("impacket", COSTS)
    offered = {**OFFERED, "dialects": ["smb1", "2.0.2"]}
    (found,) = bad(program=program, offered=offered)
    assert found.state == MISSING and "smb1" in found.remedy


@pytest.mark.parametrize(("ahead", "state"), [(3.0, OK), (90.0, COSTS), (-4000.0, COSTS)])
def test_clocks_that_differ_are_told(ahead, state):
    (clock,) = [each for each in checks(ahead_seconds=ahead) if each.name == "clock"]
    assert clock.state == state
    assert ("Kerberos" in clock.sentence) == (abs(ahead) > 300)


def test_an_encoding_without_blocks_costs_them():
    (found,) = bad(program=replace(PROGRAM, encoding="ascii"))
    assert found.name == "encoding" and found.remedy


@pytest.mark.parametrize(
    ("families", "command"),
    [
        (("ubuntu", "debian"), "apt install openssh-client"),
        (("fedora",), "dnf install openssh-clients"),
        (("opensuse-leap", "suse"), "zypper install openssh-clients"),
        (("alpine",), "apk add openssh-client"),
        (("arch",), "pacman -S openssh"),
        (("",), "install openssh-client"),
    ],
)
def test_the_command_is_that_of_the_distribution(families, command):
    assert install("ssh", families) == command
