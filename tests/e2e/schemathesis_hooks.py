# SPDX-License-Identifier: Apache-2.0
"""Facts about the daemon that Schemathesis needs: its command loads this file (see
test_schemathesis.py), which names the stored files and jobs in the environment.

Generated ids exist nowhere, so in most cases a real one replaces them. Then the path
leads to something, and the daemon also checks other members than the id."""

import hashlib
import io
import json
import os
import time
import zlib
from urllib.parse import unquote

import numpy as np
import onnx
import requests
import schemathesis
from requests.structures import CaseInsensitiveDict
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.transport.requests import (REQUESTS_TRANSPORT, binary_serializer,
                                             multipart_serializer)

import contract
import nets

STORED = json.loads(os.environ["QDQD_SCHEMATHESIS"])
FILES = {"models": nets.block_net(), "datasets": nets.samples(), "blobs": b"some bytes"}
JOB = {"model": STORED["models"][0], "calibration": STORED["datasets"][0]}
FORM = "multipart/form-data"
CURLS_DEFAULT = "application/x-www-form-urlencoded"
# The phases that vary one place of the request at a time.
ALL_REAL = ("examples", "coverage")
# Seconds; a longer wait finds nothing new.
LONGEST_WAIT = 1
MOST_SAMPLES = 4


def number(case):
    """Returns a number that is the same for the same case in every run."""
    return zlib.crc32(repr((case.path_parameters, case.query, dict(case.headers),
                            case.body)).encode())


def often(case):
    """Returns true for three cases of four."""
    return number(case) % 4 != 0


def is_id(value):
    return isinstance(value, str) and value.startswith("sha256:") and len(value) == 71


def other_model():
    """Returns the same network with other bytes, and so another id."""
    model = onnx.load_from_string(FILES["models"])
    model.doc_string = "spare"
    return model.SerializeToString()


def other_samples():
    file = io.BytesIO()
    np.savez(file, **{nets.INPUT: np.zeros([1, *nets.SHAPE], np.float32)})
    return file.getvalue()


KEPT = STORED["models"] + STORED["datasets"] + STORED["blobs"] + STORED["jobs"]
# Uploads and deletions use these, so that the stored files stay.
SPARE = {"models": other_model(), "datasets": other_samples(), "blobs": b"spare bytes"}
# Stands for a file until it is sent, because the checks do not accept bytes as a string.
SENT = {"file:models": FILES["models"], "file:datasets": FILES["datasets"],
        "spare:models": SPARE["models"], "spare:datasets": SPARE["datasets"],
        "spare:blobs": SPARE["blobs"]}


def spare(kind, fresh=False):
    """Returns an id that may be deleted; of jobs, one that has ended or a new one."""
    if kind == "blobs":
        return blob(SPARE[kind])
    what = {"data": SPARE[kind]} if kind != "jobs" else {
        "json": dict(JOB, fresh=fresh), "params": {"wait": 0 if fresh else 5}}
    while True:
        answer = requests.post(f"{STORED['url']}/v1/{kind}", timeout=30, **what)
        if answer.status_code != 429:
            assert answer.ok, answer.text
            return answer.json()["id"]
        time.sleep(0.1)


def blob(data, stored=True):
    """Stores the bytes and returns their id."""
    name = "sha256:" + hashlib.sha256(data).hexdigest()
    if stored:
        requests.put(f"{STORED['url']}/v1/blobs/{name}", data=data, timeout=30)
    return name


