"""Folders: the mount that shows them, the device below, what is not told is None."""

from pathlib import Path

import pytest

from probes.files import folders

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


def test_no_block_device_is_none():
    assert folders.device_of(ENTRIES[4]) is None
    assert folders.device_of(ENTRIES[3]) is None
    assert folders.rotational_of("no-such-device") is None


def test_a_link_is_followed_to_what_it_lies_on(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/proc")
    assert folders.folder_facts(str(link)).filesystem == "proc"
    assert folders.folder_facts(str(link)).device is None


def test_a_folder_that_is_gone_keeps_its_mount_and_has_no_room(tmp_path):
    facts = folders.folder_facts(str(tmp_path / "gone"))
    assert facts.filesystem == folders.folder_facts(str(tmp_path)).filesystem
    assert facts.free_bytes is None


TEXT = (Path(__file__).parents[1] / "recorded" / "mountinfo.txt").read_text()


def describe(path):
    return folders.parse(TEXT, path)


def test_a_cifs_mount_tells_server_share_and_dialect():
    mount = describe("/mnt/media/films/old")
    assert (mount.filesystem, mount.source, mount.point) == ("cifs", "//nas/media", "/mnt/media")
    assert (mount.server, mount.address, mount.share) == ("nas", "10.0.0.7", "media")
    assert mount.folder == "films\\old"
    assert mount.dialect == "3.1.1"
    assert mount.encryption and mount.signing is None
    assert mount.remote


def test_an_i_behind_the_authentication_means_signing():
    assert describe("/mnt/my films").signing
    assert describe("/mnt/prefix").signing is None


def test_blanks_tabs_and_backslashes_are_unescaped():
    mount = describe("/mnt/my films/a")
    assert (mount.share, mount.folder) == ("My Share", "films (old)\\a")
    assert (mount.server, mount.address, mount.dialect) == ("nas.example.org", "fd00::7", "2.1")
    assert describe("/mnt/tab\tand\\slash/x").server == "fd00::8"


def test_a_prefix_that_stands_in_source_and_root_counts_once():
    mount = describe("/mnt/prefix/2019")
    assert (mount.filesystem, mount.share, mount.folder) == ("smb3", "media", "films\\2019")
    assert mount.dialect == "3.0.2"


def test_a_bind_mount_of_a_folder_on_a_share_leads_to_that_folder():
    assert describe("/srv/bind/x").folder == "films\\2019\\x"
    assert describe("/srv/bind").share == "media"


def test_backslashes_in_the_source_name_a_share_too_and_a_password_is_left_out():
    mount = describe("/mnt/old")
    assert (mount.server, mount.share, mount.dialect) == ("nt4", "c$", "smb1")
    assert "hunter2" not in repr(mount) and "cache=loose" in mount.options


@pytest.mark.parametrize(
    ("path", "filesystem", "server", "address"),
    [
        ("/mnt/nfs/a", "nfs4", "nas", "10.0.0.7"),
        ("/mnt/ssh", "fuse.sshfs", "nas.example.org", None),
        ("/mnt/ssh6", "fuse.sshfs", "fd00::7", None),
        ("/mnt/9p", "9p", "10.0.0.8", None),
        ("/mnt/host", "9p", None, None),
        ("/mnt/browse/nas/media", "fuse.smbnetfs", None, None),
    ],
)
def test_other_network_mounts_are_remote_and_have_no_smb_dialect(path, filesystem, server, address):
    mount = describe(path)
    assert (mount.filesystem, mount.server, mount.address) == (filesystem, server, address)
    assert mount.remote
    assert (mount.share, mount.dialect, mount.signing, mount.encryption) == (None, None, None, None)


def test_gvfs_names_server_and_share_in_its_folder():
    mount = describe("/run/user/1000/gvfs/smb-share:server=nas,share=my%20films,user=anna/old")
    assert (mount.server, mount.share, mount.folder) == ("nas", "my films", "old")
    for other in ("", "/sftp:host=nas", "/smb-share:server=nas"):
        assert describe(f"/run/user/1000/gvfs{other}").share is None


@pytest.mark.parametrize(
    ("path", "filesystem"),
    [
        ("/home/anna/shared/x", "ext4"),
        ("/var/lib/docker/overlay2/x/merged", "overlay"),
        ("/media/usb", "fuseblk"),
        ("/mnt", "ext4"),
    ],
)
def test_what_lies_on_this_host_is_not_remote(path, filesystem):
    mount = describe(path)
    assert mount.filesystem == filesystem
    assert not mount.remote and mount.server is None and mount.share is None


@pytest.mark.parametrize(
    ("source", "options"), [("nas", "vers=default"), ("//", "vers=x"), ("//nas", "vers="), ("", "")]
)
def test_what_a_mount_does_not_tell_is_none(source, options):
    mount = folders.parse(f"41 23 0:51 / /m rw - cifs {source} rw,{options}\n", "/m")
    if mount is not None:
        assert (mount.share, mount.dialect) == (None, None)


def test_no_mount_is_none():
    assert folders.parse("", "/mnt") is None
