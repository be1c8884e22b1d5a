"""Power saving is told where it costs, and not where a name alone sounds like it."""

import struct
from contextlib import contextmanager

import pytest

from probes.host import ethtool
from probes.programs.costly_settings import power_settings


@pytest.mark.parametrize(
    ("governor", "driver", "policy", "options"),
    [
        ("powersave", "acpi-cpufreq", "[default] performance powersave", ["CPU"]),
        ("userspace", "amd-pstate", "[default] performance powersave", ["CPU"]),
        ("powersave", "intel_pstate", "[default] performance powersave", []),
        ("schedutil", "acpi-cpufreq", "default [performance] powersave", []),
        ("schedutil", "acpi-cpufreq", "default performance [powersave]", ["PCI"]),
    ],
)
def test_a_governor_and_aspm_cost_where_they_hold_the_rate(
    tmp_path, governor, driver, policy, options
):
    folder = tmp_path / "devices/system/cpu/cpufreq/policy0"
    folder.mkdir(parents=True)
    (folder / "scaling_governor").write_text(governor + "\n")
    (folder / "scaling_driver").write_text(driver + "\n")
    parameters = tmp_path / "module/pcie_aspm/parameters"
    parameters.mkdir(parents=True)
    (parameters / "policy").write_text(policy + "\n")
    words = [each.option.split()[0] for each in power_settings(False, tmp_path)]
    assert words == options


@pytest.mark.parametrize("active", [0, 1])
def test_a_link_sleeps_if_both_ends_agreed_on_it(monkeypatch, tmp_path, active):
    answer = struct.pack("=10I", 0x44, 0x28, 0x28, 0x28, active, 1, 1, 17, 0, 0)

    @contextmanager
    def driver(name):
        yield lambda command, length: answer

    monkeypatch.setattr(ethtool, "_ask_function", driver)
    assert ethtool.sleeps("eth0") is bool(active)
    assert len(power_settings(bool(active), tmp_path)) == active
