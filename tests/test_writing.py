"""Files are written whole, where they may be, or not at all."""

import os
import re
import stat
import sys

import pytest

from classprior._data.writing import check_outputs, whole_file, write_text


def write_half(path, error):
    with whole_file(path) as file:
        file.write(b"half")
        raise error


def refused(path, *paths, force=True):
    """Check that outputs are refused, with a reason that names one of them."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        check_outputs(path, *paths, force=force)
    assert "--" not in str(caught.value)  # options are the command line's


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):
        with pytest.raises(type(error)):
            write_half(path, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_file_is_replaced_only_on_purpose(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    refused(path, force=False)
    check_outputs(path, force=True)
    refused(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX modes")
def test_a_replaced_file_keeps_its_mode_and_its_links(tmp_path):
    path, link = tmp_path / "secret.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_has_the_usual_mode(tmp_path):
    write_text(tmp_path / "ours.csv", "new")
    (tmp_path / "theirs.csv").write_text("new")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_outputs_that_could_not_be_written(tmp_path):
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("no folder")
    refused(pipe)
    with pytest.raises(ValueError, match=re.escape(str(pipe))):
        write_text(pipe, "text")
    assert pipe.is_fifo()
    refused(file / "deeper" / "out.csv")
    refused(tmp_path / "out.csv", None, tmp_path / "x" / ".." / "out.csv")
    check_outputs(tmp_path / "new" / "out.csv", None, tmp_path / "other.csv", force=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe"]
