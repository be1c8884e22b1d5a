"""Figures for people, and back."""

import threading

import pytest

from bottleneck.reports import units


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (23.6e6, "23.6 MB/s"),
        (25e6, "25 MB/s"),
        (117.69e6, "118 MB/s"),
        (1.17e9, "1.17 GB/s"),
        (999.6e6, "1 GB/s"),
        (999.4e6, "999 MB/s"),
        (250e3, "0.25 MB/s"),
        (4200, "4.2 kB/s"),
        (0, "0 kB/s"),
        (99.96e6, "100 MB/s"),
        (1234e9, "1234 GB/s"),
    ],
)
def test_rates_have_three_digits_and_are_decimal(rate, text):
    assert units.rate_text(rate) == text


def test_computed_rates_have_four_digits():
    assert units.fine_rate_text(117.685e6) == "117.7 MB/s"
    assert units.fine_rate_text(1.2376e9) == "1.238 GB/s"
    assert units.fine_rate_text(25e6) == "25 MB/s"


@pytest.mark.parametrize(
    ("text", "seconds"), [("0.5ms", 5e-4), ("149 ms", 0.149), ("250us", 2.5e-4), ("2 min", 120)]
)
def test_times_are_read_with_their_unit(text, seconds):
    assert units.parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "0 ms", "-1ms", "1 ns", "1h", "1e9 s", "9" * 30 + "s"])
def test_times_that_say_nothing_are_refused(text):
    with pytest.raises(units.UnitError):
        units.parse_seconds(text)


def test_network_people_read_bits():
    assert units.bit_rate_text(117.7e6) == "942 Mbit/s"
    assert units.link_text(10**8) == "100 Mbit/s"
    assert units.link_text(25 * 10**8) == "2.5 Gbit/s"
    assert units.link_text(56_000) == "56 kbit/s"


def test_a_range_has_one_unit_and_one_figure_where_both_read_the_same():
    assert units.range_text(24.8e6, 25.1e6) == "24.8-25.1 MB/s"
    assert units.range_text(900e6, 1.1e9) == "0.9-1.1 GB/s"
    assert units.range_text(25.01e6, 25.02e6) == "25 MB/s"
    assert units.range_text(100, 200) == "0.1-0.2 kB/s"


def test_explorers_mb_are_mib():
    assert units.explorer_text(105 * 10**6) == "100 MB/s"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (256 << 20, "256 MiB"),
        (3 << 29, "1.5 GiB"),
        (2 << 40, "2 TiB"),
        (64 << 10, "64 KiB"),
        (12, "12 B"),
        (0, "0 B"),
    ],
)
def test_sizes_are_binary(size, text):
    assert units.size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (8.12, "8.12 s"), (0.0124, "12.4 ms"), (350e-6, "350 us"), (125, "2 min 5 s")],
)
def test_times(seconds, text):
    assert units.seconds_text(seconds) == text


def test_shares():
    assert units.percent_text(0.314) == "31 %"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("256MiB", 256 << 20),
        ("1GB", 10**9),
        ("1.5 GiB", 3 << 29),
        ("1048576", 1 << 20),
        ("512 kB", 512_000),
        ("100B", 100),
        (" 2TiB ", 2 << 40),
    ],
)
def test_sizes_are_read(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100MB/s", 100e6),
        ("110 MiB/s", 110 * 2**20),
        ("1Gbit/s", 125e6),
        ("2.5 Gbit/s", 312.5e6),
        ("8bit/s", 1),
        ("100Mbitps", 12.5e6),
    ],
)
def test_rates_are_read(text, rate):
    assert units.parse_rate(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["100M", "1.5 G", "64k", "3Mi"])
def test_a_size_that_reads_two_ways_is_refused_with_both(text):
    with pytest.raises(units.UnitError, match="two ways: write .*B or .*iB"):
        units.parse_size(text)


@pytest.mark.parametrize("text", ["100M", "100Mb/s", "100Mbps", "1G/s", "100"])
def test_a_rate_that_reads_two_ways_is_refused_with_both(text):
    with pytest.raises(units.UnitError, match=r"two ways: write .*B/s or .*bit/s"):
        units.parse_rate(text)


