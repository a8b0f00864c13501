"""Download of the Consumer Expenditure microdata from the Bureau of Labor Statistics, once."""

import zipfile
from pathlib import Path

from ppm.checks import check_count
from ppm_book.chapters.survey.files import (
    FIRST_YEAR,
    LAST_YEAR,
    DataFileError,
    not_a_zip,
)

BUREAU_URL = "https://www.bls.gov/cex/pumd/data"


def download(
    folder,
    *,
    year=2017,
    survey="interview",
    known_hash=None,
    contact=None,
    base_url=None,
):
    """Download a year's microdata from the Bureau of Labor Statistics, once.

    Parameters
    ----------
    folder : str or path-like
        Where the zip goes; made if absent. A zip put there by hand is used as it is.
    year : int
        From 2015 (earlier files use other codes) to 2079. The paper's is 2017.
    survey : {"interview", "diary"}
        The paper's is the Interview, about 6,200 consumer units per quarter.
    known_hash : str, optional
        The SHA256 the file must have. The Bureau publishes none and may reissue a file; without
        one, the log shows the SHA256 of the download.
    contact : str, optional
        An e-mail address to send along: the Bureau may refuse (403) automated requests that do
        not say whom to contact.
    base_url : str, optional
        The folder to download from instead of the Bureau's, for any year, such as a mirror within
        an agency.

    Returns
    -------
    pathlib.Path
        The zip, for :func:`ppm_book.chapters.survey.load`.

    Raises
    ------
    DataFileError
        What came, or lies in the folder, is no zip file. If it came just now, it is not kept.
    FileNotFoundError
        There is no such file at this address (404).
    PermissionError
        The server refused the request (403).
    ConnectionError
        The server cannot be reached, or the connection broke off.

    Notes
    -----
    The Bureau keeps files up to 2021 in its folder ``comma``, and later ones in ``csv``. This
    second address is taken from programs that others have published, and was not tried here.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> survey.download("data").name
    'intrvw17.zip'
    """
    import pooch
    from requests import ConnectionError as NoConnection
    from requests import HTTPError, Timeout
    from requests.exceptions import ChunkedEncodingError

    if check_count("year", year, at_least=FIRST_YEAR) > LAST_YEAR:
        raise ValueError(f"year must be from {FIRST_YEAR} to {LAST_YEAR}, got {year}")
    if survey not in ("interview", "diary"):
        raise ValueError(f"survey must be 'interview' or 'diary', got {survey!r}")
    base_url = base_url or f"{BUREAU_URL}/{'csv' if year >= 2022 else 'comma'}"
    name = f"{'intrvw' if survey == 'interview' else 'diary'}{year % 100:02d}.zip"
    agent = f"ppm (Python package) {contact or ''}".strip()
    downloader = pooch.HTTPDownloader(headers={"User-Agent": agent})
    url = f"{base_url.rstrip('/')}/{name}"
    # pooch knows where ~ is
    folder = Path(folder).expanduser()
    by_hand = f"open {url} in a browser and put the file into {folder}"
    remedy = by_hand if contact else f"pass contact='your e-mail address', or {by_hand}"
    here = Path(folder, name).exists()
    try:
        file = Path(
            pooch.retrieve(url, known_hash, name, folder, downloader=downloader)
        )
    except HTTPError as error:
        code = error.response.status_code
        if code == 404:
            raise FileNotFoundError(
                f"{url} does not exist (404); year {year} of survey {survey!r} may not be out"
            ) from None
        if code == 403:
            raise PermissionError(
                f"the server refuses {name} (403); {remedy}"
            ) from None
        raise
    except (NoConnection, Timeout, ChunkedEncodingError) as error:
        raise ConnectionError(
            f"{name} cannot be fetched ({type(error).__name__}: no network, or a proxy in "
            f"between?); {by_hand}"
        ) from None
    if not zipfile.is_zipfile(file):
        fault = not_a_zip(file)
        if here:
            raise DataFileError(
                f"{fault}; remove it from {folder} and download it again"
            )
        file.unlink()
        raise DataFileError(f"{fault}, and was not kept; {remedy}")
    return file
