#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Quantizes a model, holds it to the bounds of the spec, and publishes it. Needs curl and jq.
#
#   pipeline.sh MODEL DATA SPEC OUTPUT [REMOTE:REF]
#
# The service is that of QDQD_URL, the access token the text of the file QDQD_TOKEN_FILE. The
# report goes to OUTPUT.md. The status is 0 when the model is written and published, 1 when it
# missed a bound, 3 when something was refused, 4 when the service could not be reached or stayed
# busy. The last line has the reason.
set -euo pipefail
[ $# = 4 ] || [ $# = 5 ] || { echo "usage: $0 MODEL DATA SPEC OUTPUT [REMOTE:REF]" >&2; exit 2; }
model=$1 data=$2 spec=$3 output=$4 place=${5:-}
api=${QDQD_URL:-http://127.0.0.1:8383}/v1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stop() {
    echo "${0##*/}: $2" >&2
    exit "$1"
}

# The token does not stand on a command line, where others could read it.
touch "$work/head"
[ -z "${QDQD_TOKEN_FILE:-}" ] ||
    printf 'Authorization: Bearer %s\n' "$(cat "$QDQD_TOKEN_FILE")" >"$work/head"

# ask ARGUMENT...: leaves the answer in $work/answer. curl makes a lost connection again, and
# repeats a request to a busy service (429, 503) after its Retry-After.
ask() {
    local status
    status=$(curl --silent --show-error --header @"$work/head" --retry 8 --retry-all-errors \
        --retry-max-time 300 --output "$work/answer" --write-out '%{http_code}' "$@") ||
        stop 4 "$api cannot be reached"
    case $status in
    2??) return ;;
    429 | 5??) set -- 4 ;;
    *) set -- 3 ;;
    esac
    stop "$1" "$(jq --raw-output '.code + ": " + .detail' "$work/answer" 2>/dev/null ||
        echo "$api answers with $status")"
}

# store KIND FILE: sends the file, unless the service has it, and sets $id.
store() {
    id=sha256:$(sha256sum "$2" | cut -d ' ' -f 1)
    curl --silent --fail --head --header @"$work/head" --output /dev/null "$api/$1/$id" ||
        ask --request POST --header 'Content-Type: application/octet-stream' \
            --upload-file "$2" "$api/$1"
}

store models "$model" && model=$id
store datasets "$data" && data=$id

# The key lets a request whose answer was lost be repeated: it makes one job.
jq --null-input --arg model "$model" --arg data "$data" --arg place "$place" \
    --slurpfile spec "$spec" '{model: $model, calibration: $data, spec: $spec[0]} +
        if $place == "" then {} else {publish: [($place | index(":")) as $at |
            {remote: $place[:$at], ref: $place[$at + 1:]}]} end' >"$work/job.json"
ask --header 'Content-Type: application/json' --data-binary @"$work/job.json" \
    --header "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)" "$api/jobs"
job=$api/jobs/$(jq --raw-output .id "$work/answer")

# wait_until CONDITION: waits until jq finds it to be true of the job.
wait_until() {
    until ask "$job?wait=30" && jq --exit-status "$1" "$work/answer" >/dev/null; do sleep 0.2; done
}

wait_until '.state | IN("succeeded", "failed", "cancelled")'
cp "$work/answer" "$work/job"
reason=$(jq --raw-output 'if .error then .error.code + ": " + .error.detail else .state end' \
    "$work/job")
case $reason in
succeeded | accuracy:*)
    ask --header 'Accept: text/markdown' "$job/report"
    cp "$work/answer" "$output.md"
    ;;
esac
case $reason in
succeeded) ;;
accuracy:*) stop 1 "$reason" ;;
*) stop 3 "$reason" ;;
esac
ask "$job/model"
wanted=$(jq --raw-output 'if .result.files then "" else .result.model end' "$work/job")
[ -z "$wanted" ] || [ "$wanted" = "sha256:$(sha256sum "$work/answer" | cut -d ' ' -f 1)" ] ||
    stop 4 "the download is damaged"
mv "$work/answer" "$output"
echo "$output: $(jq --raw-output .result.summary.verdict "$work/job")"

[ -n "$place" ] || exit 0
wait_until '.deliveries | all(.state != "pending")'
reason=$(jq --raw-output '.deliveries[] | select(.state == "failed") | .error.code + ": " +
    .error.detail' "$work/answer")
[ -z "$reason" ] || stop 3 "$reason"
jq --raw-output '"published: " + .deliveries[].location' "$work/answer"
