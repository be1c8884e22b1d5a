"""A host before the first stage: what runs there, on what, and towards whom."""

from __future__ import annotations

import os
import platform
import re
import socket
from dataclasses import replace
from pathlib import Path

from probes.host import cgroup, costly_layers, folders, interface, layers, tools
from probes.host.memory import read_memory
from probes.host.tcp_settings import tcp_settings
from probes.records import HostFacts

BUFFER_SYSCTLS = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
)

HYPERVISOR_VENDORS = {
    "qemu": "kvm",
    "kvm": "kvm",
    "vmware": "vmware",
    "innotek": "virtualbox",
    "virtualbox": "virtualbox",
    "xen": "xen",
    "amazon ec2": "amazon-ec2",
    "google": "google-compute",
    "openstack": "openstack",
    "bochs": "bochs",
    "parallels": "parallels",
    "apple virtualization": "apple",
    "bhyve": "bhyve",
    "digitalocean": "digitalocean",
    "hetzner": "hetzner",
    "microsoft corporation virtual machine": "hyper-v",
}
"""Beginnings of "vendor product" in DMI, in lower case."""

CONTAINER_WORDS = ("docker", "podman", "kubepods", "containerd", "lxc", "machine.slice")


def host_facts(toward: str, folder: str | None) -> HostFacts:
    """Facts of this host; what the system does not tell is None.

    toward: IP address of the peer, or empty. folder: an existing folder that copies use here.
    """
    pid = os.getpid()
    memory = read_memory()
    below = tuple(layers.layers(folder, ask_smart=True)) if folder is not None else ()
    return HostFacts(
        name=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        distribution=_distribution(),
        python=platform.python_version(),
        cores=_cores(),
        quota_cores=min((each.quota_cores for each in cgroup.quotas(pid)), default=None),
        memory_total_bytes=memory.total_bytes if memory else None,
        virtual=_virtual(),
        privileged=os.geteuid() == 0,
        interface=interface.interface_facts(toward) if toward else None,
        congestion_control=_sysctl("net.ipv4.tcp_congestion_control"),
        socket_buffers={
            name: value for name in BUFFER_SYSCTLS if (value := _sysctl(name)) is not None
        },
        folder=None if folder is None else replace(folders.folder_facts(folder), layers=below),
        tools=tools.versions(),
        tcp_settings=tcp_settings(),
        disk_settings=tuple(costly_layers.costly(below)),
    )


def parse_os_release(text: str) -> str | None:
    """PRETTY_NAME of /etc/os-release (os-release(5))."""
    found = re.search(r"^PRETTY_NAME=(['\"]?)(.*)\1\s*$", text, re.MULTILINE)
    return found[2] if found else None


def parse_hypervisor(cpuinfo: str, vendor: str | None, product: str | None) -> str | None:
    """The hypervisor below, by DMI's names, else by the flag that every x86 hypervisor sets."""
    name = f"{vendor or ''} {product or ''}".strip().lower()
    for beginning, hypervisor in HYPERVISOR_VENDORS.items():
        if name.startswith(beginning):
            return hypervisor
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE):
        return "hypervisor"
    return None


def parse_container(cgroup_text: str, markers: list[str]) -> str | None:
    """The container technology around us; markers: of the files and variables found."""
    for word in (*markers, *CONTAINER_WORDS):
        if word in markers or word in cgroup_text:
            return word
    return None


def _virtual() -> str | None:
    """Container, hypervisor, or both as "docker on kvm"."""
    dmi = Path("/sys/class/dmi/id")
    below = parse_hypervisor(
        _text("/proc/cpuinfo") or "",
        _text(str(dmi / "sys_vendor")),
        _text(str(dmi / "product_name")),
    )
    markers = []
    if Path("/.dockerenv").exists():
        markers.append("docker")
    if Path("/run/.containerenv").exists():
        markers.append("podman")
    named = _text("/run/systemd/container")
    if named:
        markers.insert(0, named)
    around = parse_container(_text("/proc/self/cgroup") or "", markers)
    return " on ".join(each for each in (around, below) if each) or None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _distribution() -> str | None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = _text(path)
        if text is not None:
            return parse_os_release(text)
    return None


def _sysctl(name: str) -> str | None:
    value = _text("/proc/sys/" + name.replace(".", "/"))
    return None if value is None else " ".join(value.split())


def _text(path: str) -> str | None:
    """A file's text without blanks around it; None: not there or not ours to read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
