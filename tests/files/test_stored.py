"""Files as they are found on disk: damaged, changing, packed, endless, linked or special."""

import bz2
import gc
import gzip
import os
import resource
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from classprior import PenalizedL1Prior, estimate_prior
from classprior._files.finding import find_files
from classprior._files.reading import open_files
from classprior._samples.inputs import as_source
from classprior.engines import fit_blocks

X = np.random.default_rng(0).normal(size=(900, 2)) + np.repeat([[0.0], [3.0]], [500, 400], axis=0)
FRAME = pd.DataFrame(X, columns=["x1", "x2"])
POSITIVE = FRAME[:200]
FEW = FRAME[:40], FRAME[460:560]
posix = pytest.mark.skipif(sys.platform == "win32", reason="not on this system")


def opened(path, **options):
    return as_source(path, "the rows", read_options=options)


def rows_of(source):
    tables = [table.to_pandas() for block in source for table in block.tables()]
    return pd.concat(tables, ignore_index=True)


def zstd(content):
    return pa.compress(content, codec="zstd", asbytes=True)


# --- the index of a pandas frame is a column -----------------------------------------------------

STORES = {
    "parquet": lambda frame, path: frame.to_parquet(path),
    "feather": lambda frame, path: pa.feather.write_feather(
        pa.Table.from_pandas(frame, preserve_index=True), str(path)
    ),
}


@pytest.fixture
def indexed(tmp_path):
    """Return both samples in files of a kind, with their first column as index."""

    def written(kind):
        for name, frame in zip(("positive", "unlabeled"), FEW, strict=True):
            STORES[kind](frame.set_index("x1"), tmp_path / f"{name}.{kind}")
        return tmp_path / f"positive.{kind}", tmp_path / f"unlabeled.{kind}"

    return written


@pytest.mark.parametrize("door", ["files", "tables", "dataset"])
@pytest.mark.parametrize("kind", STORES)
def test_a_stored_index_is_a_column(indexed, kind, door):
    samples = indexed(kind)
    if door == "tables":
        read = pq.read_table if kind == "parquet" else pa.feather.read_table
        samples = [read(path) for path in samples]
    elif door == "dataset":
        samples = [ds.dataset(path, format=kind) for path in samples]
    plain = [frame[["x2", "x1"]] for frame in FEW]  # the index comes last
    expected = estimate_prior(*plain, method="penl1", random_state=0)
    answer = estimate_prior(*samples, columns=["x1", "x2"], method="penl1", random_state=0)
    assert answer.columns == expected.columns
    assert answer.prior == expected.prior
    fitted = PenalizedL1Prior(n_centers=10, random_state=0)
    assert fit_blocks(fitted, *samples, columns=["x1", "x2"]).n_features_in_ == 2


def test_row_labels_without_a_name_are_no_feature(tmp_path):
    for name, frame in zip(("positive", "unlabeled"), FEW, strict=True):
        shuffled = frame.sample(frac=1, random_state=0)
        pd.concat([shuffled, shuffled]).to_parquet(tmp_path / f"{name}.parquet")
    answer = estimate_prior(
        tmp_path / "positive.parquet", tmp_path / "unlabeled.parquet", method="penl1"
    )
    (labels,) = (column for column in answer.columns if column.name.startswith("__index"))
    assert labels.is_left_out


# --- damaged files -------------------------------------------------------------------------------


