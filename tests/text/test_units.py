"""Figures for people, and back."""

import threading

import pytest

from bottleneck.text import units
from bottleneck.text.units import parse_rate, parse_seconds, parse_size


@pytest.mark.parametrize(
    ("write", "examples"),
    [
        (units.rate_text, "23600000=23.6 MB/s 25e6=25.0 MB/s 117.69e6=118 MB/s 1.17e9=1.17 GB/s"),
        (units.rate_text, "999.6e6=1.00 GB/s 999.4e6=999 MB/s 250e3=250 kB/s 4200=4.20 kB/s"),
        (units.rate_text, "0=0 kB/s 99.96e6=100 MB/s 1234e9=1234 GB/s"),
        (units.fine_rate_text, "117.685e6=117.7 MB/s 1.2376e9=1.238 GB/s 25e6=25.00 MB/s"),
        (units.bit_rate_text, "117.7e6=942 Mbit/s"),
        (units.link_text, "1e8=100 Mbit/s 2.5e9=2.5 Gbit/s 56000=56 kbit/s"),
        (units.explorer_text, "105e6=100 MB/s"),
        (units.size_text, "268435456=256 MiB 1610612736=1.5 GiB 2199023255552=2 TiB"),
        (units.size_text, "65536=64 KiB 12=12 B 0=0 B"),
        (units.seconds_text, "0=0 s 8.12=8.12 s 0.0124=12.4 ms 350e-6=350 \u00b5s 125=2 min 5 s"),
        (units.percent_text, "0.314=31%"),
        (units.times_text, "1.4=1.4x 9.96=10x"),
        (units.count_text, "31.06=31.1 310=310 10000=10,000"),
        (units.cost_text, "1.9e-9=1.9 s/GB 0=0 s/GB"),
    ],
)
def test_a_quantity_has_three_digits_and_its_unit(write, examples):
    pairs = [each.partition("=") for each in pairs_of(examples)]
    assert [write(float(value)) for value, _, _ in pairs] == [text for _, _, text in pairs]


def pairs_of(text):
    """`1=1 B 2=2 B` at the blanks before a figure with its sign."""
    words, pairs = text.split(" "), []
    for word in words:
        pairs = [*pairs, word] if "=" in word else [*pairs[:-1], f"{pairs[-1]} {word}"]
    return pairs


def test_a_range_has_one_unit_and_one_figure_where_both_read_the_same():
    assert units.range_text(24.8e6, 25.1e6) == "24.8\u201325.1 MB/s"
    assert units.range_text(900e6, 1.1e9) == "0.900\u20131.10 GB/s"
    assert units.range_text(25.01e6, 25.02e6) == "25.0 MB/s"
    assert units.range_text(100, 200) == "0.100\u20130.200 kB/s"


@pytest.mark.parametrize(
    ("parse", "spellings", "value"),
    [
        (parse_seconds, "0.5ms", 5e-4),
        (parse_seconds, "149 ms", 0.149),
        (parse_seconds, "250us", 2.5e-4),
        (parse_seconds, "2 min", 120),
        (parse_size, "256MiB", 256 << 20),
        (parse_size, "1.5 GiB", 3 << 29),
        (parse_size, "1048576", 1 << 20),
        (parse_size, "512 kB", 512_000),
        (parse_size, "100B", 100),
        (parse_size, " 2TiB ", 2 << 40),
        (parse_size, "1 GB|1gB|1gbytes|1 Gbytes|1000MB|1000000kB", 10**9),
        (parse_size, "1GiB|1giB|1 GIB|1024MiB|1048576KiB", 2**30),
        (parse_rate, "100MB/s|800Mbit/s", 100e6),
        (parse_rate, "110 MiB/s", 110 * 2**20),
        (parse_rate, "1Gbit/s", 125e6),
        (parse_rate, "2.5 Gbit/s", 312.5e6),
        (parse_rate, "8bit/s", 1),
        (parse_rate, "100Mbitps|100Mbit/s", 12.5e6),
        (parse_rate, "1 MB/s|1MBps|1000 kB/s|1Mbytes/s|8Mbit/s|8Mbitsps", 10**6),
    ],
)
def test_a_quantity_is_read_in_each_of_its_spellings(parse, spellings, value):
    for text in spellings.split("|"):
        assert parse(text) == pytest.approx(value)


