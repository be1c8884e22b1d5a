"""A file system of its own, on a loop device that is taken down again."""

import os
import shutil
import subprocess

import pytest

from tests.devices import loop_device


@pytest.fixture
def ext4_disk(tmp_path):
    """Where a fresh ext4 of 1 GiB is mounted, its loop device's name and the file behind it."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("a file system on a loop device needs root and mkfs.ext4")
    image, point = tmp_path / "image", tmp_path / "disk"
    point.mkdir()
    image.touch()
    os.truncate(image, 1 << 30)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    with loop_device(image) as node:
        subprocess.run(["mount", node, point], check=True)
        try:
            yield point, node.name, image
        finally:
            subprocess.run(["umount", point], check=True)
