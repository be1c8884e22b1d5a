"""Replaces names in a report's document by tokens, as each key demands.

Names are learned from keys that hold one; in sentences of errors and notes these are replaced, and
so is any text with the shape of a name (an address, a path). The diagnosis is computed again from
the result, so that its sentences need no search. Figures, and words that rules compare, stay.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from bottleneck.analysis.finding import Diagnosis
from bottleneck.records.redaction import texts
from bottleneck.report import report
from bottleneck.report.report import Report
from probes import STAGES


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


STAY = _keys(
    """
    status stage initiator copy verb cache requested side pattern end engine security dialect
    signing encryption signing_required_by encryption_required_by security_mode capabilities
    share_flags share_capabilities over connection ended_by by rtt_by kind matters_for
    engine_server told_by raid_level headline component cause standing about states
    sender better duplex bond_mode cold_source view kinds requests
    system distribution python virtual driver qdisc scheduler transport write_cache filesystem
    subtype usb_version congestion_control version fio_version server_time started observations
    schema ticket server_kind work
    """
)
"""Keys of words that rules compare, and of names of kernels, drivers and packages."""
STAYING_TABLES = frozenset(("socket_buffers", "tools", "tool", "smb_client"))
"""Objects all of whose texts stay."""
PATHS = _keys(
    """
    path folder target_folder server_folder backing_file local_path group file file_name
    mount_point quota_file tree bin
    """
)
FILES = frozenset(("file", "file_name"))
PLACES = frozenset(("address", "own_address", "peer_address", "reached_from", "host"))
DEVICES = frozenset(("device", "members", "stack", "disk", "label"))
MOUNTS = frozenset(("mount_options", "options"))
MODELS = frozenset(("model",))
SERIAL = re.compile(r"(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{12,}", re.IGNORECASE)
TOKENS = {"serial": "serial", "server_guid": "guid", "uuid": "guid", "mac": "address"}
"""Keys whose whole text is replaced, with the role of the token."""
NAMED_DISKS = frozenset(("layers", "disks"))
"""Lists whose objects' `name` is a disk's or a file system's."""
FILE_SYSTEM = re.compile(r"(tmp|ram)fs|overlay|zfs|btrfs|nfs4?|cifs|smb3|9p|fuse\.[a-z0-9_-]{1,32}")
"""File systems that are mounted without a named device."""
FIGURE_OR_SWITCH = re.compile(r"[\d.,:x]+[kKMGTB]{0,2}|on|off|auto|none|default")
"""Values of a mount option that are no names."""
KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.:\[\] /-]{0,63}")
MOUNT_WORDS = _keys(
    """
    vers sec cache soft hard local_lock errors data commit barrier discard nconnect proto
    iocharset compress subvolid space_cache mode_data upstream rsize wsize bsize
    """
)
MOUNT_NAMES = {
    **{"username": "user", "user": "user", "domain": "domain", "dom": "domain"},
    **{"addr": "address", "ip": "address", "clientaddr": "address", "mountaddr": "address"},
}
ROLES = {"--user": "user", "--domain": "domain"}
PATH_OPTIONS = _keys(
    """
    --folder --server-folder --auth-file --file --tree --report --baseline --output
    --json --html --ticket --junit --csv
    """
)
PROGRAM_WORDS = _keys(
    """
    docker podman kubectl lxc sudo ip netns exec nsenter env sh bash ssh python python3
    bottleneck agent chroot
    """
)
"""Words of a command that name nothing of this host."""
PLACE_OPTIONS = frozenset(("--client-share", "TARGET"))

Place = tuple[str, ...]
"""Keys from the document's top to a text, without indices in lists."""


