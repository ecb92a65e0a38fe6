# SPDX-License-Identifier: Apache-2.0
"""A real S3 server that can be stopped and started again, and a bucket in it for blobs."""

import os
import re
import signal
import subprocess
import time
from urllib.parse import quote

import registry

CREDENTIALS = ("[default]\naws_access_key_id = test-key\n"
               "aws_secret_access_key = test-secret\n")


class Bucket:
    """The bucket `blobs` of a server of the test's own."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, registry.free_port(), None
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.credentials = folder / "s3.cred"
        self.credentials.write_text(CREDENTIALS)
        self.credentials.chmod(0o600)

    def start(self):
        registry.program("s3")
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [registry.HERE / "s3", self.folder, str(self.port)], stdout=log, stderr=log,
                start_new_session=True)
        for _ in range(600):
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            if registry.answers(self.endpoint + "/") and self.can_store():
                return self
            time.sleep(0.1)
        raise AssertionError("the server does not store")

    def can_store(self):
        self.curl("--request", "PUT", f"{self.endpoint}/blobs", check=False)
        return self.curl("--upload-file", "/etc/hostname", f"{self.endpoint}/blobs/ready",
                         check=False).returncode == 0

    def stop(self):
        """Ends the server at once; its files stay for start()."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)
        self.process = None

    def pause(self, paused):
        """Stops the server's processes without ending them, or has them go on."""
        os.killpg(self.process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def curl(self, *words, check=True):
        return subprocess.run(
            ["curl", "--silent", "--show-error", "--fail", "--aws-sigv4",
             "aws:amz:us-east-1:s3", "--user", "test-key:test-secret", *map(str, words)],
            check=check, capture_output=True, timeout=60)

    def settings(self, prefix="", **more):
        """The environment of a daemon whose blobs are here."""
        url = "s3://blobs" + (f"/{prefix}" if prefix else "")
        return {"QDQD_BLOBS_URL": url, "QDQD_BLOBS_ENDPOINT": self.endpoint,
                "QDQD_BLOBS_CREDENTIALS": str(self.credentials), **more}

    def keys(self, prefix=""):
        """All keys but those that name the database that the blobs belong to."""
        keys, after = [], ""
        while True:
            text = self.curl(f"{self.endpoint}/blobs?list-type=2&prefix={quote(prefix, safe=str())}"
                             f"&start-after={quote(after, safe=str())}").stdout.decode()
            page = re.findall("<Key>([^<]*)</Key>", text)
            keys += page
            if not page or "<IsTruncated>true" not in text:
                return [key for key in keys if "/record/" not in key]
            after = page[-1]

    def read(self, key):
        return self.curl(f"{self.endpoint}/blobs/{key}").stdout

    def write(self, key, data, folder):
        (folder / "object").write_bytes(data)
        self.curl("--upload-file", folder / "object", f"{self.endpoint}/blobs/{key}")

    def remove(self, key):
        self.curl("--request", "DELETE", f"{self.endpoint}/blobs/{key}")
