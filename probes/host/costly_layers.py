"""What in the stack under a folder surely costs throughput, told with a remedy. Pure."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from probes.records import Details, HostSetting

USB_2_BITS_PER_SECOND = 480_000_000
ATTACHED = ("sata", "sas")
"""Where write_cache is the disk's own: RAID cards, hypervisors and USB bridges tell another."""
NARROW_RATIO = 0.9
"""Of what it could; closer than that is rounding."""
RESYNCS = ("resync", "recover", "check", "repair", "reshape")


def costly(layers: Sequence[Details]) -> Iterator[HostSetting]:
    """What costs, of `layers(folder)`: as records.HostSetting, top first; never raises.

    Untested where the layer itself is (macOS).
    """
    for layer in layers:
        for option, value, why, remedy in _of(layer):
            yield HostSetting(option, value, why, remedy, layer.get("tested") is not False)


def _of(layer: Details) -> Iterator[tuple[str, str, str, str]]:
    name = str(layer.get("name"))
    yield from _of_mount(name, layer)
    if layer.get("kind") == "md":
        yield from _of_raid(name, layer)
    if layer.get("kind") == "disk":
        yield from _of_disk(name, layer)
        yield from _of_link(name, layer)


def _of_mount(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    options = str(layer.get("mount_options") or "").split(",")
    if "sync" in options:
        why = "each write waits until the disk has it, and the next one waits for that"
        yield f"mount option of {name}", "sync", why, "mount it without: async is the default"
    if "dirsync" in options:
        why = "each file's creation and removal waits for the disk: it costs with small files"
        yield f"mount option of {name}", "dirsync", why, "mount it without"


def _of_raid(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    level = str(layer.get("raid_level") or "RAID")
    missing = _amount(layer, "degraded_disks")
    if missing:
        why = "what was on the missing disk has to be computed from all others"
        if level in ("raid1", "raid10"):
            why = "there are fewer disks to read from"
        remedy = f"replace it: mdadm --detail /dev/{name} tells which is missing"
        yield f"{level} {name}", f"degraded by {missing:.0f}", why, remedy
    action = layer.get("sync_action")
    if action in RESYNCS:
        rate = _amount(layer, "sync_bytes_per_second")
        at = f" at {rate / 1e6:.0f} MB/s" if rate else ""
        why = "it keeps all disks of the RAID busy while files are copied"
        remedy = "measure again when it is through; /proc/mdstat tells when"
        yield f"{level} {name}", f"{action}{at}", why, remedy


def _of_disk(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    attached = layer.get("transport") in ATTACHED
    if attached and layer.get("rotational") is True and layer.get("write_cache") == "write through":
        why = "each write waits for the platter to come round"
        remedy = f"hdparm -W1 /dev/{name}, where a power cut may cost what was written last"
        if layer["transport"] == "sas":
            remedy = f"sdparm --set=WCE /dev/{name}, where a power cut may cost the last writes"
        yield f"write cache of {name}", "off", why, remedy
    smart = layer.get("smart")
    if isinstance(smart, dict) and smart.get("passed") is False:
        why = "the disk itself expects to fail; such disks repeat reads again and again"
        yield f"health of {name}", "failing", why, "save what is on it, then replace it"


def _of_link(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    usb = _amount(layer, "usb_bits_per_second")
    if usb and usb <= USB_2_BITS_PER_SECOND:
        why = "USB 2 carries about 40 MB/s at most, whatever the disk could"
        remedy = "a USB 3 port and cable, and a disk or case that has USB 3"
        yield f"USB of {name}", f"{usb / 1e6:.0f} Mbit/s", why, remedy
    rate, able = _amount(layer, "link_bits_per_second"), _amount(layer, "link_able_bits_per_second")
    if rate and able and rate < NARROW_RATIO * able:
        most = f"{rate / 1e7:.0f} MB/s"
        why = f"disk and port could {able / 1e9:.1f} Gbit/s; it carries {most} at most"
        remedy = "cable and backplane: the kernel's log tells of errors for which it slowed down"
        yield f"SATA link of {name}", f"{rate / 1e9:.1f} Gbit/s", why, remedy
    pcie = layer.get("pcie")
    if layer.get("transport") == "nvme" and isinstance(pcie, dict):
        now, could = _amount(pcie, "bytes_per_second"), _amount(pcie, "able_bytes_per_second")
        if now and could and now < NARROW_RATIO * could:
            value = f"{_lanes(pcie, '')}, the disk could {_lanes(pcie, 'able_')}"
            why = f"the slot carries {now / 1e6:.0f} MB/s at most, of {could / 1e6:.0f} MB/s"
            yield f"PCI Express of {name}", value, why, "a slot with as many and as fast lanes"


def _lanes(pcie: Any, prefix: str) -> str:
    lanes, rate = _amount(pcie, f"{prefix}lanes"), _amount(pcie, f"{prefix}transfers_per_second")
    return f"x{lanes or 0:.0f} at {(rate or 0) / 1e9:g} GT/s"


def _amount(layer: Any, key: str) -> float | None:
    value = layer.get(key)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if fits and 0 <= value < float("inf") else None
