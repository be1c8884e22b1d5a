"""Folders: the mount that shows them, the device below, what is not told is None."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="operator,union-attr"

import os

from probes.host import folders

MOUNTINFO = """\
23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard
24 23 0:5 / /proc rw,nosuid - proc proc rw
30 23 8:17 / /srv/my\\040files rw,noatime shared:9 - xfs /dev/sdb1 rw,attr2,noatime
31 23 0:44 / /srv/pool rw,relatime - btrfs /dev/no-such-device rw,space_cache=v2,subvol=/
32 23 0:45 / /srv rw,relatime - tmpfs none rw
33 30 0:46 / /srv/my\\040files rw - fuse.sshfs user@host:/ rw,user_id=0
"""
ENTRIES = folders.parse_mountinfo(MOUNTINFO)


def test_a_mount_is_parsed_with_blanks_in_its_name_and_each_option_once():
    entry = ENTRIES[2]
    assert (entry.point, entry.filesystem, entry.device_number) == ("/srv/my files", "xfs", "8:17")
    assert entry.options == "rw,noatime,attr2"


def test_the_longest_mount_shows_a_folder_and_of_equal_ones_the_last():
    assert folders.mount_of("/home/user", ENTRIES).point == "/"
    assert folders.mount_of("/srv/pool/a", ENTRIES).filesystem == "btrfs"
    assert folders.mount_of("/srv/my files/a", ENTRIES).filesystem == "fuse.sshfs"


def test_a_name_that_only_begins_alike_is_another_folder():
    assert folders.mount_of("/srv/pool2", ENTRIES).point == "/srv"


def test_no_block_device_is_none():
    assert folders.device_of(ENTRIES[4]) is None
    assert folders.device_of(ENTRIES[3]) is None
    assert folders.rotational_of("no-such-device") is None


def test_a_real_folder_is_told(tmp_path):
    facts = folders.folder_facts(str(tmp_path))
    assert facts.path == str(tmp_path)
    assert facts.filesystem
    assert facts.total_bytes >= facts.free_bytes > 0


def test_a_link_is_followed_to_what_it_lies_on(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/proc")
    assert folders.folder_facts(str(link)).filesystem == "proc"
    assert folders.folder_facts(str(link)).device is None


def test_the_stack_begins_with_the_file_system(tmp_path):
    words = folders.stack(str(tmp_path))
    assert words[0] == folders.folder_facts(str(tmp_path)).filesystem
    device = folders.folder_facts(str(tmp_path)).device
    assert device is None or words[1] == device


def test_a_folder_that_is_gone_keeps_its_mount_and_has_no_room(tmp_path):
    facts = folders.folder_facts(str(tmp_path / "gone"))
    assert facts.filesystem == folders.folder_facts(str(tmp_path)).filesystem
    assert facts.free_bytes is None


def test_root_is_a_mount_of_its_own():
    assert folders.mount_of(os.sep, ENTRIES).point == "/"
