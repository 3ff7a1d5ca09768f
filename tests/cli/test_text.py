"""Secrets and control characters are not shown."""

from __future__ import annotations

import json

import pytest

from localkmeans_spark.cli.messages import json_line, masked, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3a://KEY:SECRET@bucket/a", "s3a://***@bucket/a"),
        ("s3a://KEY:SEC/RET@bucket/a", "s3a://***@bucket/a"),
        ("s3a://KEY:SE@CRET@bucket/a@b", "s3a://***@bucket/a@b"),
        ("'s3a://KEY:SECRET@b/x' and s3n://K:S@c", "'s3a://***@b/x' and s3n://***@c"),
        ("s3a:/KEY:SECRET@bucket/a", "s3a:/***@bucket/a"),
        ("https://TOKEN@host/x", "https://***@host/x"),
        (
            "abfss://box@account.dfs.core.windows.net/x",
            "abfss://box@account.dfs.core.windows.net/x",
        ),
        ("abfss://box:SECRET@account/x", "abfss://***@account/x"),
        ("wasbs://b@a/x?sv=1&sig=SECRET&se=2", "wasbs://b@a/x?sv=1&sig=***&se=2"),
        ("http://h/x?X-Amz-Signature=SECRET&a=1", "http://h/x?X-Amz-Signature=***&a=1"),
        ("http://h/x?access_token=SECRET", "http://h/x?access_token=***"),
        ("hdfs://host:9000/dir/a@b", "hdfs://host:9000/dir/a@b"),
        ("s3a://bucket/user@example.com/f", "s3a://bucket/user@example.com/f"),
        ("a.csv", "a.csv"),
    ],
)
def test_credentials_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b[2J\x9b\u202e\udc80é 😀") == "a\\x1b[2J\\x9b\\u202e\\udc80é 😀"
    values = {"a": "\x1b\x9b\u202e😀", "b": float("nan"), "c": "s3a://K:S@b", "d": ["\x07"]}
    line = json_line(values)
    assert line.isprintable()
    assert json.loads(line) == {
        "a": "\x1b\x9b\u202e😀",
        "b": None,
        "c": "s3a://***@b",
        "d": ["\x07"],
    }
