#!/usr/bin/env python3
"""Writes tests/fixtures/parquet: small Parquet files, each in another encoding or compression, and the rows that they hold
as JSON Lines: required.jsonl, other-types.jsonl, and rows.jsonl, whose first rows all others hold. Run by hand, from the
repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install pyarrow==26.0.1
    /tmp/oracle/bin/python tests/oracle/parquet.py
"""
import json

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = "tests/fixtures/parquet"
WORDS = "der Hund und die Katze gehen über den Fluss, weil das Wasser kühl ist 🐈".split()


def text(i, words):
    return " ".join(WORDS[(i * 7 + k * k) % len(WORDS)] for k in range(words))


def rows(count):
    """Every type that is read: required and optional, a struct, lists of texts and of structs, nulls, empties."""
    return pa.table(
        {
            "id": pa.array([f"row {i}" for i in range(count)], pa.string()),
            "question": pa.array([text(i, i % 9 + 1) for i in range(count)], pa.large_string()),
            "kind": pa.array([None if i % 5 == 0 else ["a", "b", "", "dd"][i % 4] for i in range(count)]),
            "small": pa.array([None if i % 3 == 0 else i * 1000003 - 2**30 for i in range(count)], pa.int32()),
            "unsigned": pa.array([2**32 - 1 - i for i in range(count)], pa.uint32()),
            "large": pa.array([(-1) ** i * i * 2**40 for i in range(count)], pa.int64()),
            "real": pa.array([i / 8 - 3 for i in range(count)], pa.float64()),
            "single": pa.array([None if i % 7 == 1 else i / 4 for i in range(count)], pa.float32()),
            "flag": pa.array([None if i % 4 == 2 else i % 3 == 0 for i in range(count)]),
            "flags": pa.array([i // 20 % 2 == 0 for i in range(count)]),
            "translation": pa.array(
                [None if i % 11 == 3 else {"de": text(i, 3), "en": None if i % 6 == 1 else f"the {i}th"}
                 for i in range(count)],
                pa.struct([("de", pa.string()), ("en", pa.string())])),
            "turns": pa.array(
                [None if i % 13 == 2 else [None if k == 2 else text(i + k, 2) for k in range(i % 5)]
                 for i in range(count)],
                pa.list_(pa.string())),
            "conversations": pa.array(
                [[{"from": ["human", "gpt"][k % 2], "value": text(i * k, 2)} for k in range(i % 4)]
                 for i in range(count)],
                pa.list_(pa.struct([("from", pa.string()), ("value", pa.string())]))),
            "nested": pa.array(
                [[[k, i] * (k % 3) for k in range(i % 3)] for i in range(count)], pa.list_(pa.list_(pa.int64()))),
        })


def write(name, table, **settings):
    path = f"{FOLDER}/{name}.parquet"
    pq.write_table(table, path, **settings)
    return pq.read_table(path)


def write_rows(name, table):
    with open(f"{FOLDER}/{name}.jsonl", "w") as f:
        for row in table.to_pylist():
            f.write(json.dumps(row, ensure_ascii=False) + "\n")


everything = rows(60)
required = pa.schema([pa.field("prompt", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)])

write("plain", rows(20), compression="none", use_dictionary=False, write_statistics=False)
write("dictionary", everything, compression="none", write_statistics=False)
write("snappy", everything, compression="snappy", row_group_size=25)
write("gzip", everything, compression="gzip", data_page_size=256, write_batch_size=8, write_statistics=False)
write_rows("rows", write("zstd", everything, compression="zstd", write_page_checksum=True))
write("pages-2", everything, compression="zstd", data_page_version="2.0", data_page_size=256, write_batch_size=8,
      use_dictionary=["kind", "id"], write_statistics=False)
write("pages-2-plain", rows(20), compression="none", data_page_version="2.0", version="1.0", write_statistics=False)
write("old-lists", rows(20), compression="snappy", use_compliant_nested_type=False, version="1.0")
write_rows("required", write("required", pa.table(
    {"prompt": [text(i, 12) for i in range(20)] * 3, "n": range(60)}, schema=required), compression="snappy",
    use_dictionary=False))
write("empty", rows(0), compression="snappy")

# Types that aren't read are null.
other = pa.table({
    "prompt": ["one", "two"],
    "time": pa.array([1, 2], pa.timestamp("ns")),
    "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
    "picture": pa.array([b"\x89PNG\xff", None], pa.binary()),
})
null = pa.nulls(2, pa.string())
write("other-types", other, compression="none", use_deprecated_int96_timestamps=True)
write_rows("other-types", pa.table({"prompt": other["prompt"], "time": null, "fixed": null, "picture": null}))

# Refused, with no rows to compare.
for codec in ("brotli", "lz4"):
    pq.write_table(pa.table({"prompt": ["a" * 40]}), f"{FOLDER}/refused-{codec}.parquet", compression=codec)
pq.write_table(pa.table({"prompt": ["one", "two", "three"]}), f"{FOLDER}/refused-delta.parquet", use_dictionary=False,
               column_encoding={"prompt": "DELTA_BYTE_ARRAY"}, compression="none")
pq.write_table(pa.table({"prompt": pa.array(["one", "t\0wo"])}), f"{FOLDER}/refused-nul.parquet", compression="none")