# fmt: off
REFUSED = {
    parse_seconds: ("", "5", "0 ms", "-1ms", "1 ns", "1h", "1e9 s", "9" * 30 + "s"),
    parse_size: (
        "", "fast", "-1GB", "0", "1e9", "1 GB extra", "5iB", "9" * 40 + "TB", "\u0661GB",
        "1GB\n2", "1gb", "1Gbit", "1,5GB", ".5GB", "1.GB", "+1GB", "1_000", "5i", "0.5",
        "0.1B", "0x10",
    ),
    parse_rate: (
        "", "fast", "-1MB/s", "0MB/s", "100MB", "100 MB/s/s", "nan MB/s", "5iB/s", "1MB/S",
        "1MB/m", "1 MB / s", "1e3MB/s", "Mbit/s", "1/m",
    ),
}
# fmt: on


@pytest.mark.parametrize(("parse", "text"), [(p, text) for p in REFUSED for text in REFUSED[p]])
def test_what_needs_a_guess_is_refused_in_one_plain_line(parse, text):
    with pytest.raises(units.UnitError) as refused:
        parse(text)
    assert repr(text[:40]) in str(refused.value)
    assert "two ways" not in str(refused.value)


@pytest.mark.parametrize(
    ("parse", "text", "ways"),
    [
        *((parse_size, text, None) for text in ("100M", "1.5 G", "64k", "3Mi")),
        *((parse_rate, text, None) for text in ("100M", "100Mb/s", "1G/s")),
        (parse_rate, "100b/s", "100B/s or 100bit/s"),
        (parse_rate, "5kb/s", "5kB/s or 5kbit/s"),
        (parse_rate, "100Mbps", "100MB/s or 100Mbit/s"),
        (parse_rate, "2.5G", "2.5GB/s or 2.5Gbit/s"),
        (parse_rate, "100", "100MB/s or 100Mbit/s"),
    ],
)
def test_what_reads_two_ways_is_refused_with_both_at_its_own_size(parse, text, ways):
    like = r"two ways: write .*B or .*iB" if parse is parse_size else r"write .*B/s or .*bit/s"
    with pytest.raises(units.UnitError, match=like) as refused:
        parse(text)
    if ways:
        assert str(refused.value).endswith(f"write {ways}")
        for way in ways.split(" or "):
            parse(way)


@pytest.mark.parametrize(
    ("parse", "low", "high", "beyond"),
    [
        (
            parse_seconds,
            "0.001us",
            "1000000000000000000s",
            ("0.0009us", "0us", "0.0000000000001us"),
        ),
        (parse_rate, "0.001B/s", "1000TB/s", ("0.0009B/s", "0.007bit/s", "1001TB/s", "9" * 400)),
        (parse_size, "1B", "1000000TB", ("0B", "0.9B", "1000001TB")),
    ],
)
def test_what_is_read_is_from_the_least_to_the_most_that_can_be_computed_with(
    parse, low, high, beyond
):
    assert 0 < parse(low) < parse(high)
    for text in beyond:
        with pytest.raises(units.UnitError):
            parse(text)


@pytest.mark.parametrize("parse", [parse_seconds, parse_rate, parse_size])
@pytest.mark.parametrize("text", ["1" * 900, f"{'1' * 900}M", f"{'9' * 900}s", "x" * 900])
def test_an_error_repeats_the_beginning_of_a_long_text_alone(parse, text):
    with pytest.raises(units.UnitError) as refused:
        parse(text)
    assert repr(text[:40]) in str(refused.value) and len(str(refused.value)) < 220