@pytest.mark.parametrize(
    "text", ["", "fast", "-1GB", "0", "1e9", "1 GB extra", "5iB", "9" * 40 + "TB", "١GB", "1GB\n2"]
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(units.UnitError):
        units.parse_size(text)


@pytest.mark.parametrize("text", ["", "fast", "-1MB/s", "0MB/s", "100MB", "100 MB/s/s", "nan MB/s"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(units.UnitError):
        units.parse_rate(text)


@pytest.mark.parametrize(
    ("parse", "least", "most", "beyond"),
    [
        (
            units.parse_seconds,
            "0.001us",
            "1000000000000000000s",
            ["0.0009us", "0us", f"0.{305 * '0'}1us"],
        ),
        (
            units.parse_rate,
            "0.001B/s",
            "1000TB/s",
            ["0.0009B/s", "0.007bit/s", "1001TB/s", "1" * 400 + "B/s"],
        ),
        (units.parse_size, "1B", "1000000TB", ["0B", "0.9B", "1000001TB"]),
    ],
)
def test_what_is_read_is_from_the_least_to_the_most_that_can_be_computed_with(
    parse, least, most, beyond
):
    assert 0 < parse(least) < parse(most)
    for text in beyond:
        with pytest.raises(units.UnitError):
            parse(text)


@pytest.mark.parametrize("parse", [units.parse_seconds, units.parse_rate, units.parse_size])
@pytest.mark.parametrize("text", ["1" * 900, f"{'1' * 900}M", f"{'9' * 900}s", "x" * 900])
def test_an_error_repeats_the_beginning_of_a_long_text_alone(parse, text):
    with pytest.raises(units.UnitError) as refused:
        parse(text)
    assert repr(text[:40]) in str(refused.value) and len(str(refused.value)) < 220


@pytest.mark.parametrize("rate", [1.0, 4200.0, 23.6e6, 117e6, 1.17e9])
def test_a_rate_survives_being_shown_and_read(rate):
    assert units.parse_rate(units.rate_text(rate)) == pytest.approx(rate, rel=0.005)


@pytest.mark.parametrize("text", ["1 GB", "1gB", "1gbytes", "1 Gbytes", "1000MB", "1000000kB"])
def test_one_size_has_many_spellings(text):
    assert units.parse_size(text) == 10**9


@pytest.mark.parametrize("text", ["1GiB", "1giB", "1 GIB", "1024MiB", "1048576KiB"])
def test_binary_sizes_have_as_many(text):
    assert units.parse_size(text) == 2**30


@pytest.mark.parametrize(
    "text",
    ["1gb", "1Gbit", "1,5GB", ".5GB", "1.GB", "+1GB", "1_000", "5i", "5iB", "0.5", "0.1B", "0x10"],
)
def test_a_size_that_needs_a_guess_is_refused_in_one_plain_line(text):
    with pytest.raises(units.UnitError) as refused:
        units.parse_size(text)
    assert repr(text) in str(refused.value)
    assert "two ways" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["1 MB/s", "1MBps", "1000 kB/s", "1Mbytes/s", "8Mbit/s", "8Mbitsps"]
)
def test_one_rate_has_many_spellings(text):
    assert units.parse_rate(text) == 10**6


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("100b/s", "100B/s or 100bit/s"),
        ("5kb/s", "5kB/s or 5kbit/s"),
        ("100Mbps", "100MB/s or 100Mbit/s"),
        ("2.5G", "2.5GB/s or 2.5Gbit/s"),
        ("100", "100MB/s or 100Mbit/s"),
    ],
)
def test_both_readings_of_a_rate_are_offered_at_its_own_size(text, ways):
    with pytest.raises(units.UnitError) as refused:
        units.parse_rate(text)
    assert str(refused.value).endswith(f"write {ways}")
    for way in ways.split(" or "):
        units.parse_rate(way)


@pytest.mark.parametrize(
    "text", ["5iB/s", "1MB/S", "1MB/m", "1 MB / s", "1e3MB/s", "Mbit/s", "1/m"]
)
def test_a_rate_that_needs_a_guess_is_refused(text):
    with pytest.raises(units.UnitError):
        units.parse_rate(text)


