"""Host facts: real ones of this host, and pure parsing of what others would say."""

import os
import socket

import pytest

from probes.host import facts

CPUINFO = "model name\t: AMD EPYC\nflags\t\t: fpu vme rdrand hypervisor lahf_lm\nbugs\t\t:\n"


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
    host = facts.host_facts("127.0.0.1", str(tmp_path))
    assert host.name == socket.gethostname()
    assert host.cores == len(os.sched_getaffinity(0))
    assert host.privileged == (os.geteuid() == 0)
    assert host.interface.name == "lo"
    assert host.folder.path == str(tmp_path)
    assert host.memory_total_bytes > 0
    assert "net.ipv4.tcp_rmem" in host.socket_buffers


ENGINES = "Available IO engines:\n\tcpuio\n\tio_uring\n\tio_uring_cmd\n\tlibaio\n"


def test_engines_are_read_by_their_whole_names():
    assert facts.parse_engines(ENGINES) == ("libaio", "io_uring")
    assert facts.parse_engines("\tio_uring_cmd\n\tposixaio\n") == ()
    assert facts.parse_engines("") == ()


def test_this_host_answers(tmp_path):
    host = facts.readiness(folder=str(tmp_path))
    assert host.name and host.python and host.families
    assert host.place.trouble == "" and host.place.filesystem
    assert host.privileged == (os.geteuid() == 0)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["/no/such", "/etc/passwd", "relative/none"])
def test_where_nothing_can_be_written_it_says_so(path):
    assert facts.readiness(folder=path).place.trouble


@pytest.mark.parametrize("share", ["", "-s", "--help", "no such share", "a\nb"])
def test_the_name_of_a_share_is_no_option(share):
    assert facts.readiness(share=share).place is None
