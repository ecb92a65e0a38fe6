# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import pytest

import processors
from service import Service

TESTS = Path(__file__).resolve().parent.parent


def pytest_configure():
    """One thread for NumPy's products, which are small: a second one waits more than it works."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_modifyitems(config, items):
    """Leaves rows that repeat a kind to a release. Runs files with long tests first, so that short ones
    fill the gaps at the end."""
    if not os.environ.get("QDQD_ALL_FIGURES"):
        left = [item for item in items if item.get_closest_marker("release")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish(session):
    """Notes the states of the random generators that the modules of the tests have."""
    import numpy as np
    session.config.generators = [
        (one, one.bit_generator.state) for name, module in list(sys.modules.items())
        if TESTS in Path(getattr(module, "__file__", None) or "/").parents
        for one in vars(module).values() if isinstance(one, np.random.Generator)]


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """The command keeps what it measured in a folder of these tests, not in the user's."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def cache_of_a_test(own_cache, tmp_path_factory, monkeypatch):
    """No test finds there what another one has left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def restart_generators(config):
    for one, state in config.generators:
        one.bit_generator.state = state


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    restart_generators(item.config)


@pytest.fixture(autouse=True)
def same_numbers(request):
    """Each test draws the same random numbers, whichever tests ran before it in its process."""
    restart_generators(request.config)


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


@pytest.fixture(scope="session")
def common(tmp_path_factory):
    """Holds the daemon of the tests that share one, which is started for the first of them."""
    made = []
    yield made
    for one in made:
        one.stop()


@pytest.fixture
def daemon(request, common, tmp_path_factory):
    """A daemon with default settings; with the mark shares_daemon one that other tests have
    used and will use. Such a test neither stops it nor looks at what it does not own: the
    log, the stored files, the lists of models, datasets and jobs."""
    if not request.node.get_closest_marker("shares_daemon"):
        yield request.getfixturevalue("service")()
        return
    if not common:
        common.append(Service(tmp_path_factory.mktemp("common")).start())
    begin = common[0].log.stat().st_size
    yield common[0]
    print(common[0].log.read_bytes()[begin:].decode())
    if common[0].process.poll() is not None:
        common.clear()
        pytest.fail("the daemon ended by itself")


@pytest.fixture(scope="session")
def older_processor(tmp_path_factory):
    """Returns variables of the environment with which a process (qdq, a daemon, a Python with
    onnxruntime) and its children find a processor without VNNI and AVX-512, whose 8-bit sums
    saturate. Skips where that is impossible. `processors.py avx2 COMMAND…` runs any command so,
    a whole pytest included."""
    try:
        return processors.environment("avx2", tmp_path_factory.mktemp("processors"))
    except processors.Unavailable as why:
        pytest.skip(f"no older processor: {why}")


@pytest.fixture
def held():
    """Settings that keep a worker in its job until something ends it, a stop at once."""
    return {"test_worker_pause_ms": 600_000, "workers_drain_timeout": 0}


@pytest.fixture
def slow():
    """Settings that make a job take some seconds: time to do something to it."""
    return {"test_worker_pause_ms": 400}
