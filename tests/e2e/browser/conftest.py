# SPDX-License-Identifier: Apache-2.0
import pytest

import webdriver


@pytest.fixture(scope="session")
def browser():
    one = webdriver.Browser()
    yield one
    one.close()
