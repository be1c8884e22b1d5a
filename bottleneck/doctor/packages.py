"""The command that installs a program, by the distribution that a host tells of."""

from __future__ import annotations

from collections.abc import Sequence

SMB1_EXTRA = "uv tool install 'copy-bottleneck[smb1]'"

_MANAGERS = {
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "dnf",
    "suse": "zypper",
    "opensuse": "zypper",
    "opensuse-leap": "zypper",
    "opensuse-tumbleweed": "zypper",
    "sles": "zypper",
    "alpine": "apk",
    "arch": "pacman",
}
"""By ID and ID_LIKE of os-release(5)."""
_COMMANDS = {
    "apt": "apt install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "apk": "apk add",
    "pacman": "pacman -S",
}
_NAMES = {
    ("smbclient", "dnf"): "samba-client",
    ("smbclient", "zypper"): "samba-client",
    ("smbclient", "apk"): "samba-client",
    ("smbd", ""): "samba",
    ("ssh", ""): "openssh-client",
    ("ssh", "dnf"): "openssh-clients",
    ("ssh", "zypper"): "openssh-clients",
    ("ssh", "pacman"): "openssh",
    ("smartctl", ""): "smartmontools",
    ("python3", "pacman"): "python",
}


def install(program: str, families: Sequence[str]) -> str:
    """As `apt install fio`; without a known manager, `install fio`."""
    manager = next((_MANAGERS[each] for each in families if each in _MANAGERS), "")
    name = _NAMES.get((program, manager)) or _NAMES.get((program, "")) or program
    return f"{_COMMANDS.get(manager, 'install')} {name}"
