# SPDX-License-Identifier: Apache-2.0
"""Room in a folder of files whose record is shared: deleted bytes go later."""

from service import eventually, problem
from test_leader import leader
from test_metrics import metrics
from test_postgresql import database, node, server  # noqa: F401
from test_storage import RAW, data_of, swept

MIB = 1 << 20


def test_what_is_needed_goes_and_no_more(node, tmp_path):  # noqa: F811
    """Each upload above storage.max_bytes takes the place of the oldest."""
    one = node(storage_max_bytes=8 * MIB)
    job = one.succeeded(one.submit_glyphs())["id"]
    kept = [one.upload("datasets", data_of(tmp_path, n, MIB)) for n in range(12)]
    assert swept(one)[0] == job
    assert sorted(swept(one)[1:3]) == ["file dataset", "file model"]  # those of the job
    assert swept(one)[3:] == ["file dataset"] * 5
    assert [one.get(f"/v1/datasets/{old}").status_code for old in kept] == [404] * 5 + [200] * 7
    answer = one.post("/v1/datasets", data=data_of(tmp_path, 9, 9 * MIB), headers=RAW)
    problem(answer, 507, "disk_full")
    assert len(swept(one)) == 8 and one.get(f"/v1/datasets/{kept[5]}").status_code == 200


def test_a_daemon_counts_what_another_removed(node, database, tmp_path):  # noqa: F811
    """The leader removes the bytes of a deleted file, and the other daemon notices."""
    def used(daemon):
        return metrics(daemon)["qdqd_disk_used_bytes"].value()

    one = node(retention_leftovers=3)
    eventually(lambda: leader(database), 60)
    two = node(retention_leftovers=3)
    stored = two.upload("datasets", data_of(tmp_path, 1, MIB))
    assert used(two) > MIB
    assert two.request("DELETE", f"/v1/datasets/{stored}").status_code == 204
    eventually(lambda: f"leftover_removed id={stored}" in one.log.read_text(), 60)
    eventually(lambda: used(two) < MIB, 60)


def bytes_of_the_tenant(daemon):
    [tenant] = daemon.get("/v1/tenants").json()["tenants"]
    return tenant["bytes"]


def test_what_the_rows_name_counts(node, tmp_path):  # noqa: F811
    """Each daemon says the same bytes of a tenant, whatever files are in its folder."""
    daemons = [node(), node()]
    stored = daemons[0].upload("datasets", data_of(tmp_path, 1, MIB))
    before = bytes_of_the_tenant(daemons[0])
    assert MIB < before < 1.1 * MIB
    assert bytes_of_the_tenant(daemons[1]) == before
    assert daemons[1].request("DELETE", f"/v1/datasets/{stored}").status_code == 204
    assert daemons[0].stored_files() == [stored.removeprefix("sha256:")]  # for a day
    assert [bytes_of_the_tenant(one) for one in daemons] == [0, 0]