def flipped(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("is_dataset", [False, True])
def test_a_flipped_bit_in_a_parquet_page_is_noticed(tmp_path, is_dataset):
    path = tmp_path / "rows.parquet"
    table = pa.Table.from_pandas(FRAME)
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    flipped(path, 2000)
    assert not pq.read_table(path).equals(table)  # which nobody notices
    source = as_source(ds.dataset(path) if is_dataset else path, "the rows")
    with pytest.raises(ValueError, match=r"rows\.parquet.* the rows.*(?i:crc|checksum)"):
        rows_of(source)


def write_feather(path):
    names = ["Graz", "Wien", None] * 300
    table = pa.table({"x1": X[:, 0], "town": names})
    pa.feather.write_feather(table, str(path), compression="uncompressed", chunksize=300)


@posix
def test_no_damaged_feather_file_crashes(tmp_path):
    """Offsets that point outside; in a process of its own."""
    path = tmp_path / "rows.feather"
    write_feather(path)
    offsets = np.array([0, 4, 8, 8, 12, 16, 16], dtype="<i4").tobytes()  # of Graz, Wien and None
    place = path.read_bytes().index(offsets)
    content = bytearray(path.read_bytes())
    content[place + 23] = 0x7F  # the highest byte of an offset
    path.write_bytes(content)
    code = f"""
import pyarrow
from classprior import estimate_prior
try:
    estimate_prior({str(path)!r}, {str(path)!r})
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "rows.feather" in done.stdout
    assert "record batch 0" in done.stdout


def test_column_names_that_are_no_text(tmp_path):
    path = tmp_path / "rows.feather"
    write_feather(path)
    path.write_bytes(path.read_bytes().replace(b"town", b"\xff\xffwn"))
    with pytest.raises(ValueError, match=r"rows\.feather"):
        opened(path)


# --- files that change ---------------------------------------------------------------------------

WRITE = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path, row_group_size=100),
    "feather": lambda frame, path: pa.feather.write_feather(
        pa.Table.from_pandas(frame), str(path), compression="uncompressed", chunksize=100
    ),
    "npy": lambda frame, path: np.save(path, frame.to_numpy()),
}
each_format = pytest.mark.parametrize("kind", WRITE)


@each_format
@pytest.mark.parametrize("how", ["replaced", "rewritten", "cut off", "deleted"])
def test_a_file_that_changes_during_a_pass_is_named(tmp_path, kind, how, monkeypatch):
    monkeypatch.setattr("classprior._files.reading._HELD_BYTES", 0)  # as if it were large
    path = tmp_path / f"rows.{kind}"
    WRITE[kind](FRAME, path)
    source = as_source(path, "the rows", block_rows=100, n_jobs=1)
    assert source.n_rows == 900
    before = path.stat()

    def change(number):
        if number == 3 and how == "replaced":  # by a file of the same size and time
            WRITE[kind](FRAME[::-1], tmp_path / f"other.{kind}")
            os.replace(tmp_path / f"other.{kind}", path)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        elif number == 3 and how == "rewritten":
            WRITE[kind](FRAME[::-1], path)
        elif number == 3 and how == "cut off":
            os.truncate(path, before.st_size // 3)
        elif number == 3:
            path.unlink()

    error = FileNotFoundError if how == "deleted" else ValueError
    passed = enumerate(source.map(lambda block: list(block.tables())))
    with pytest.raises(error, match=rf"rows\.{kind}"):
        _ = [change(number) for number, _ in passed]


@posix
@pytest.mark.parametrize("kind", ["feather", "npy", "memory map"])
def test_a_file_cut_off_while_it_is_read_does_not_kill_the_process(tmp_path, kind):
    """In a process of its own; what a memory map reads beyond the end is a signal."""
    path = tmp_path / ("rows.feather" if kind == "feather" else "rows.npy")
    WRITE["feather" if kind == "feather" else "npy"](pd.concat([FRAME] * 100), path)
    rows = f"np.load({str(path)!r}, mmap_mode='r')" if kind == "memory map" else repr(str(path))
    code = f"""
import os
import numpy as np
from classprior._samples.inputs import as_source
source = as_source({rows}, "the rows", block_rows=1000, n_jobs=1)
assert source.n_rows == 90_000
try:
    for block in source:
        [np.asarray(table).sum() for table in block.tables()]
        if block.start == 2000:
            os.truncate({str(path)!r}, 5000)
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.returncode
    assert path.name in done.stdout


@pytest.mark.parametrize("order", "CF")
def test_npy_files_by_row_and_by_column(tmp_path, order):
    np.save(tmp_path / "rows.npy", np.asarray(X, order=order))
    source = as_source(tmp_path / "rows.npy", "X", block_rows=170)
    tables = [table for block in source for table in block.tables()]
    assert len(tables) == 6
    np.testing.assert_array_equal(np.vstack(tables), X)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY and nothing else", None])
def test_npy_files_that_are_none(tmp_path, content):
    path = tmp_path / "rows.npy"
    if content is None:
        np.save(path, np.array([[object()]]))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.npy.* the rows"):
        as_source(path, "the rows")


# --- packed, endless and special files -----------------------------------------------------------

TEXT = FRAME.to_csv(index=False)


@pytest.mark.parametrize("name", ["t.csv", "t.gz", "t.csv.gz", "t.csv.bz2", "t.csv.zst", "t.tsv"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zstd])
def test_compression_goes_by_content(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(TEXT.encode()))
    assert rows_of(opened(tmp_path / name)).equals(FRAME)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd])
