"""A share that is really mounted: smbnetfs, over libsmbclient, on a Samba of its own.

Usage: unshare --net python smb_mount.py SHARED POINT. Prints the process ids of smbd (which is its
group's too) and of the mount's daemon, and the mounted folder; takes everything down when stdin
closes. A network namespace of its own, because that SMB client knows port 445 alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from probes.programs.samba import private_samba

ADDRESS = "127.0.0.1"
PASSWORD = "p"
START_SECONDS = 15.0


def serve(shared: str, point: Path) -> None:
    """Shares a folder, mounts the share below point, and stays until stdin closes."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with (
        private_samba(shared, password=PASSWORD, port=445) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        configure(Path(home, ".smb"), ADDRESS, server.username, PASSWORD)
        daemon = subprocess.Popen(
            ["smbnetfs", "-f", str(point)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "HOME": home},
        )
        try:
            folder = point / ADDRESS / server.share
            _wait_for(folder)
            print(server.process_id, daemon.pid, folder, flush=True)
            sys.stdin.read()
        finally:
            # Its helpers too, which leave it and not its group.
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
            subprocess.run(["umount", "-l", str(point)], check=False)


def configure(folder: Path, address: str, username: str, password: str) -> None:
    """Writes what smbnetfs reads in the .smb of its HOME."""
    folder.mkdir(mode=0o700)
    files = {
        "smb.conf": "[global]\nclient min protocol = SMB2\n",
        "smbnetfs.auth": f'auth "{address}" "{username}" "{password}"\n',
        "smbnetfs.conf": 'include "smbnetfs.auth"\n',
    }
    for name, text in files.items():
        (folder / name).touch(0o600)
        (folder / name).write_text(text)


def _wait_for(folder: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            list(folder.iterdir())
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"{folder} did not come up")


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
