"""Reads hosts and groups of an Ansible inventory by ansible-inventory.

Ansible's own program reads the file, because it knows its formats, plugins and vaults.
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
"""Configuration if there is none: else Ansible would use that of the current folder."""
QUIETLY = {
    "ANSIBLE_DEBUG": "0",
    "ANSIBLE_KEEP_REMOTE_FILES": "0",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_VERBOSITY": "0",
}
"""Settings that keep a module's arguments, which hold the password, from logs and remote files."""
_NAME = re.compile(r"[^@/\0.{][^@/\0{]{0,120}")
INSTALL = "install ansible-core: uv tool install '.[fleet]' in a clone"


@dataclass(frozen=True)
class Inventory:
    """Hosts by group, those of inner groups included."""

    groups: Mapping[str, tuple[str, ...]]

    def hosts(self, group: str, option: str) -> tuple[str, ...]:
        """Returns the hosts of a group. Raises Refused, "usage": it has none."""
        members = self.groups.get(group, ())
        if not members:
            raise Refused(
                "usage", f"{option} {group[:40]}: no hosts of that group in the inventory"
            )
        return members


def program(name: str) -> str:
    """Returns the path of a program of ansible-core: beside this Python, or the system's.

    Raises Refused, "usage": it is not installed.
    """
    beside = Path(sys.executable).parent / name
    path = str(beside) if os.access(beside, os.X_OK) else tools.find(name)
    if path is None:
        raise Refused("usage", f"{name} not found; {INSTALL}")
    return path


def folder_of(path: Path) -> Path:
    """Returns the folder of an inventory, in which Ansible starts, as its relative paths expect."""
    path = path.absolute()
    return path if path.is_dir() else path.parent


def environment(path: Path) -> dict[str, str]:
    """Returns the environment of Ansible's programs for an inventory.

    It sets the configuration: an ansible.cfg in the current folder could name any code. Raises
    Refused, "usage": others can change the inventory or the user's configuration.
    """
    paths = (os.environ.get("ANSIBLE_CONFIG", ""), *CONFIGS)
    configs = [Path(each).expanduser().absolute() for each in paths if each]
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
    """Reads an inventory. Raises Refused, "usage", with Ansible's last error."""
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
        listing = bounded.loads(done.stdout)
    except bounded.NotBounded as error:
        raise Refused("usage", f"INVENTORY {path}: {error}") from None
    groups = groups_of(listing)
    if done.returncode or not any(groups.values()):
        words = done.stderr.decode("utf-8", "replace").split("\n")
        last = next((each for each in words if "ERROR" in each or "Unable" in each), "no hosts")
        raise Refused("usage", f"INVENTORY {path}: {last.strip()[:200]}")
    return Inventory(groups)


def groups_of(listing: Any) -> dict[str, tuple[str, ...]]:
    """Returns the groups in the output of `ansible-inventory --list`."""
    listing = listing if isinstance(listing, dict) else {}

    def hosts(name: str, above: tuple[str, ...]) -> dict[str, None]:
        group = listing.get(name)
        if not isinstance(group, dict) or name in above:
            return {}
        members = dict.fromkeys(str(each) for each in group.get("hosts") or ())
        for inner in group.get("children") or ():
            members.update(hosts(str(inner), (*above, name)))
        return members

    return {str(name): tuple(hosts(str(name), ())) for name in listing if name != "_meta"}


def fleet(
    inventory: Inventory,
    clients: str | None,
    servers: Iterable[str],
    segments: Mapping[Kind, Iterable[str]],
) -> Fleet:
    """Returns the fleet: the clients of a group and the shares' servers, which are no clients.

    segments: groups behind an uplink or at a switch. Raises Refused, "usage": a group has no hosts.
    """
    stores = tuple(dict.fromkeys(servers))
    usual = USUAL_CLIENTS if inventory.groups.get(USUAL_CLIENTS) else "all"
    members = inventory.hosts(clients or usual, "--clients")
    client_names = tuple(each for each in members if each not in stores)
    for each in client_names:
        # Reports are named after the clients.
        if not _NAME.fullmatch(each):
            raise Refused(
                "usage", f"INVENTORY: {each[:40]!r} cannot be the name of a report's file"
            )
    if not client_names:
        raise Refused("usage", "no clients in the inventory beside the servers")
    segments_found = tuple(
        Segment(Node(kind, name), frozenset(inventory.hosts(name, f"--{kind}")))
        for kind, names in segments.items()
        for name in names
    )
    return Fleet(client_names, stores, segments_found)
