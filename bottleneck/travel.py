"""The program that travels: a zip of the agent and its probes, and the line of Python that runs it.

Nothing is written on the other host: the modules are loaded from memory.
"""

from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path

import bottleneck
import probes

STAYS_HOME = (
    *("probes/smb/", "probes/smb_", "probes/small_files.py"),
    *("probes/drivers/", "probes/tcp_by_"),
)
"""Needs libraries that the other host has not; the drivers that need none are named next."""
TRAVELS_ALL_THE_SAME = tuple(f"probes/drivers/{n}.py" for n in ("__init__", "fio", "smbclient"))

CARRIED = (
    *("__init__", "agent", "agent_checks", "agent_limits", "agent_requests"),
    *("bounded", "typed", "wire"),
)
"""The modules of the coordinator's package that the agent needs."""

_STARTER_SOURCE = """
import importlib.abc,importlib.util,io,os,sys,zipfile
def take(n):
 b=b""
 while len(b)<n:
  c=os.read(0,n-len(b))
  if not c: sys.exit(1)
  b+=c
 return b
n=b""
while not n.endswith(b"\\n"): n+=take(1)
z=zipfile.ZipFile(io.BytesIO(take(int(n))))
class Carried(importlib.abc.InspectLoader):
 s={n:z.read(n).decode() for n in z.namelist()}
 def is_package(self,n): return n.replace(".","/")+"/__init__.py" in self.s
 def get_source(self,n):
  p=n.replace(".","/")
  return self.s.get(p+"/__init__.py",self.s.get(p+".py"))
 def find_spec(self,n,path=None,target=None):
  if self.get_source(n) is not None: return importlib.util.spec_from_loader(n,self)
sys.dont_write_bytecode=True
sys.meta_path.insert(0,Carried())
from bottleneck.agent import main
main()
"""
"""Reads the zip's length and the zip from stdin, then serves on the same stream."""

STARTER = (
    'exec(__import__("base64").b64decode("'
    + base64.b64encode(_STARTER_SOURCE.encode()).decode()
    + '"))'
)
"""The same as one line without a single quote, a newline or a `!`: any login shell passes it on."""


def names_and_sources() -> dict[str, bytes]:
    """Path in the zip and source of each module that travels."""
    root = Path(bottleneck.__file__).parent
    carried = {f"bottleneck/{n}.py": (root / f"{n}.py") for n in CARRIED}
    probes_root = Path(probes.__file__).parent
    for path in sorted(probes_root.rglob("*.py")):
        name = f"probes/{path.relative_to(probes_root).as_posix()}"
        if name in TRAVELS_ALL_THE_SAME or not name.startswith(STAYS_HOME):
            carried[name] = path
    return {name: path.read_bytes() for name, path in carried.items()}


def program() -> bytes:
    """What is sent into a started STARTER: the length of a zip, a newline, the zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, source in names_and_sources().items():
            bundle.writestr(name, source)
    return b"%d\n" % packed.tell() + packed.getvalue()