@pytest.mark.parametrize(
    ("text", "megabits"),
    [("100MB/s", 800), ("100Mbit/s", 100), ("1Gbit/s", 1000), ("100MiB/s", 838.8608)],
)
def test_bits_are_eighths_of_bytes_and_mega_is_decimal(text, megabits):
    rate = units.parse_rate(text)
    assert rate * 8 / 1e6 == pytest.approx(megabits)
    assert units.bit_rate_text(rate) == units.link_text(megabits * 1e6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.times_text(1.4), "1.4x"),
        (units.times_text(9.96), "10x"),
        (units.count_text(31.06), "31.1"),
        (units.count_text(310), "310"),
        (units.count_text(10_000), "10,000"),
        (units.cost_text(1.9e-9), "1.9 s/GB"),
        (units.cost_text(0), "0 s/GB"),
    ],
)
def test_ratios_counts_and_costs_are_short(text, expected):
    assert text == expected


# -- styles ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "rate", "text"),
    [
        ("si", 23.6e6, "23.6 MB/s"),
        ("iec", 23.6e6, "22.5 MiB/s"),
        ("bits", 23.6e6, "189 Mbit/s"),
        ("iec", 2**20, "1 MiB/s"),
        ("iec", 999.6 * 2**20, "0.976 GiB/s"),
        ("iec", 999.4 * 2**20, "999 MiB/s"),
        ("iec", 3 * 2**30, "3 GiB/s"),
        ("iec", 4096, "4 KiB/s"),
        ("iec", 0, "0 KiB/s"),
        ("bits", 125e6, "1 Gbit/s"),
        ("bits", 7000, "56 kbit/s"),
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
            assert units.parse_rate(write(rate)) == pytest.approx(rate, rel=exact)
        shown = units.megabytes_text(rate).replace(",", "")
        if rate > 1e5:
            read = units.parse_rate(f"{shown} {units.megabytes_unit()}")
            assert read == pytest.approx(rate, rel=0.005)


def test_ranges_and_tables_follow_the_style():
    with units.shown_as("iec"):
        assert units.range_text(24.8e6, 25.1e6) == "23.7-23.9 MiB/s"
        assert (units.megabytes_text(1.17e9), units.megabytes_unit()) == ("1,116", "MiB/s")
        assert units.small_megabytes_text(1000) == "<0.001"
    with units.shown_as("bits"):
        assert units.range_text(24.8e6, 25.1e6) == "198-201 Mbit/s"
        assert units.megabytes_unit() == "Mbit/s"
        assert units.small_megabytes_text(1000) == "0.008"
    assert units.small_megabytes_text(999) == "<0.001"


def test_bits_stand_beside_a_network_once():
    assert units.rate_and_bits_text(117.5e6) == "118 MB/s (940 Mbit/s)"
    assert units.bits_beside(117.5e6) == "940 Mbit/s"
    with units.shown_as("bits"):
        assert units.rate_and_bits_text(117.5e6) == "940 Mbit/s"
        assert units.bits_beside(117.5e6) == ""


def test_a_style_ends_with_its_block_also_where_the_block_breaks():
    with units.shown_as("iec"):
        with units.shown_as("bits"):
            assert units.megabytes_unit() == "Mbit/s"
        assert units.megabytes_unit() == "MiB/s"
        with pytest.raises(ValueError, match="broke"), units.shown_as("bits"):
            raise ValueError("broke")
        assert units.megabytes_unit() == "MiB/s"
    assert units.megabytes_unit() == "MB/s"


def test_another_thread_keeps_its_own_style():
    seen = []
    with units.shown_as("bits"):
        other = threading.Thread(target=lambda: seen.append(units.megabytes_unit()))
        other.start()
        other.join()
    assert seen == ["MB/s"]


@pytest.mark.parametrize("style", units.STYLES)
def test_the_footnote_says_what_explorer_shows_beside_ours(style):
    with units.shown_as(style):
        note = units.explorer_note(105 * 10**6)
        assert note.endswith(f"{units.rate_text(105e6)} is 100 MB/s there.")
    assert note.startswith({"si": "MB/s is", "iec": "MiB/s is", "bits": "Mbit/s is"}[style])


@pytest.mark.parametrize(
    ("style", "ends"),
    [
        ("si", ["1 MB/s", "10 GB/s"]),
        ("iec", ["1 MiB/s", "10 GiB/s"]),
        ("bits", ["10 Mbit/s", "100 Gbit/s"]),
    ],
)
def test_bars_begin_and_end_at_round_figures(style, ends):
    with units.shown_as(style):
        assert [units.rate_text(each) for each in units.scale_ends()] == ends
