"""A host tells what a run would use, and nothing is written for it."""

import os

import pytest

from probes.host import readiness

ENGINES = "Available IO engines:\n\tcpuio\n\tio_uring\n\tio_uring_cmd\n\tlibaio\n"


def test_engines_are_read_by_their_whole_names():
    assert readiness.parse_engines(ENGINES) == ("libaio", "io_uring")
    assert readiness.parse_engines("\tio_uring_cmd\n\tposixaio\n") == ()
    assert readiness.parse_engines("") == ()


def test_os_release_loses_its_quotes():
    text = "# comment\nID=\"opensuse-leap\"\nID_LIKE='suse opensuse'\nBROKEN\nX=a=b\n"
    told = readiness.parse_os_release(text)
    assert told == {"ID": "opensuse-leap", "ID_LIKE": "suse opensuse", "X": "a=b"}


def test_this_host_answers(tmp_path):
    told = readiness.readiness(folder=str(tmp_path))
    assert told.name and told.python and told.families
    assert told.place.trouble == "" and told.place.filesystem
    assert told.privileged == (os.geteuid() == 0)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["/no/such", "/etc/passwd", "relative/none"])
def test_where_nothing_can_be_written_it_says_so(path):
    assert readiness.readiness(folder=path).place.trouble


@pytest.mark.parametrize("share", ["", "-s", "--help", "no such share", "a\nb"])
def test_the_name_of_a_share_is_no_option(share):
    assert readiness.readiness(share=share).share_folder is None
