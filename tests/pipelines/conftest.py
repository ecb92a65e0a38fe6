# SPDX-License-Identifier: Apache-2.0
import pytest

import pipelines
from service import Service


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    one = Service(tmp_path_factory.mktemp("daemon")).start()
    yield one
    one.stop()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return pipelines.build_wheel(tmp_path_factory.mktemp("wheel"))