def test_packed_files_joined_or_cut(tmp_path, pack):
    path = tmp_path / "rows.csv"
    head, rows = TEXT.split("\n", 1)
    path.write_bytes(pack(f"{head}\n".encode()) + pack(rows.encode()))
    assert rows_of(opened(path)).equals(FRAME)
    path.write_bytes(pack(TEXT.encode())[:-20])
    with pytest.raises(ValueError, match=r"rows\.csv.*truncated"):
        opened(path)


def limited(arguments, megabytes, **options):
    """Run Python in a process with so much memory."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2)

    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        preexec_fn=limit,
        capture_output=True,
        check=False,
        env=environment,
        timeout=300,
        **options,
    )


#: A gigabyte of each, from a file of a few megabytes at most.
BOMBS = {
    "zeros": (b"", b"\0", "zero at byte 0"),
    "one line": (b"x1,x2\n1,2\n", b"7", "16 MiB"),
    "rows": (b"x1,x2\n", b"1.25,2.5\n3.25,4.5\n" * 7, "True"),
}


@posix
@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.slow
def test_a_file_that_unpacks_to_a_gigabyte(tmp_path, kind):
    """Is refused, or read, in bounded memory."""
    head, unit, fact = BOMBS[kind]
    path = tmp_path / "bomb.csv.gz"
    part = unit * (2**20 // len(unit))
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(1024):
            file.write(part)
    code = f"""
from classprior._samples.inputs import as_source
try:
    source = as_source({str(path)!r}, "X", n_jobs=1)
    print(source.n_rows == sum(t.num_rows for block in source for t in block.tables()))
except ValueError as error:
    print(error)
"""
    done = limited(["-c", code], 2500)
    assert done.returncode == 0, done.stderr[-500:]
    assert fact in done.stdout.decode()


@posix
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_devices_are_refused(path):
    with pytest.raises(ValueError, match=f"{path}.*device"):
        open_files(find_files(path, "csv"), "the rows")


@posix
def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("rows.csv")
        with pytest.raises(ValueError, match=r"rows\.csv.*socket"):
            opened("rows.csv")


@posix
def test_a_device_as_standard_input_is_refused():
    code = """
import sys
from classprior._files.reading import open_files
from classprior._files.finding import find_files
try:
    open_files(find_files("-"), "the rows")
except ValueError as error:
    print(error)
