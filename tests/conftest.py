# SPDX-License-Identifier: Apache-2.0


def pytest_terminal_summary(terminalreporter):
    """Lists the versions of the foreign programs that tests ran with, before the last line."""
    found = {text for reports in terminalreporter.stats.values() for report in reports
             for name, text in getattr(report, "user_properties", ()) if name == "version"}
    for text in sorted(found):
        terminalreporter.write_line(f"with {text}")
