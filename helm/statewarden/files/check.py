"""What `helm test` runs: can the rollup read and write where it must, and did an audit succeed?

Standard library only. Prints a line for each thing looked at; exit code 1 if one of them is wrong.
"""

import argparse
import json
import os
import sys
import tempfile
import urllib.error
import urllib.request

TIMEOUT_S = 10.0


def readable(folder):
    """Say how many entries a directory has, or why it cannot be read."""
    try:
        return f"{folder} is readable, {len(os.listdir(folder))} entries", True
    except OSError as error:
        return (
            f"{folder} cannot be read ({error.strerror}): is the claim bound, and is rollup.group its group?",
            False,
        )


def writable(folder):
    """Say whether a file can be made in a directory; leaves nothing behind."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return f"{folder} is writable", True
    except OSError as error:
        return (
            f"{folder} cannot be written ({error.strerror}): is rollup.group the group of the claim?",
            False,
        )


def audited(folder):
    """Say what the last audit saw; that there is none yet is no fault of the installation."""
    path = os.path.join(folder, "audit", "_SUCCESS.json")
    try:
        with open(path, encoding="utf-8") as file:
            return f"last audit looked up to {json.load(file)['watermark']}", True
    except FileNotFoundError:
        return "no audit has finished yet; start one: see the notes of the release", True
    except (OSError, ValueError, KeyError) as error:
        return f"{path} cannot be used: {error!r}", False


def reached(bucket, endpoint, region):
    """Say whether an object store answers. Unsigned, so it refuses: whether credentials fit, the first ingest shows."""
    if not endpoint:
        region = region or os.environ.get("AWS_REGION") or "us-east-1"
        endpoint = f"https://s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    url = f"{endpoint}/{bucket}"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    except OSError as error:
        return (
            f"{url} does not answer ({error}): is objectStore.endpoint right, and does a network policy forbid it?",
            False,
        )
    if status == 404:
        return f"{url} answers 404: there is no such bucket (objectStore.bucket)", False
    return f"{url} answers ({status})", True


def answers(url):
    """Say whether a Pushgateway is ready."""
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=TIMEOUT_S) as answer:
            return f"{url} answers {answer.status}", True
    except OSError as error:
        return f"{url} does not answer ({error}): is it running, and does a network policy forbid it?", False


def main():
    """Look at everything that was named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", required=True)
    parser.add_argument("--events")
    parser.add_argument("--bucket", action="append", default=[])
    parser.add_argument("--endpoint")
    parser.add_argument("--region")
    parser.add_argument("--pushgateway")
    given = parser.parse_args()
    found = [writable(given.results), audited(given.results)]
    if given.events:
        found.insert(0, readable(given.events))
    found += [reached(bucket, given.endpoint, given.region) for bucket in given.bucket]
    if given.pushgateway:
        found.append(answers(given.pushgateway))
    for text, good in found:
        print("ok    " if good else "FAILED", text)
    return int(not all(good for _, good in found))


if __name__ == "__main__":
    sys.exit(main())