"""
    with open("/dev/zero", "rb") as zeros:
        done = limited(["-c", code], 2500, stdin=zeros)
    assert b"device" in done.stdout


@pytest.mark.parametrize("has_name", [False, True])
def test_pipes_are_copied_to_disk_and_the_copy_is_deleted(tmp_path, monkeypatch, has_name):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if has_name:
        monkeypatch.setattr("classprior._files.temporary._MOST_NAMELESS", 0)
        monkeypatch.setattr("classprior._files.temporary.own_folder", lambda: tmp_path)
    content = TEXT.encode()

    class Endless:  # a pipe gives what it has
        def __init__(self):
            self.parts = iter([content[:100], content[100:], b""])

        def read(self, size):
            assert 0 < size <= 2**24
            return next(self.parts)

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Endless()))
    source = opened("-")
    assert len(list(tmp_path.iterdir())) == has_name
    path = source.opened._stored[0].path
    assert rows_of(source).equals(FRAME)
    del source
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    assert not path.exists()


@posix
def test_the_same_pipe_has_the_same_identity(tmp_path):
    def through_pipe(content):
        pipe = tmp_path / "pipe.csv"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
        writer.start()
        source = opened(pipe)
        writer.join()
        return source.identity

    assert through_pipe(TEXT.encode()) == through_pipe(TEXT.encode())
    assert through_pipe(TEXT.encode()) != through_pipe(TEXT.replace("9", "8").encode())


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(self, part):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=full)))
    monkeypatch.setattr(sys.stdin.buffer, "read", lambda size: full(None, size))
    with pytest.raises(OSError, match="No space left") as caught:
        opened("-")
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- which files ---------------------------------------------------------------------------------


@posix
def test_links_do_not_multiply_rows(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{name},1\n")
    (tmp_path / "up").symlink_to(tmp_path)  # a folder that holds itself, twice
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "c.csv").symlink_to(tmp_path / "a.csv")
    for source in (tmp_path / "**" / "*.csv", tmp_path / "**", tmp_path, tmp_path / "*.csv"):
        found = find_files(source)
        assert [path.name for path in found.paths] == ["a.csv", "b.csv"]
        assert list(rows_of(as_source(source, "the rows"))["x"]) == ["a", "b"]


@posix
def test_linked_folders_are_read(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "2026").symlink_to(tmp_path / "elsewhere")
    assert [path.name for path in find_files(tmp_path / "here").paths] == ["a.csv"]
    assert [path.name for path in find_files(tmp_path / "here" / "**/*.csv").paths] == ["a.csv"]


@posix
@pytest.mark.parametrize("target", ["loop.csv", "nowhere.csv"])
def test_a_link_that_leads_nowhere_is_refused(tmp_path, target):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "loop.csv").symlink_to(tmp_path / target)
    for source in (tmp_path / "loop.csv", tmp_path / "*.csv", tmp_path, [tmp_path]):
        with pytest.raises(ValueError, match=r"loop\.csv.*symbolic link"):
            find_files(source)


def test_a_list_with_a_file_twice_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x,y\n1,2\n")
    for source in (["a.csv", "a.csv"], ["a.csv", tmp_path / "a.csv"], [".", "*.csv"]):
        with pytest.raises(ValueError, match=r"a\.csv.*twice"):
            find_files(source)


def test_an_empty_path_is_not_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="empty"):
        find_files("")
    with pytest.raises(ValueError, match="empty"):
        estimate_prior("", "a.csv")


@posix
def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    with open(path, "wb") as file:
        file.write(TEXT.encode())
    for source in (os.fsdecode(path), tmp_path):
        with pytest.raises(ValueError, match="UTF-8"):
            opened(source)


@pytest.mark.parametrize("encoding", ["base64", "rot13", "undefined", "zip"])
def test_codecs_that_are_not_for_text(tmp_path, encoding):
    (tmp_path / "rows.csv").write_text(TEXT)
    with pytest.raises(ValueError, match=encoding):
        opened(tmp_path / "rows.csv", encoding=encoding)


@pytest.mark.parametrize("place", ["early", "late"])
def test_a_fault_in_a_large_file_of_another_encoding(tmp_path, place):
    """The process ends: no thread is left that would wait for the interpreter at exit."""
    rows = ["Änne,1.5"] * 4_000_000
    rows.insert(0 if place == "early" else len(rows), "a,b,c")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["name,x", *rows]), encoding="latin-1")
    code = f"""
from classprior import estimate_prior
try:
    estimate_prior({str(path)!r}, {str(path)!r}, read_options={{"encoding": "latin-1"}})
except ValueError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0
    assert f"row {2 if place == 'early' else 4_000_002}" in done.stdout


# --- the row in its file -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("door", ["estimate_prior", "fit_blocks"])
def test_a_value_too_large_is_named_with_its_file_and_row(tmp_path, kind, door):
    """The first row below the header of a CSV file is row 2; other rows count from 0."""
    wrong = FRAME.copy()
    wrong.loc[777, "x2"] = 1e150
    for number, part in enumerate([wrong[:500], wrong[500:].reset_index(drop=True)]):
        WRITE[kind](part, tmp_path / f"part-{number}.{kind}")
    row = 277 + 2 * (kind == "csv")
    facts = rf"1e\+150 .*'x2' .*X_unlabeled, .*part-1\.{kind}.*row {row}\)"
    doors = {
        "fit_blocks": partial(fit_blocks, PenalizedL1Prior(random_state=0)),
        "estimate_prior": partial(estimate_prior, method="penl1"),
    }
    with pytest.raises(ValueError, match=facts):
        doors[door](POSITIVE, tmp_path)


def test_json_lines_must_be_utf8(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(b'{"a": 1}\n{"\xe9": 2}\n')
    with pytest.raises(ValueError, match=r"t\.jsonl.*UTF-8.*line 2"):
        as_source(tmp_path / "t.jsonl", "X")
