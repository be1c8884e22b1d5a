"""Host facts: real ones of this host, and pure parsing of what others would say."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="operator,union-attr"

import os
import socket

from probes.host import facts

CPUINFO = "model name\t: AMD EPYC\nflags\t\t: fpu vme rdrand hypervisor lahf_lm\nbugs\t\t:\n"


def test_a_distribution_names_itself():
    text = 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'
    assert facts.parse_os_release(text) == "Debian GNU/Linux 12 (bookworm)"
    assert facts.parse_os_release("PRETTY_NAME=Alpine\n") == "Alpine"
    assert facts.parse_os_release("") is None


def test_the_hypervisor_is_named_by_its_vendor_else_by_the_flag():
    assert facts.parse_hypervisor(CPUINFO, "QEMU", "Standard PC") == "kvm"
    assert facts.parse_hypervisor(CPUINFO, "Microsoft Corporation", "Virtual Machine") == "hyper-v"
    assert facts.parse_hypervisor(CPUINFO, None, None) == "hypervisor"


def test_a_machine_of_metal_is_not_virtual():
    metal = CPUINFO.replace(" hypervisor", "")
    assert facts.parse_hypervisor(metal, "Microsoft Corporation", "Surface Pro") is None
    assert facts.parse_hypervisor(metal, None, None) is None


def test_a_container_is_seen_by_its_marker_or_its_group():
    assert facts.parse_container("0::/\n", ["podman"]) == "podman"
    assert facts.parse_container("4:cpu:/kubepods/besteffort/pod1\n", []) == "kubepods"
    assert facts.parse_container("0::/user.slice\n", []) is None


def test_the_facts_of_this_host(tmp_path):
    told = facts.host_facts("127.0.0.1", str(tmp_path))
    assert told.name == socket.gethostname()
    assert told.cores == len(os.sched_getaffinity(0))
    assert told.privileged == (os.geteuid() == 0)
    assert told.interface.name == "lo"
    assert told.folder.path == str(tmp_path)
    assert told.memory_total_bytes > 0
    assert "net.ipv4.tcp_rmem" in told.socket_buffers


def test_what_was_not_asked_for_is_none():
    told = facts.host_facts("", None)
    assert told.interface is None
    assert told.folder is None