class Redaction:
    """Redaction of one run: a name has the same token in all documents of the run."""

    def __init__(self) -> None:
        self.names = texts.Names()
        self.texts = texts.Texts(self.names)

    def learn(self, role: str, name: str) -> None:
        """Learns a name that has no field in a report: of a user, a domain or a host."""
        if role == "host":
            self._share(name) if name.startswith("//") else self.texts.host(name)
            return
        for index, part in enumerate(reversed(re.split(r"[\\/@]", name))):
            if part and part.casefold() not in texts.EVERYBODYS:
                self.names.token("domain" if index else role, part)

    def learn_this_host(self) -> None:
        """Learns this host and its user, which errors mention before there is a report."""
        if (name := socket.gethostname()).casefold() not in texts.ORDINARY:
            self.texts.host(name, "client-host")
        with suppress(KeyError, OSError):  # an account without a name needs no token
            if (user := getpass.getuser()).casefold() not in texts.ORDINARY:
                self.learn("user", user)

    def options(self, settings: Mapping[str, Any]) -> None:
        """Learns the names in options of a configuration, by parameter."""
        for name, value in settings.items():
            if isinstance(value, str):
                self._argument(f"--{name.replace('_', '-')}", value)

    def text(self, sentence: str) -> str:
        """Redacts a sentence for a person."""
        try:
            return self.texts.redacted_text(sentence)
        except texts.TooManyNames:
            return texts.GONE

    def document(self, document: dict[str, Any]) -> dict[str, Any]:
        """Redacts the document of report.to_json."""
        self._learn(document)
        # Twice: a sentence may hold a name that only a later field teaches.
        self._object(document, ())
        return self._object(document, ())

    def report(self, original: Report) -> Report:
        """Redacts a report. Errors: ReportError: it cannot be written."""
        try:
            document = self.document(report.to_json(original, Diagnosis(None, (), "")))
            return report.from_json(document)
        except texts.TooManyNames as error:
            raise report.ReportError(str(error)) from None

    def arguments(self, arguments: Sequence[str]) -> list[str]:
        """Redacts a command line: options stay, their values are replaced."""
        words: list[str] = []
        option = command = ""
        for each in arguments:
            name, equals, value = each.partition("=")
            if words in ([], ["bottleneck"]):
                command = each
                words.append(each)
            elif each.startswith("-"):
                words.append(f"{name}={self._argument(name, value)}" if equals else each)
                option = "" if equals else name
            else:
                usual = "--file" if command in ("explain", "compare") else "TARGET"
                words.append(self._argument(option or usual, each))
                option = ""
        return words

    def _argument(self, option: str, text: str) -> str:
        if option in ROLES:
            self.learn(ROLES[option], text)
            return self.text(text)
        if text.startswith("exec:") or option == "--native-command":
            return self._command(text)
        if text.startswith(("//", "\\\\")):
            return self.texts.unc(text, "server-host")
        if option in PATH_OPTIONS:
            return self._typed_path(text)
        if option in PLACE_OPTIONS and not (text.isdecimal() or text in STAGES or "://" in text):
            return self.names.token("path", text) if "/" in text else self.texts.place(text)
        return self.text(text)

    def _command(self, text: str) -> str:
        """Replaces a command by one token; words that may be names get their own too."""
        scheme = "exec:" if text.startswith("exec:") else ""
        command = text.removeprefix(scheme)
        for word in command.split():
            if word[0].isalnum() and word not in PROGRAM_WORDS:
                self.names.token("command", word)
        return f"{scheme}{self.names.token('command', command)}"

    def _typed_path(self, text: str) -> str:
        """Replaces a typed path; errors also show it normalized or absolute."""
        if text in ("", "-", "."):
            return text
        token = self.names.token("path", text)
        for other in (os.path.normpath(text), os.path.abspath(text)):  # noqa: PTH100 - as typed
            self.names.alias("path", other, token)
        return token

    def _learn(self, document: dict[str, Any]) -> None:
        """Learns the hosts first: their names occur in many other fields."""
        hosts, target = document.get("hosts") or {}, document.get("target") or {}
        for side in ("client", "server"):
            name = (hosts.get(side) or {}).get("name")
            if isinstance(name, str):
                self._host_name(name, side)
            if side == "client" and isinstance(target.get("share"), str):
                self._share(target["share"])

    def _host_name(self, name: str, side: str) -> str:
        return self.texts.host(name, f"{side}-host") if name else name

    def _share(self, text: str) -> str:
        if text.startswith(("//", "\\\\")):
            token = self.texts.unc(text, "server-host")
            # As a whole too: a share's name may have blanks, where a sentence would be split.
            for one, other in (("/", "\\"), ("\\", "/")):
                self.names.alias("share", text.replace(one, other), token.replace(one, other))
            return token
        return self.texts.path(text) if text.startswith(("/", ".")) else self.text(text)

    def _object(self, members: dict[str, Any], place: Place) -> dict[str, Any]:
        keys = {e: e if KEY.fullmatch(e) else self.names.token("key", e) for e in members}
        return {keys[key]: self._value(value, (*place, key)) for key, value in members.items()}

    def _value(self, value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            return self._object(value, place)
        if isinstance(value, (list, tuple)):
            if place[-2:] == ("tool", "command"):
                return self.arguments([str(each) for each in value])
            return [self._value(each, place) for each in value]
        return self._how(place)(value) if isinstance(value, str) else value

    def _how(self, place: Place) -> Callable[[str], str]:
        """Returns the function that redacts the text at a place."""
        key = place[-1]
        if key == "name":
            return self._how_named(place)
        if place[:1] == ("target",) and key == "share":
            return self._share
        if key in STAY or any(each in STAYING_TABLES for each in place[-2:-1]):
            return str
        return self._how_in_details(key)

    def _how_in_details(self, key: str) -> Callable[[str], str]:
        ways = (
            (FILES, self._file),
            (PATHS, self._path),
            (PLACES, self.texts.place),
            (DEVICES, self._device),
            (MOUNTS, self._mount_options),
            (MODELS, self._model),
            (("source",), self._source),
            (("interface", "server_interface"), self._interface),
            (("share",), self._share),
        )
        if key in TOKENS:
            return partial(self.names.token, TOKENS[key])
        return next((way for keys, way in ways if key in keys), self.text)

    def _how_named(self, place: Place) -> Callable[[str], str]:
        if len(place) == 3 and place[0] == "hosts":
            return partial(self._host_name, side=place[1])
        above = place[-2] if len(place) > 1 else ""
        if above in ("interface", "lower"):
            return self._interface
        return self._device if above in NAMED_DISKS else self.text

    def _path(self, text: str) -> str:
        if not text or text == "." or texts.is_token(text):
            return text
        return self.texts.path(text) if text[0] in "/~" else self.names.token("path", text)

    def _file(self, text: str) -> str:
        if text:
            base = re.split(r"[/\\]", text)[-1]
            token = self.names.find(text, "file") or self.names.find(base, "file")
            token = token or self.names.token("file", text)
            self.names.alias("file", text, token)
            self.names.alias("file", base, token)
            return token
        return text

    def _interface(self, text: str) -> str:
        return text if texts.is_interface(text) else self.names.token("interface", text)

    def _device(self, text: str) -> str:
        return text if FILE_SYSTEM.fullmatch(text) else self.texts.device(text)

    def _model(self, text: str) -> str:
        """Redacts a disk's model: text like a serial number is replaced."""
        cleaned = SERIAL.sub(lambda match: self.names.token("serial", match[0]), text[:80])
        return cleaned if re.fullmatch(r"[\w .()/+-]*", cleaned) else self.text(cleaned)

    def _source(self, text: str) -> str:
        """Redacts the source of a mount: //nas/media, nas:/media or a device."""
        if text.startswith(("//", "\\\\")):
            return self._share(text)
        host, colon, path = text.partition(":/")
        if colon:
            return f"{self.texts.place(host)}:/{self.names.token('path', path)}"
        return self._path(text) if "/" in text else self._device(text)

    def _mount_options(self, text: str) -> str:
        return ",".join(self._mount_option(each) for each in text.split(","))

    def _mount_option(self, text: str) -> str:
        key, equals, value = text.partition("=")
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", key):
            return texts.GONE
        if texts.address(value) is not None:
            return f"{key}={self.texts.place(value)}"
        if key in MOUNT_NAMES:
            role = MOUNT_NAMES[key]
            place = self.texts.place(value) if role == "address" else None
            return f"{key}={place or self.names.token(role, value)}"
        if not equals or key in MOUNT_WORDS or FIGURE_OR_SWITCH.fullmatch(value):
            return text
        return f"{key}={self.names.token('option', value)}"