def real_id(case):
    """Returns a real id to replace the generated one."""
    kind = case.path.split("/")[2]
    if case.method == "PUT" and kind == "blobs":
        return blob(SPARE[kind], stored=False)
    if case.method == "DELETE":
        return spare(kind)
    if case.path.endswith(("/cancel", "/events")) and often(case):
        return spare(kind, fresh=True)
    return STORED[kind][number(case) // 4 % len(STORED[kind])]


def mend_spec(spec):
    """Removes members that exclude one another, so that the daemon checks the others, and
    chooses numbers with which a job ends soon."""
    if not isinstance(spec, dict):
        return
    calibration = spec.get("calibration")
    if isinstance(calibration, dict) and calibration.get("method") != "percentile":
        calibration.pop("percentile", None)
    for group, name in (("calibration", "random_samples"), ("evaluate", "samples"),
                        ("sensitivity", "samples"), ("search", "samples")):
        members = spec.get(group)
        if isinstance(members, dict) and type(members.get(name)) is int and \
                MOST_SAMPLES < members[name] <= 2147483647:
            members[name] = MOST_SAMPLES


def is_file(value):
    return isinstance(value, (str, bytes)) and not is_id(value)


def fill_upload(case):
    """Replaces the body by a real file, mostly without a digest, which would not match.
    """
    file = "spare:" + case.path.split("/")[2]
    if is_file(case.body):
        case.body = file
    elif isinstance(case.body, dict):
        case.body.update((name, file) for name, value in case.body.items()
                         if is_file(value))
    if number(case) % 8:
        case.headers.pop("Repr-Digest", None)


def fill_listed(case):
    """Uses the stored model as the first of the files; no other file exists."""
    files = case.body.get("files") if isinstance(case.body, dict) else None
    for file in files[:1] if isinstance(files, list) else []:
        if isinstance(file, dict) and is_id(file.get("digest")):
            file["digest"] = STORED["models"][0]


def fill_job(case):
    """Replaces generated ids by those of stored files or, in a form, by real files."""
    form = case.media_type == FORM
    for name, kind in (("model", "models"), ("calibration", "datasets")):
        value = case.body.get(name)
        if is_id(value) or value is None and name in case.body and often(case):
            case.body[name] = JOB[name]
        elif form and is_file(value):
            case.body[name] = "file:" + kind
    mend_spec(case.body.get("spec"))
    if number(case) % 8:
        case.headers.pop("Idempotency-Key", None)


def fill_body(case):
    if case.media_type == "application/json" and case.path == "/v1/models":
        fill_listed(case)
    elif case.path in ("/v1/models", "/v1/datasets", "/v1/blobs/{id}"):
        fill_upload(case)
    elif isinstance(case.body, dict):
        fill_job(case)


def fill_wait(case):
    """Sets a wait that is long enough for a job that has to run, but not endless."""
    wait = str((case.query or {}).get("wait", ""))
    if wait.isdigit() and int(wait) <= 300 and (int(wait) > LONGEST_WAIT or often(case)):
        case.query["wait"] = LONGEST_WAIT


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """curl's default type holds no form here but JSON or bytes; see before_call(). Bytes
    are text until they are sent; see SENT."""
    raw_schema["components"]["schemas"]["Bytes"].pop("format")
    bodies = list(raw_schema["components"]["requestBodies"].values())
    for path in raw_schema["paths"].values():
        bodies += [operation["requestBody"] for method, operation in path.items()
                   if method != "parameters" and "requestBody" in operation]
    for body in bodies:
        body.get("content", {}).pop(CURLS_DEFAULT, None)


def negative_places(case):
    return {place for place, info in case.meta.components.items()
            if info.mode == GenerationMode.NEGATIVE}


@schemathesis.hook
def before_call(context, case, kwargs):
    phase = case.meta.phase.name.value
    ours = unquote(str((case.path_parameters or {}).get("id"))) in KEPT
    if "id" in (case.path_parameters or {}) and ParameterLocation.PATH not in negative_places(case) and \
            (phase in ALL_REAL or phase == "fuzzing" and often(case) or
             case.method == "DELETE" and ours):
        case.path_parameters["id"] = real_id(case)
    fill_wait(case)
    if phase in ALL_REAL or often(case):
        fill_body(case)
    if case.media_type in ("application/json", "application/octet-stream") and \
            "Content-Type" not in case.headers and not often(case):
        case.headers["Content-Type"] = CURLS_DEFAULT


@schemathesis.deserializer("application/x-tar", "application/octet-stream")
def bytes_as_text(context, response):
    return response.content.decode("latin-1")


@REQUESTS_TRANSPORT.serializer("application/octet-stream")
def raw_body(context, value):
    sent = SENT.get(value, value) if isinstance(value, str) else value
    return binary_serializer(context, sent)


@REQUESTS_TRANSPORT.serializer(FORM)
def form_body(context, value):
    if isinstance(value, dict):
        value = {name: SENT.get(part, part) if isinstance(part, str) else part
                 for name, part in value.items()}
    return multipart_serializer(context, value)


class Answer:
    """An answer as contract.py reads it."""

    def __init__(self, response):
        self.status_code = response.status_code
        self.headers = CaseInsensitiveDict(
            (name, ", ".join(values)) for name, values in response.headers.items())
        self.content = response.content
        self.json = response.json


@schemathesis.check
def contract_is_kept(context, response, case):
    """Checks the parts of the contract that the document states in words: which code
    comes with which status."""
    path = response.request.url.removeprefix(STORED["url"]).split("?")[0]
    contract.check(response.request.method, path, Answer(response))
