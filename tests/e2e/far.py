# SPDX-License-Identifier: Apache-2.0
"""A registry and a receiver of webhooks on the loopback that misbehave when they are asked to.
It has as much of MLflow's interface as one model needs; tests/servers has the real servers."""

import base64
import http.server
import json
import threading
import urllib.parse

from standardwebhooks import Webhook

API = "/api/2.0/mlflow/"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
SECRET, OLD_SECRET = ("whsec_" + base64.b64encode(bytes(range(n, n + 32))).decode() for n in (0, 9))


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers bytes, or JSON."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, body, status=200, **headers):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class Handler(Answers):
    def serve(self):
        far = self.server
        url = urllib.parse.urlsplit(self.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with far.lock:
            far.seen.append((self.command, url.path, dict(self.headers), body))
        if far.fault and far.fault(self, url.path):
            return
        path = url.path
        if path.startswith(ARTIFACTS):
            self.artifact(path.removeprefix(ARTIFACTS).strip("/"), query, body)
        elif path.startswith(API):
            with far.lock:
                answer = self.registry(path.removeprefix(API), query,
                                       json.loads(body) if body else {})
            self.answer(answer or {"error_code": "RESOURCE_DOES_NOT_EXIST"},
                        200 if answer is not None else 404)
        else:
            self.answer(b"")

    do_GET = do_POST = do_PUT = do_PATCH = serve

    def artifact(self, path, query, body):
        far = self.server
        if self.command == "PUT":
            far.files[path] = body
            self.answer({})
        elif not path:
            folder = query["path"] + "/"
            self.answer({"files": [
                {"path": name.removeprefix(folder), "is_dir": False, "file_size": len(data)}
                for name, data in far.files.items() if name.startswith(folder)]})
        elif path in far.files:
            self.answer(far.files[path])
        else:
            self.answer({}, 404)

    def registry(self, call, query, body):
        far = self.server
        match call:
            case "registered-models/alias" if self.command == "GET":
                number = far.aliases.get((query["name"], query["alias"]))
                return number and {"model_version": far.versions[query["name"]][number - 1]}
            case "registered-models/alias":
                far.aliases[body["name"], body["alias"]] = int(body["version"])
                return {}
            case "registered-models/get":
                return {} if query["name"] in far.versions else None
            case "registered-models/create":
                far.versions[body["name"]] = []
                return {}
            case "model-versions/get" | "model-versions/get-download-uri":
                known = far.versions.get(query["name"], [])
                if int(query["version"]) > len(known):
                    return None
                one = known[int(query["version"]) - 1]
                place = "mlflow-artifacts:/0/models/" + one["source"].removeprefix("models:/")
                return {"model_version": one, "artifact_uri": place}
            case "model-versions/search":
                known = [one for versions in far.versions.values() for one in versions]
                if "filter" not in query:
                    return {"model_versions": sorted(
                        known, key=lambda one: -one.get("creation_timestamp", 0))}
                return {"model_versions": [
                    one for one in known
                    if any(f"'{tag['value']}'" in query["filter"] for tag in one["tags"])]}
            case "model-versions/create":
                versions = far.versions[body["name"]]
                versions.append({**body, "version": str(len(versions) + 1)})
                return {"model_version": versions[-1]}
            case "runs/create":
                far.runs += 1
                return {"run": {"info": {"run_id": f"r{far.runs}",
                                         "artifact_uri": f"mlflow-artifacts:/0/r{far.runs}"}}}
            case "runs/get":
                return {"run": {"info": {"experiment_id": "0"}}}
            case "logged-models":
                return {"model": {"info": {
                    "model_id": f"m-{far.runs}",
                    "artifact_uri": f"mlflow-artifacts:/0/models/m-{far.runs}"}}}
            case "runs/log-batch":
                far.metrics = {one["key"]: one["value"] for one in body["metrics"]}
                return {}
        return {}


class Far(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, model, **others):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.reset()
        self.files = {"0/models/m-0/model.onnx": model,
                      **{f"0/models/m-0/{name}": data for name, data in others.items()}}
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def reset(self):
        self.fault, self.seen, self.runs, self.metrics = None, [], 0, {}
        self.versions = {"glyph": [{"name": "glyph", "version": "1", "source": "models:/m-0",
                                    "tags": []}]}
        self.aliases = {("glyph", "champion"): 1}

    def close(self):
        self.shutdown()
        self.server_close()

    def paths(self, method="GET"):
        with self.lock:
            return [path for verb, path, _, _ in self.seen if verb == method]

    def events(self, path="/told", secrets=(SECRET,)):
        """The messages for a webhook. The published package has to take each of them with
        each of the secrets."""
        found = []
        with self.lock:
            seen = list(self.seen)
        for verb, asked, headers, body in seen:
            if verb != "POST" or asked != path:
                continue
            for secret in secrets:
                event = Webhook(secret).verify(body, headers)
            found.append((headers["webhook-id"], event))
        return found
