# SPDX-License-Identifier: Apache-2.0
import pytest

from service import Service


def pytest_collection_modifyitems(items):
    """Runs files with long tests first, so that short ones fill the gaps at the end."""
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture
def service(tmp_path):
    """Makes daemons, each with a state folder of its own; stops and checks all of them at
    the end."""
    made = []

    def make(**settings):
        environment = {f"QDQD_{k.upper()}": str(v) for k, v in settings.items()}
        one = Service(tmp_path / f"qdqd{len(made)}", **environment)
        made.append(one)
        return one.start()

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def daemon(service):
    """A daemon with default settings."""
    return service()


@pytest.fixture
def held():
    """Settings that keep a worker in its job until something ends it."""
    return {"test_worker_pause_ms": 600_000}


@pytest.fixture
def slow():
    """Settings that make a job take some seconds: time to do something to it."""
    return {"test_worker_pause_ms": 400}
