"""The hosts of an Ansible inventory and their groups, as ansible-inventory tells them.

Ansible's own program reads the file: its formats, plugins and vaults are its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bottleneck.fleet.records import Fleet, Kind, Node, Segment
from probes.core import bounded
from probes.core.stage import Refused
from probes.system import tools

LIST_SECONDS = 60.0
USUAL_CLIENTS = "clients"
CONFIGS = ("~/.ansible.cfg", "/etc/ansible/ansible.cfg")
NO_CONFIG = Path(__file__).with_name("ansible.cfg")
"""Without any, Ansible takes that of the current folder."""
QUIETLY = {
    "ANSIBLE_DEBUG": "0",
    "ANSIBLE_KEEP_REMOTE_FILES": "0",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_VERBOSITY": "0",
}
"""A module's arguments, which hold the password, are neither shown nor left behind."""
_NAME = re.compile(r"[^@/\0.{][^@/\0{]{0,120}")
INSTALL = "install ansible-core: uv tool install '.[fleet]' in a clone"


@dataclass(frozen=True)
class Inventory:
    """Which hosts are in which group, those of inner groups with them."""

    groups: Mapping[str, tuple[str, ...]]

    def hosts(self, group: str, option: str) -> tuple[str, ...]:
        """The hosts of a group. Raises Refused, "usage", where it has none."""
        found = self.groups.get(group, ())
        if not found:
            raise Refused(
                "usage", f"{option} {group[:40]}: no hosts of that group in the inventory"
            )
        return found


def program(name: str) -> str:
    """The path of one of ansible-core's programs: beside this Python, or the system's.

    Raises Refused, "usage", where it is not installed.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if os.access(beside, os.X_OK) else tools.find(name)
    if found is None:
        raise Refused("usage", f"{name} not found; {INSTALL}")
    return found


def folder_of(path: Path) -> Path:
    """Of an inventory: Ansible starts there, so that relative paths in it mean what they say."""
    path = path.absolute()
    return path if path.is_dir() else path.parent


def environment(path: Path) -> dict[str, str]:
    """That of Ansible's programs for an inventory.

    It names the configuration: ansible.cfg of the folder that they start in may name any code.
    Raises Refused, "usage", where others can change the inventory or the user's configuration.
    """
    named = (os.environ.get("ANSIBLE_CONFIG", ""), *CONFIGS)
    configs = [Path(each).expanduser().absolute() for each in named if each]
    config = next((each for each in configs if each.exists()), NO_CONFIG)
    config = config / "ansible.cfg" if config.is_dir() else config
    path = path.absolute()
    folder = folder_of(path)
    inner = folder.rglob("*") if folder == path else folder.glob("*_vars/**/*")
    for each in (config, path.parent, path, *inner):
        if changed := tools.others_can_change(str(each), sticky=True):
            text = f"{changed} is writable by other users; use files in a folder of your own"
            raise Refused("usage", f"INVENTORY: {text}")
    return {**os.environ, **QUIETLY, "ANSIBLE_CONFIG": str(config)}


def read(path: Path) -> Inventory:
    """An inventory. Raises Refused, "usage", with Ansible's own last words where it is none."""
    if not path.exists():
        raise Refused("usage", f"INVENTORY {path}: not found")
    variables = environment(path)
    command = [program("ansible-inventory"), "--inventory", str(path.absolute()), "--list"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIST_SECONDS,
            cwd=folder_of(path),
            env=variables,
        )
    except subprocess.TimeoutExpired:
        raise Refused("usage", f"INVENTORY {path}: ansible-inventory does not end") from None
    try:
        told = bounded.loads(done.stdout)
    except bounded.NotBounded as error:
        raise Refused("usage", f"INVENTORY {path}: {error}") from None
    groups = groups_of(told)
    if done.returncode or not any(groups.values()):
        words = done.stderr.decode("utf-8", "replace").split("\n")
        last = next((each for each in words if "ERROR" in each or "Unable" in each), "no hosts")
        raise Refused("usage", f"INVENTORY {path}: {last.strip()[:200]}")
    return Inventory(groups)


def groups_of(told: Any) -> dict[str, tuple[str, ...]]:
    """The groups in what `ansible-inventory --list` prints."""
    told = told if isinstance(told, dict) else {}

    def hosts(name: str, above: tuple[str, ...]) -> dict[str, None]:
        group = told.get(name)
        if not isinstance(group, dict) or name in above:
            return {}
        found = dict.fromkeys(str(each) for each in group.get("hosts") or ())
        for inner in group.get("children") or ():
            found.update(hosts(str(inner), (*above, name)))
        return found

    return {str(name): tuple(hosts(str(name), ())) for name in told if name != "_meta"}


def fleet(
    of: Inventory,
    clients: str | None,
    servers: Iterable[str],
    segments: Mapping[Kind, Iterable[str]],
) -> Fleet:
    """The fleet: the clients of a group, and the servers of the shares; they are no clients.

    segments: groups that are behind an uplink or at a switch.
    Raises Refused, "usage", where a group has no hosts.
    """
    stores = tuple(dict.fromkeys(servers))
    usual = USUAL_CLIENTS if of.groups.get(USUAL_CLIENTS) else "all"
    named = of.hosts(clients or usual, "--clients")
    found = tuple(each for each in named if each not in stores)
    for each in found:
        # Reports are files of these names.
        if not _NAME.fullmatch(each):
            raise Refused(
                "usage", f"INVENTORY: {each[:40]!r} cannot be the name of a report's file"
            )
    if not found:
        raise Refused("usage", "no clients in the inventory beside the servers")
    made = tuple(
        Segment(Node(kind, name), frozenset(of.hosts(name, f"--{kind}")))
        for kind, names in segments.items()
        for name in names
    )
    return Fleet(found, stores, made)
