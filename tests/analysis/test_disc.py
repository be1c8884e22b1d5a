"""The disc model: planted curves are found, weak zones do not bend them, nonsense fits nothing."""

import random

import pytest

from bottleneck.analysis.disc import Zone, fit_curve

MB = 1e6


def rate(x, outer, inner):
    """The disc's law, written down once more."""
    return outer * (1 - x * (1 - (inner / outer) ** 2)) ** 0.5


def planted(outer, inner, count=9, noise=0.0, seed=1, weak=None):
    chance = random.Random(seed)
    zones = []
    for n in range(count):
        level = rate((n + 0.5) / count, outer, inner) * MB
        level *= 1 + noise * chance.uniform(-1, 1)
        level *= (weak or {}).get(n, 1.0)
        bounds = (1 - max(noise, 0.005)) * level, (1 + max(noise, 0.005)) * level
        zones.append(Zone(n / count, (n + 1) / count, level, *bounds))
    return zones


@pytest.mark.parametrize(("outer", "inner"), [(180, 92), (60, 30), (210, 105), (250, 130)])
@pytest.mark.parametrize("count", [3, 9, 33])
def test_a_planted_disc_is_found(outer, inner, count):
    curve = fit_curve(planted(outer, inner, count))
    assert curve.outer_bytes_per_second == pytest.approx(outer * MB, rel=1e-3)
    assert curve.inner_bytes_per_second == pytest.approx(inner * MB, rel=1e-3)
    assert curve.rate_at(0.5) == pytest.approx(rate(0.5, outer, inner) * MB, rel=1e-3)
    assert curve.falls
    assert not curve.is_flat
    assert curve.weak == ()


@pytest.mark.parametrize("seed", range(20))
def test_noise_moves_the_ratio_by_little(seed):
    curve = fit_curve(planted(180, 92, noise=0.03, seed=seed))
    assert curve.ratio == pytest.approx(180 / 92, rel=0.08)
    assert curve.falls
    assert curve.weak == ()


@pytest.mark.parametrize("weak", [{0: 0.5}, {5: 0.4}, {8: 0.8}, {2: 0.7, 6: 0.6}])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_weak_zone_is_found_and_bends_nothing(weak, noise):
    curve = fit_curve(planted(180, 92, weak=weak, noise=noise))
    assert curve.weak == tuple(weak)
    assert curve.ratio == pytest.approx(180 / 92, rel=0.06)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_the_same_everywhere_is_flat_however_noisy(seed):
    curve = fit_curve(planted(500, 500, noise=0.05, seed=seed))
    assert curve.is_flat
    assert not curve.falls


def test_a_weak_zone_of_a_flat_device_is_weak():
    curve = fit_curve(planted(500, 500, noise=0.02, weak={3: 0.5}))
    assert curve.is_flat
    assert curve.weak == (3,)


def test_the_rate_over_a_span_is_the_harmonic_mean():
    curve = fit_curve(planted(180, 92))
    many = [curve.rate_at((n + 0.5) / 1000) for n in range(1000)]
    mean = len(many) / sum(1 / each for each in many)
    assert curve.rate_over(0.0, 1.0) == pytest.approx(mean, rel=1e-4)
    assert curve.rate_over(0.3, 0.3) == pytest.approx(curve.rate_at(0.3))


def test_a_rate_that_rises_is_no_spinning_disc():
    curve = fit_curve(planted(92, 180))
    assert not curve.falls
    assert not curve.is_flat
    assert curve.ratio < 1


def test_two_zones_are_too_few_for_a_curve():
    assert fit_curve(planted(180, 92, count=2)) is None
    assert fit_curve([]) is None
    assert fit_curve(planted(180, 92, count=1) * 9) is None


def test_zones_that_lie_on_no_curve_have_none():
    levels = (500, 90, 400, 60, 300, 510, 80, 420, 100)
    zones = [
        Zone(n / 9, (n + 1) / 9, level * MB, level * MB, level * MB)
        for n, level in enumerate(levels)
    ]
    assert fit_curve(zones) is None


@pytest.mark.parametrize("seed", range(60))
def test_no_numbers_break_it(seed):
    chance = random.Random(seed)
    rates = (1e-9, 1.0, 1e8, 9e18)
    places = (0.0, 5e-324, 1e-300, 0.3, 1.0)
    zones = []
    for _ in range(chance.randint(0, 12)):
        level = chance.choice(rates) * chance.choice((1.0, 0.5))
        begin, end = sorted((chance.choice(places), chance.choice(places)))
        zones.append(Zone(begin, end, level, chance.choice((level, 1e-9)), 9e18))
    curve = fit_curve(zones)
    if curve is not None:
        assert curve.rate_at(0.5) > 0
        assert curve.rate_over(0.0, 1.0) > 0
        assert curve.ratio > 0
        assert curve.is_flat in (True, False)


def test_zones_that_agree_at_one_place_alone_are_no_curve():
    """Twelve looks at one place agree, and no two of the others with anything."""
    same = [Zone(0.5, 0.6, 100 * MB, 99 * MB, 101 * MB)] * 12
    levels = {0.02: 128, 0.26: 258, 0.34: 65, 0.41: 267, 0.42: 184, 0.75: 131, 0.79: 383}
    odd = [Zone(x, x + 0.04, rate * MB, rate * MB, rate * MB) for x, rate in levels.items()]
    assert fit_curve([*odd[:5], *same, *odd[5:]]) is None
