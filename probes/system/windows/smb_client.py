"""Asks Windows about its SMB client: PowerShell's cmdlets, and the registry. Changes nothing."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import winreg
from contextlib import suppress
from typing import Dict

from probes.system import tools

POWERSHELL = ("powershell", "-NoProfile", "-NonInteractive", "-Command")
# Get-SmbConnection prints nothing without an administrator's rights. Modules in a user's own folder
# are not loaded.
SCRIPT = """
$env:PSModulePath = $PSHOME + '\\Modules'
[Console]::OutputEncoding = [Text.Encoding]::UTF8
Get-SmbClientConfiguration | fl * | Out-String -Width 400
Get-SmbConnection | fl ServerName,Dialect,Signed,Encrypted | Out-String -Width 400
Get-SmbMultichannelConnection -IncludeNotSelected | fl * | Out-String -Width 400
Get-NetTCPSetting -SettingName Internet | fl SettingName,AutoT* | Out-String -Width 400
"""
PROFILE = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile"
TCP = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters"
VALUES = ((PROFILE, "NetworkThrottlingIndex"), (TCP, "TcpWindowSize"), (TCP, "Tcp1323Opts"))


def cmdlets_output(limit_seconds: float) -> str:
    """Returns the cmdlets' output, each a list; empty: no PowerShell, or it took too long."""
    script = "; ".join(SCRIPT.strip().splitlines())
    return tools.program_output((*POWERSHELL, script), limit_seconds)


def registry() -> Dict[str, str]:
    """Returns the machine's values that are set and are numbers."""
    values = {}
    rights = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
    for key, name in VALUES:
        with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key, 0, rights) as opened:
            value, kind = winreg.QueryValueEx(opened, name)
            values[name] = str(value) if kind == winreg.REG_DWORD else ""
    return {name: value for name, value in values.items() if value}