# -- styles ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "rate", "text"),
    [
        ("iec", 23.6e6, "22.5 MiB/s"),
        ("bits", 23.6e6, "189 Mbit/s"),
        ("iec", 2**20, "1.00 MiB/s"),
        ("iec", 999.6 * 2**20, "0.976 GiB/s"),
        ("iec", 999.4 * 2**20, "999 MiB/s"),
        ("iec", 3 * 2**30, "3.00 GiB/s"),
        ("iec", 4096, "4.00 KiB/s"),
        ("iec", 0, "0 KiB/s"),
        ("bits", 125e6, "1.00 Gbit/s"),
        ("bits", 7000, "56.0 kbit/s"),
    ],
)
def test_a_rate_reads_in_the_style_that_is_on(style, rate, text):
    with units.shown_as(style):
        assert units.rate_text(rate) == text


@pytest.mark.parametrize("style", units.STYLES)
@pytest.mark.parametrize("rate", [1.0, 4200.0, 99.96e6, 117e6, 999.6e6, 1.17e9, 64e9])
def test_in_each_style_a_rate_survives_being_shown_and_read(style, rate):
    with units.shown_as(style):
        for write, exact in ((units.rate_text, 0.005), (units.fine_rate_text, 0.0006)):
            assert parse_rate(write(rate)) == pytest.approx(rate, rel=exact)
        figure = units.megabytes_text(rate).replace(",", "")
        if rate > 1e5:
            read = parse_rate(f"{figure} {units.megabytes_unit()}")
            assert read == pytest.approx(rate, rel=0.005)


def test_ranges_and_tables_follow_the_style():
    with units.shown_as("iec"):
        assert units.range_text(24.8e6, 25.1e6) == "23.7\u201323.9 MiB/s"
        assert (units.megabytes_text(1.17e9), units.megabytes_unit()) == ("1,116", "MiB/s")
        assert units.small_megabytes_text(1000) == "<0.001"
    with units.shown_as("bits"):
        assert units.range_text(24.8e6, 25.1e6) == "198\u2013201 Mbit/s"
        assert units.small_megabytes_text(1000) == "0.00800"
    assert units.small_megabytes_text(999) == "<0.001"


def test_bits_stand_beside_a_network_once():
    assert units.rate_and_bits_text(117.5e6) == "118 MB/s (940 Mbit/s)"
    with units.shown_as("bits"):
        assert units.rate_and_bits_text(117.5e6) == "940 Mbit/s"
        assert units.bits_beside(117.5e6) == ""


def test_a_style_ends_with_its_block_and_holds_in_its_own_thread_alone():
    other_units = []
    with units.shown_as("iec"):
        with units.shown_as("bits"):
            assert units.megabytes_unit() == "Mbit/s"
            other = threading.Thread(target=lambda: other_units.append(units.megabytes_unit()))
            other.start()
            other.join()
        with pytest.raises(ValueError, match="broke"), units.shown_as("bits"):
            raise ValueError("broke")
        assert units.megabytes_unit() == "MiB/s"
    assert units.megabytes_unit() == "MB/s" and other_units == ["MB/s"]


@pytest.mark.parametrize(
    ("style", "begin", "ends"),
    [
        ("si", "MB/s is", ["1 MB/s", "10 GB/s"]),
        ("iec", "MiB/s is", ["1 MiB/s", "10 GiB/s"]),
        ("bits", "Mbit/s is", ["10 Mbit/s", "100 Gbit/s"]),
    ],
)
def test_bars_have_round_ends_and_the_footnote_says_what_explorer_shows(style, begin, ends):
    with units.shown_as(style):
        note = units.explorer_note(105 * 10**6)
        assert [units.rate_text(each, 1) for each in units.scale_ends()] == ends
        assert note.endswith(f"{units.rate_text(105e6)} is 100 MB/s there.")
    assert note.startswith(begin)
