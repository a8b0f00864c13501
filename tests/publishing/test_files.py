"""Files are whole or not there, a folder has one process, an error has one line."""

import errno
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, needs_file_limit

from ppm.publishing import files
from ppm.publishing.files import FolderInUse, alone_in, one_line, write_whole


@needs_file_limit
def test_where_a_text_cannot_be_written_the_earlier_one_stays(tmp_path, file_limit):
    path = tmp_path / "table.csv"
    for earlier in (None, "short"):
        if earlier:
            write_whole(path, earlier)
        with file_limit(1000), pytest.raises(OSError) as caught:
            write_whole(path, "long" * 1000)
        assert one_line(caught.value) == f"File too large: {path}"
        assert [file.read_text() for file in tmp_path.iterdir()] == ([earlier] if earlier else [])


def test_an_interrupt_while_writing_leaves_the_earlier_text(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    write_whole(path, "earlier")
    with monkeypatch.context() as patch:

        def interrupt(*arguments):
            raise KeyboardInterrupt

        patch.setattr(files.Path, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_whole(path, "later")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["earlier"]
    write_whole(path, "later")
    assert path.read_text() == "later"


locks = pytest.mark.skipif(files.fcntl is None, reason="needs POSIX locks")


@locks
def test_a_folder_has_one_process_at_a_time(tmp_path):
    folder = tmp_path / "_build"
    with alone_in(folder), pytest.raises(FolderInUse) as caught, alone_in(folder):
        pytest.fail("two at a time")
    assert str(caught.value) == f"another process is at work in {folder}; wait for its end"
    with alone_in(folder):
        pass


@locks
def test_a_lock_dies_with_its_process(tmp_path):
    holder = (
        "import sys, time\n"
        "from ppm.publishing.files import alone_in\n"
        "with alone_in(sys.argv[1]):\n    print('locked', flush=True)\n    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", holder, tmp_path]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(FolderInUse), alone_in(tmp_path):
            pytest.fail("two at a time")
        process.kill()
    with alone_in(tmp_path):
        pass


def test_where_there_are_no_locks_nobody_is_kept_out(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    if files.fcntl:
        monkeypatch.setattr(files.fcntl, "flock", refuse)
        with alone_in(tmp_path), alone_in(tmp_path):
            pass
    monkeypatch.setattr(files, "fcntl", None)
    with alone_in(tmp_path), alone_in(tmp_path):
        pass


@pytest.mark.parametrize(
    ("error", "told", "without_file"),
    [
        (OSError(28, "No space left", "/a/b"), "No space left: /a/b", "No space left"),
        (OSError(36, "Too long", "x" * 300), f"Too long: {'x' * 100}…", "Too long"),
        (OSError("said so"), "said so", "said so"),
        (TimeoutError(), "TimeoutError", "TimeoutError"),
        (ValueError("one\ntwo"), "one", "one"),
        (ValueError(), "ValueError", "ValueError"),
    ],
    ids=["file", "long name", "text", "nothing", "two lines", "no text"],
)
def test_an_error_has_one_line(error, told, without_file):
    assert one_line(error) == told
    assert one_line(error, with_file=False) == without_file


def test_of_many_files_that_could_not_be_copied_one_is_named(tmp_path):
    (tmp_path / "from").mkdir()
    for name in "abc":
        (tmp_path / "from" / name).touch()

    def full(source, target, **options):
        raise OSError(28, "No space left", target)

    with pytest.raises(shutil.Error) as caught:
        shutil.copytree(tmp_path / "from", tmp_path / "to", copy_function=full)
    told = one_line(caught.value)
    assert told == "3 files could not be copied, the first for this: No space left"
