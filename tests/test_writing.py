"""Files are written whole, where they may be, or not at all."""

import os
import stat
from functools import partial

import pytest

from classprior._writing import check_outputs, whole_file, write_text


def write_half(path, error):
    with whole_file(path) as file:
        file.write(b"half")
        raise error


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):
        with pytest.raises(type(error)):
            write_half(path, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match=r"exists\. Choose another name, or say --force"):
        check_outputs(path, force=False)
    with pytest.raises(ValueError, match="got the folder"):
        check_outputs(tmp_path, force=True)
    check_outputs(path, force=True)
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_a_replaced_file_keeps_its_mode_and_its_links(tmp_path):
    path, link = tmp_path / "secret.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_outputs_that_could_not_be_written(tmp_path):
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("no folder")
    for refuse in (partial(check_outputs, pipe, force=True), partial(write_text, pipe, "text")):
        with pytest.raises(ValueError, match="a device, pipe or socket"):
            refuse()
    assert pipe.is_fifo()
    with pytest.raises(ValueError, match="Expected a folder that can be written to"):
        check_outputs(file / "deeper" / "out.csv", force=False)
    same = tmp_path / "out.csv", None, tmp_path / "x" / ".." / "out.csv"
    with pytest.raises(ValueError, match="a file of its own for every output"):
        check_outputs(*same, force=False)
    check_outputs(tmp_path / "new" / "out.csv", None, tmp_path / "other.csv", force=False)
