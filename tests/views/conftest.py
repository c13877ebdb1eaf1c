"""What the tests of pictures and words share."""

from collections.abc import Iterator

import pytest

from tests.conftest import require
from tests.views import support


@pytest.fixture(scope="session")
def ask(request: pytest.FixtureRequest) -> Iterator[support.Ask]:
    if not support.has_node():
        require("chromium", request.config)
    with support.node() if support.has_node() else support.chromium() as found:
        yield found
