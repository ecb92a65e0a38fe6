# SPDX-License-Identifier: Apache-2.0
"""clients/python against a daemon: what it sends, what it returns, and how it goes on after
lost connections and busy answers."""

import io
import os
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from PIL import Image

import access
import judge
import nets
from cutting_proxy import CuttingProxy
from service import DATA, FEW_SAMPLES, ROOT, eventually
from test_multifile import external_net

sys.path.insert(0, str(ROOT / "clients" / "python"))
import qdqd  # noqa: E402

RESNET = DATA / "glyph_resnet.onnx"
GATED = {"accept": {"min_cosine": 1}}
BUSY = (b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\n"
        b"Connection: close\r\n\r\n")


@pytest.fixture
def client(daemon):
    return qdqd.Client(daemon.url, patience=20)


@pytest.fixture
def pauses(monkeypatch):
    """Replaces the pauses between tries by a list of their seconds."""
    made = []
    monkeypatch.setattr(qdqd, "_sleep", made.append)
    return made


def samples():
    return dict(np.load(io.BytesIO(nets.samples())))


@pytest.mark.shares_daemon
def test_three_lines(daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("QDQD_URL", daemon.url)
    result = qdqd.quantize(RESNET, FEW_SAMPLES)
    assert result.save(tmp_path / "int8.onnx") == [tmp_path / "int8.onnx"]
    judge.load((tmp_path / "int8.onnx").read_bytes())
    assert os.listdir(tmp_path) == ["int8.onnx"]
    assert result.verdict == result.report["summary"]["verdict"] == "fair"
    assert result.markdown().startswith("#")
    assert result.spec()["mode"] == "full"
    assert result.provenance()["subject"][0]["name"] == "model.onnx"
    assert result.bom()["bomFormat"] == "CycloneDX"
    with pytest.raises(qdqd.ProblemError) as refused:
        result.signature()
    assert refused.value.code == "not_found"


@pytest.mark.shares_daemon
def test_nothing_is_sent_twice(daemon):
    model = onnx.load_from_string(nets.block_net())
    model.doc_string = "sent once"
    with CuttingProxy(daemon.url, []) as proxy:
        client = qdqd.Client(proxy.url, patience=5)
        first = client.quantize(model, samples())
        posted = [line for line in proxy.requests if not line.startswith(("GET", "HEAD"))]
        assert posted.count("POST /v1/models") == 1
        assert posted.count("POST /v1/jobs") == 1
        proxy.requests.clear()
        again = client.quantize(model.SerializeToString(), samples())
        posted = [line for line in proxy.requests if not line.startswith(("GET", "HEAD"))]
        assert posted == ["POST /v1/jobs"]
        assert again.job["cached_from"] == first.id
        assert again.model == first.model


@pytest.mark.shares_daemon
def test_forms_of_calibration_data_are_one(client, tmp_path):
    """The same samples have the same id whatever their form."""
    data = samples()
    x = data[nets.INPUT]
    (tmp_path / "data.npz").write_bytes(nets.samples())
    model = client.store_model(nets.block_net())
    ids = {client.store_calibration(form, model) for form in [
        data, {nets.INPUT: x.tolist()} if x.dtype == np.float64 else data,
        (row for row in x), (row[None] for row in x), iter([{nets.INPUT: x[:2]},
                                                            {nets.INPUT: x[2:]}])]}
    assert len(ids) == 1
    single = client.json("GET", f"/v1/datasets/{client.store_calibration(x, model)}")
    assert single["inputs"] == [{"name": "", "dtype": "float32", "shape": list(x.shape)}]
    file = client.store_calibration(tmp_path / "data.npz", model)
    assert file == client.store_calibration(nets.samples(), model)
    assert client.store_calibration(file, model) == file
    for form in ids | {file}:
        assert client.quantize(model, form).report["calibration"]["samples"] == len(x)


@pytest.mark.shares_daemon
@pytest.mark.parametrize("shape, sample, stored", [
    (["n", 4], (4,), [3, 4]), (["n", 4], (2, 4), [6, 4]), ([1, 4], (1, 4), [3, 4]),
    ([2, 4], (2, 4), [3, 2, 4]), ([4], (4,), [3, 4]), ([], (), [3])])
def test_axes_of_samples(client, shape, sample, stored):
    """A sample of the input's axes is a batch, unless the model fixes the batch."""
    rows = [np.full(sample, i, np.float32) for i in range(3)]
    columns = []

    class Answers(qdqd.Client):
        def json(self, method, path, *rest, **options):
            if path.endswith("/info"):
                return {"inputs": [{"name": "x", "shape": shape}]}
            return super().json(method, path, *rest, **options)

    one = Answers(client._url.geturl())
    name = one.store_calibration(iter(rows), "sha256:")
    columns = client.json("GET", f"/v1/datasets/{name}")["inputs"]
    assert columns == [{"name": "x", "dtype": "float32", "shape": stored}]


@pytest.mark.shares_daemon
@pytest.mark.parametrize("data, words", [
    ([np.zeros([3, 8, 8], "f4"), np.zeros([3, 8, 9], "f4")], "sample 1: x is"),
    ([np.zeros([8, 8], "f4")], "sample 0: x has 2 axes; wanted are 4"),
    ([{"x": np.zeros([3, 8, 8], "f4")}, {"y": 0}], "sample 1: has ['y']"),
    ([("x", 1)], "sample 0: is a tuple"), ([], "no samples"), (5, "a int is neither"),
    ({"x": np.array(["a"])}, "x: arrays of <U1"), ("no/such/file", "No such file")])
def test_calibration_data_that_cannot_be_sent(client, data, words):
    with pytest.raises(qdqd.UsageError) as error:
        client.quantize(nets.block_net(), data)
    assert words in str(error.value)


@pytest.mark.shares_daemon
def test_errors(client, tmp_path):
    with pytest.raises(qdqd.ProblemError) as refused:
        client.quantize(nets.block_net(), samples(), {"mod": "full"})
    assert refused.value.code == "invalid_spec" and refused.value.status == 422
    assert refused.value.errors[0]["pointer"] == "/mod"
    (tmp_path / "spec.json").write_text('{"mode": "full", "mode": "full"}')
    with pytest.raises(qdqd.ProblemError, match="mode"):
        client.quantize(nets.block_net(), samples(), tmp_path / "spec.json")
    with pytest.raises(qdqd.ProblemError, match="invalid_model"):
        client.quantize(b"not a model")
    with pytest.raises(qdqd.ProblemError, match="not_found"):
        client.wait("j" + "0" * 32)
    with pytest.raises(qdqd.UsageError, match="the spec"):
        client.quantize(nets.block_net(), spec={"x": float("nan")})


@pytest.mark.shares_daemon
def test_a_missed_gate_carries_the_report(client):
    with pytest.raises(qdqd.AccuracyError) as missed:
        client.quantize(nets.block_net(), samples(), GATED)
    assert missed.value.code == "accuracy"
    assert missed.value.report["gates"][0]["met"] is False
    assert "min_cosine" in missed.value.markdown()
    assert client.json("GET", f"/v1/models/{missed.value.document['model']}/info")


@pytest.mark.shares_daemon
def test_a_model_with_a_data_file(client, tmp_path):
    model, files = external_net(("net.onnx.data",), seed=11)
    (tmp_path / "net.onnx").write_bytes(model)
    with pytest.raises(qdqd.ProblemError, match="external_missing"):
        client.quantize(tmp_path / "net.onnx")
    (tmp_path / "net.onnx.data").write_bytes(files["net.onnx.data"])
    spec = {"output": {"external_data": "always"}, "calibration": {"random_samples": 1}}
    result = client.quantize(tmp_path / "net.onnx", spec=spec)
    assert result.job["model"] == client.store_model(
        tmp_path / "net.onnx", external=[tmp_path / "net.onnx.data"])
    made = result.save(tmp_path / "int8.onnx")
    assert [path.name for path in made] == ["int8.onnx", "model.onnx.data"]
    onnx.checker.check_model(tmp_path / "int8.onnx", full_check=True)


@pytest.mark.shares_daemon
def test_a_job_is_called_by_its_model(client, tmp_path):
    path = tmp_path / "my net.onnx"
    path.write_bytes(nets.block_net())
    for model, labels, wanted in ((path, None, {"name": "my net.onnx"}),
                                  (path, {"name": "mine", "team": "a"}, {"name": "mine", "team": "a"}),
                                  (path.read_bytes(), {"team": "a"}, {"team": "a"})):
        result = client.quantize(model, samples(), labels=labels, fresh=True)
        assert result.job["labels"] == wanted


def test_lost_connections(daemon, pauses, tmp_path):
    """The connection is lost in the upload, before and within the answer to the job, in the
    wait and in the download. Each time the work goes on, and there is one job."""
    big = onnx.load(RESNET)
    big.doc_string = "through a proxy"
    data = big.SerializeToString()
    plans = [("HEAD /v1/models/*", "down", 0), ("POST /v1/models", "up", 500_000),
             ("POST /v1/models", "down", 0), ("POST /v1/jobs", "down", 0),
             ("POST /v1/jobs", "down", 40), ("GET *?wait=*", "down", 0),
             ("GET *?wait=*", "down", 300), ("GET */model", "down", 150_000)]
    with CuttingProxy(daemon.url, plans) as proxy:
        client = qdqd.Client(proxy.url)
        result = client.quantize(data, FEW_SAMPLES, labels={"test": "lost connections"})
        result.save(tmp_path / "int8.onnx")
        assert proxy.plans == []
    assert len(pauses) == len(plans)
    listed = daemon.get("/v1/jobs?label=test:lost connections").json()["jobs"]
    assert [job["id"] for job in listed] == [result.id]
    assert (tmp_path / "int8.onnx").read_bytes() == daemon.result(result.id)
    downloads = [line for line in proxy.requests if line.endswith("/model")]
    assert len(downloads) == 2


@pytest.mark.shares_daemon
def test_busy_services_are_asked_again(daemon, pauses):
    plans = [("HEAD *", "answer", BUSY), ("POST /v1/jobs", "answer", BUSY)]
    with CuttingProxy(daemon.url, plans) as proxy:
        result = qdqd.Client(proxy.url).quantize(nets.block_net(), samples())
    assert result.verdict and proxy.plans == [] and pauses == [7.0, 7.0]
    with CuttingProxy(daemon.url, [("HEAD *", "answer", BUSY)] * 3) as proxy:
        with pytest.raises(qdqd.UnavailableError, match="http_503"):
            qdqd.Client(proxy.url, patience=15).quantize(nets.block_net())
    assert pauses == [7.0] * 4


def test_a_full_queue_is_waited_for(service, held, monkeypatch):
    daemon = service(queue_max=1, **held)
    model, data = daemon.upload("models", nets.block_net()), samples()
    jobs = [daemon.submit(model=model, spec={"activations": "none"}, fresh=True)]
    daemon.running(jobs[0])
    jobs.append(daemon.submit(model=model, spec={"activations": "none"}, fresh=True))
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        daemon.post(f"/v1/jobs/{jobs[1]}/cancel")

    monkeypatch.setattr(qdqd, "_sleep", pause)
    with pytest.raises(qdqd.StillRunningError) as running:
        qdqd.Client(daemon.url).quantize(nets.block_net(), data, timeout=0)
    assert len(pauses) == 1 and pauses[0] >= 1
    assert daemon.job(running.value.job)["state"] == "queued"
    daemon.post(f"/v1/jobs/{running.value.job}/cancel")
    daemon.post(f"/v1/jobs/{jobs[0]}/cancel")


def test_nobody_listens(pauses):
    client = qdqd.Client("http://127.0.0.1:9")
    with pytest.raises(qdqd.UnavailableError, match="refused"):
        client.quantize(nets.block_net())
    assert 0 < sum(pauses) <= 10
    with pytest.raises(qdqd.UsageError):
        qdqd.Client("ftp://127.0.0.1")


def test_tokens(service, tmp_path, monkeypatch):
    daemon = service()
    (tmp_path / "token").write_text(access.add(daemon.state, "ci") + "\n")
    eventually(lambda: daemon.get("/v1/targets").status_code == 401)
    with pytest.raises(qdqd.ProblemError, match="unauthorized"):
        qdqd.quantize(nets.block_net(), samples(), url=daemon.url)
    monkeypatch.setenv("QDQD_TOKEN_FILE", str(tmp_path / "token"))
    assert qdqd.quantize(nets.block_net(), samples(), url=daemon.url).verdict
    monkeypatch.setenv("QDQD_TOKEN_FILE", str(tmp_path / "none"))
    with pytest.raises(qdqd.UsageError, match="the token"):
        qdqd.quantize(nets.block_net(), samples(), url=daemon.url)


def test_a_body_that_is_refused_early(service, pauses):
    """The answer is read although the service closes before the end of the body."""
    daemon = service(http_max_body="1M")
    with pytest.raises(qdqd.ProblemError, match="too_large"):
        qdqd.Client(daemon.url).quantize(bytes(32 << 20))
    assert pauses == []


def command(folder, url, *words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python"),
                   "QDQD_URL": url}
    return subprocess.run([sys.executable, "-m", "qdqd", *words], cwd=folder, text=True,
                          env=environment, capture_output=True, timeout=60,
                          stdin=subprocess.DEVNULL)


@pytest.mark.shares_daemon
def test_command(daemon, tmp_path):
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    (tmp_path / "strict.json").write_text('{"accept": {"min_cosine": 1}}')
    (tmp_path / "wrong.json").write_text('{"mod": 1}')
    words = ["net.onnx", "-c", "data.npz", "--report", "r.json", "--markdown", "r.md"]
    done = command(tmp_path, daemon.url, *words, "-o", "out.onnx", "--html", "r.html")
    assert (done.returncode, done.stderr.splitlines()[-1][:5]) == (0, "qdqd:"), done.stderr
    assert "verdict" in done.stdout
    judge.load((tmp_path / "out.onnx").read_bytes())
    assert (tmp_path / "r.html").read_text().startswith("<!")
    for name in ("out.onnx", "r.md"):
        (tmp_path / name).unlink()
    missed = command(tmp_path, daemon.url, *words, "-s", "strict.json", "-o", "out.onnx")
    assert missed.returncode == 1
    assert missed.stderr.splitlines()[-1].startswith("qdqd: accuracy: output 'logits' has")
    assert (tmp_path / "r.md").exists() and not (tmp_path / "out.onnx").exists()
    for status, wrong in [(3, ["net.onnx", "-s", "wrong.json"]), (2, ["none.onnx"]), (2, []),
                          (4, ["net.onnx", "--url", "http://127.0.0.1:9",
                               "--patience", "0"])]:
        done = command(tmp_path, daemon.url, *wrong)
        assert done.returncode == status, done.stderr
        assert done.stderr.splitlines()[-1].strip()


@pytest.mark.shares_daemon
def test_one_client_in_many_threads(client):
    """A client has no state that calls share."""
    results = []

    def one():
        results.append(client.quantize(nets.block_net(), samples()).job["result"]["model"])

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len(set(results)) == 1


def pictures(n):
    random = np.random.default_rng(2)
    return [Image.fromarray(random.integers(0, 256, (12, 10, 3), np.uint8)) for _ in range(n)]


@pytest.mark.shares_daemon
def test_pictures_and_folders_are_one(client, tmp_path):
    model = client.store_model(nets.block_net())
    for i, picture in enumerate(pictures(4)):
        picture.save(tmp_path / f"{i:08}.png")
    (tmp_path / "notes.txt").write_text("this is no image")
    assert client.store_calibration(pictures(4), model) == \
        client.store_calibration(tmp_path, model)
    spec = {"preprocess": {nets.INPUT: {"scale": 0.01}}}
    result = client.quantize(nets.block_net(), tmp_path, spec)
    assert result.report["spec"]["preprocess"][nets.INPUT]["scale"] == 0.01


def test_what_is_no_picture(client, tmp_path):
    with pytest.raises(qdqd.UsageError, match="hold images"):
        client.store_calibration(tmp_path, "sha256:" + 64 * "0")
    with pytest.raises(qdqd.UsageError, match="sample 1: is a str"):
        client.store_calibration([*pictures(1), "x"], "sha256:" + 64 * "0")
    with pytest.raises(qdqd.UsageError, match="its mode is CMYK"):
        client.store_calibration([pictures(1)[0].convert("CMYK")], "sha256:" + 64 * "0")


@pytest.mark.shares_daemon
def test_pairs_of_a_loader(client):
    """Batches of samples and labels, as a DataLoader yields them."""
    x = samples()[nets.INPUT]
    model = client.store_model(nets.block_net())
    labels = np.arange(len(x))
    assert client.store_calibration([(x[:2], labels[:2]), [x[2:4], labels[2:4]]], model) == \
        client.store_calibration({nets.INPUT: x[:4], "labels": labels[:4]}, model)
