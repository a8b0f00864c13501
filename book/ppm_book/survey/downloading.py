"""Download of the Consumer Expenditure microdata from the Bureau of Labor Statistics, once."""

import hashlib
import re
import zipfile
from pathlib import Path

import numpy as np

from ppm_book.survey.files import DataFileError

BUREAU_URL = "https://www.bls.gov/cex/pumd/data/comma"


def download(
    folder, *, year=2017, survey="interview", known_hash=None, contact=None, base_url=BUREAU_URL
):
    """Download a year's microdata from the Bureau of Labor Statistics, once.

    The Bureau publishes no checksum and may reissue a file. Unless ``known_hash`` is given, the
    SHA256 of the first download is printed and recorded beside the file (``….zip.sha256``, in
    the format of sha256sum), and every later call checks the file against that record.

    Parameters
    ----------
    folder : str or path-like
        Where the zip goes; made if absent. A zip put there by hand is used as it is.
    year : int
        2015 or later (earlier files use other codes). The paper's is 2017.
    survey : {"interview", "diary"}
        The paper's is the Interview, about 6,200 consumer units a quarter.
    known_hash : str, optional
        The SHA256 the file must have, 64 hexadecimal digits, with or without ``sha256:``.
    contact : str, optional
        An e-mail address to send along: the Bureau may refuse automated requests that do not
        say whom to contact.
    base_url : str
        Where to download from instead, such as a mirror within an agency.

    Returns
    -------
    pathlib.Path
        The zip, for :func:`ppm_book.survey.load`.

    Raises
    ------
    ImportError
        pooch is not installed.
    ConnectionError
        The file could not be had; the message says what to download by hand and where to put
        it. Nothing half-downloaded is left.
    DataFileError
        The file is no zip or does not have the SHA256 it must have.
    ValueError
        An argument outside what is accepted.

    Examples
    --------
    The first download prints the file's SHA256; later calls compare it and say nothing.

    >>> from ppm_book import survey
    >>> survey.download("data").name
    'intrvw17.zip'
    """
    if isinstance(year, bool) or not isinstance(year, int | np.integer) or not 2015 <= year < 2100:
        raise ValueError(f"year must be a whole number of at least 2015, got {year!r}")
    if survey not in ("interview", "diary"):
        raise ValueError(f"survey must be 'interview' or 'diary', got {survey!r}")
    expected = None if known_hash is None else _sha256_digits(known_hash)
    if known_hash is not None and expected is None:
        raise ValueError(f"known_hash must be 64 hexadecimal digits of a SHA256: {known_hash!r}")

    folder = Path(folder).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{'intrvw' if survey == 'interview' else 'diary'}{year % 100:02d}.zip"
    target, record = folder / name, folder / f"{name}.sha256"
    whence = "known_hash"
    if expected is None and record.exists():
        whence = record.name
        expected = _sha256_digits((record.read_text(errors="replace").split() or [""])[0])
        if expected is None:
            raise DataFileError(f"{record.name} holds no SHA256; delete it to start afresh")

    fresh = not target.exists()
    if fresh:
        _fetch(f"{base_url.rstrip('/')}/{name}", target, contact)
    found = _sha256_of(target)
    trouble = ""
    if not zipfile.is_zipfile(target):
        trouble = f"{name} is no zip file: a web page, or cut off"
    elif expected is not None and found != expected:
        trouble = f"{name} has SHA256 {found}, but {whence} says {expected}: damaged, or reissued"
    if trouble and fresh:
        target.unlink()
        trouble += "; the download was removed"
    elif trouble:
        trouble += f"; delete {name} to download it again"
    if trouble and whence == record.name:
        trouble += f", delete {whence} to accept another issue"
    if trouble:
        raise DataFileError(trouble)
    if known_hash is not None or not record.exists():
        record.write_text(f"{found}  {name}\n", encoding="ascii")
    if expected is None:
        print(f"{name}: SHA256 {found}, recorded in {record.name} for later checks")
    return target


def _fetch(url, target, contact):
    """Download `url` to `target`, or leave nothing and raise one ConnectionError."""
    import pooch
    import requests

    agent = "ppm (Python package)" + (f" {contact}" if contact else "")

    def stream(url, output, _):
        # closes the connection whatever happens, which pooch's own downloader does not
        with (
            requests.get(url, headers={"User-Agent": agent}, stream=True, timeout=30) as response,
            open(output, "wb") as file,
        ):
            response.raise_for_status()
            for chunk in response.iter_content(1 << 20):
                file.write(chunk)

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        pooch.retrieve(
            url,
            known_hash=None,  # checked by the caller, whose messages name the record
            fname=target.name,
            path=target.parent,
            downloader=stream,
        )
    except requests.exceptions.RequestException as error:
        answer = getattr(error, "response", None)
        if answer is None:
            reason = "no connection, or it broke off"
        else:
            reason = f"the server answered {answer.status_code} {answer.reason}".rstrip()
            if answer.status_code == 403 and contact is None:
                reason += ", try contact='your e-mail address'"
        raise ConnectionError(
            f"could not download {url} ({reason}); fetch it in a browser, save it as {target} "
            f"and call again"
        ) from None
    finally:
        logger.setLevel(level)


def _sha256_digits(text):
    digits = str(text).strip().lower().removeprefix("sha256:")
    return digits if re.fullmatch(r"[0-9a-f]{64}", digits) else None


def _sha256_of(path):
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
