"""Stand-in for Windows' ssh.exe: a program of Windows that passes its streams to the ssh of
this host. As a program it is pip's starter of scripts, with this file behind it."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager, suppress

PORT = "BOTTLENECK_TEST_SSH_PORT"
SERVE = "serve"
"""Argument that starts this file on this host."""
CHUNK_BYTES = 1 << 16


@contextmanager
def planted(windows, ssh, enter=()):
    """ssh.exe where Windows has it; yields what its environment needs.

    ssh: the program that its streams are passed to. enter: a command that enters the network in
    which the client is; empty: this one.
    """
    from tests.windows.bed import windows_path

    program = windows.folder / "prefix/drive_c/windows/system32/OpenSSH/ssh.exe"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as bundle:
        bundle.write(__file__, "__main__.py")
    program.parent.mkdir(exist_ok=True)
    starter = windows.folder / "python/Lib/pip/_vendor/distlib/t64.exe"
    first = f"#!{windows_path(windows.python)} -I\r\n".encode()
    program.write_bytes(starter.read_bytes() + first + packed.getvalue())
    command = [*map(str, enter), sys.executable, __file__, SERVE, str(ssh)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    try:
        with subprocess.Popen(command, text=True, **pipes) as serving:
            yield {PORT: serving.stdout.readline().strip()}
            serving.stdin.close()
    finally:
        program.unlink()


def serve(ssh):
    """Runs ssh for each ssh.exe that calls, until stdin closes; says the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        threading.Thread(target=_end_with_stdin, daemon=True).start()
        while True:
            both, errors = (listening.accept()[0] for _ in range(2))
            threading.Thread(target=_run, args=(both, errors, ssh), daemon=True).start()


def _end_with_stdin():
    sys.stdin.read()
    os._exit(0)


def _run(both, errors, ssh):
    with both, errors, errors.makefile("rb") as words, suppress(OSError):
        command = [ssh, *json.loads(words.readline())]
        done = subprocess.run(command, stdin=both, stdout=both, stderr=errors, check=False)
        errors.sendall(b"\n%d" % done.returncode)


def main():
    """In Windows: what comes and goes, and at the end what ssh complained of; its exit code."""
    both, errors = (socket.create_connection(("127.0.0.1", int(os.environ[PORT]))) for _ in "be")
    errors.sendall(json.dumps(sys.argv[1:]).encode() + b"\n")

    def pass_in():
        with suppress(OSError):
            while chunk := os.read(0, CHUNK_BYTES):
                both.sendall(chunk)
            both.shutdown(socket.SHUT_WR)

    threading.Thread(target=pass_in, daemon=True).start()
    with suppress(ConnectionResetError):  # ssh has ended, and not read all that was sent
        while chunk := both.recv(CHUNK_BYTES):
            os.write(1, chunk)
    with errors.makefile("rb") as lines:
        *lines_before, code = lines.read().split(b"\n")
    os.write(2, b"\n".join(lines_before))
    # At once: a thread still reads.
    os._exit(int(code))


if __name__ == "__main__":
    if sys.argv[1:2] == [SERVE]:
        serve(sys.argv[2])
    main()
