"""The download of the Bureau's files."""

from functools import partial
from pathlib import Path

import pooch
import pytest
import requests
from survey_files import csv_text, packed, unit, write_zip

from ppm_book.chapters import survey


@pytest.fixture
def server(monkeypatch):
    """What a server of one's own answers, and a list of what it was asked for."""
    answer, asked = [], []

    def fetch(headers, url, output, _):
        asked.append((url, headers["User-Agent"]))
        if isinstance(answer[0], Exception):
            raise answer[0]
        if isinstance(answer[0], int):
            response = requests.Response()
            response.status_code = answer[0]
            response.raise_for_status()
        Path(output).write_bytes(answer[0])

    monkeypatch.setattr(
        pooch, "HTTPDownloader", lambda headers: partial(fetch, headers)
    )
    return answer, asked


def test_download_once_and_check(tmp_path, server):
    files = {
        f"fmld18{quarter}.csv": csv_text(unit(quarter), diary=True)
        for quarter in (1, 2)
    }
    answer, asked = server
    answer.append(write_zip(tmp_path / "a.zip", files).read_bytes())
    folder = tmp_path / "new"
    options = {
        "year": 2018,
        "survey": "diary",
        "base_url": "http://a/b/",
        "contact": "me@b.gov",
    }
    with pytest.raises(ValueError, match="does not match the known hash"):
        survey.download(folder, known_hash="0" * 64, **options)
    assert not [*folder.iterdir()]
    # the second one is not fetched again
    found = [survey.download(folder, **options) for _ in range(2)]
    assert (
        found == 2 * [folder / "diary18.zip"] and survey.load(found[0]).units_read == 2
    )
    assert asked == 2 * [("http://a/b/diary18.zip", "ppm (Python package) me@b.gov")]
    refused = (
        {"year": 2012},
        {"year": 2080},
        {"year": 2117},
        {"year": "2017"},
        {"survey": "census"},
    )
    for wrong in refused:
        with pytest.raises(ValueError, match=f"^{[*wrong][0]} must be "):
            survey.download(tmp_path, **wrong)


def test_the_bureau_has_the_years_from_2022_in_another_folder(tmp_path, server):
    answer, asked = server
    answer.append(packed())
    for year, kind in ((2021, "interview"), (2022, "interview"), (2079, "diary")):
        survey.download(tmp_path, year=year, survey=kind)
    root = "https://www.bls.gov/cex/pumd/data/"
    told = [url.removeprefix(root) for url, _ in asked]
    assert told == ["comma/intrvw21.zip", "csv/intrvw22.zip", "csv/diary79.zip"]


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (
            b"<html>Denied</html>",
            survey.DataFileError,
            "intrvw23.zip is not a zip file but looks like "
            "a web page, and was not kept; pass contact=.*, or open http://a/intrvw23.zip",
        ),
        (
            packed()[:-30],
            survey.DataFileError,
            "intrvw23.zip is not a whole zip file .* not kept",
        ),
        (
            403,
            PermissionError,
            "the server refuses intrvw23.zip .403.; pass contact=.*, or open http",
        ),
        (
            404,
            FileNotFoundError,
            "http://a/intrvw23.zip does not exist .404.; year 2023 of survey",
        ),
        (503, requests.HTTPError, "503"),
        # with no word of the library that met it
        *(
            (
                error("HTTPSConnectionPool"),
                ConnectionError,
                "intrvw23.zip cannot be fetched "
                rf"\({error.__name__}: no network, .*\); open http://a/intrvw23.zip in a browser and put",
            )
            for error in (
                requests.ConnectionError,
                requests.exceptions.SSLError,
                requests.ReadTimeout,
                requests.exceptions.ChunkedEncodingError,
            )
        ),
    ],
)
def test_what_the_server_sends_instead_is_told_and_not_kept(
    tmp_path, server, answer, error, words
):
    server[0].append(answer)
    for _ in range(2):
        with pytest.raises(error, match=f"^{words}"):
            survey.download(tmp_path, year=2023, base_url="http://a")
    assert len(server[1]) == 2 and not [*tmp_path.iterdir()]


def test_a_page_put_there_by_hand_is_left_and_told(tmp_path, server, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "intrvw17.zip").write_text("<html>Denied</html>")
    for folder in tmp_path, "~":
        for tried in (
            survey.download,
            lambda folder: survey.load(f"{folder}/intrvw17.zip"),
        ):
            with pytest.raises(
                survey.DataFileError, match="looks like a web page; remove it"
            ):
                tried(folder)
    assert (tmp_path / "intrvw17.zip").exists() and not server[1]
