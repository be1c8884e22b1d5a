"""A Windows Python under wine for the tests of this folder."""

import pytest

from tests.windows import bed


@pytest.fixture(scope="module")
def windows():
    try:
        return bed.make()
    except bed.Missing as error:
        pytest.skip(f"NOT TESTED UNDER WINDOWS' PYTHON: {error}")
