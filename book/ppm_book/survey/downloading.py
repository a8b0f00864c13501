"""Download of the Consumer Expenditure microdata from the Bureau of Labor Statistics, once."""

from pathlib import Path

from ppm.checks import check_count

BUREAU_URL = "https://www.bls.gov/cex/pumd/data/comma"


def download(
    folder, *, year=2017, survey="interview", known_hash=None, contact=None, base_url=BUREAU_URL
):
    """Download a year's microdata from the Bureau of Labor Statistics, once.

    Parameters
    ----------
    folder : str or path-like
        Where the zip goes; made if absent. A zip put there by hand is used as it is.
    year : int
        2015 or later (earlier files use other codes). The paper's is 2017.
    survey : {"interview", "diary"}
        The paper's is the Interview, about 6,200 consumer units per quarter.
    known_hash : str, optional
        The SHA256 the file must have. The Bureau publishes none and may reissue a file; without
        one, the log shows the SHA256 of the download.
    contact : str, optional
        An e-mail address to send along: the Bureau may refuse (403) automated requests that do
        not say whom to contact.
    base_url : str
        Where to download from instead, such as a mirror within an agency.

    Returns
    -------
    pathlib.Path
        The zip, for :func:`ppm_book.survey.load`.

    Examples
    --------
    >>> from ppm_book import survey
    >>> survey.download("data").name
    'intrvw17.zip'
    """
    import pooch

    check_count("year", year, at_least=2015)
    if survey not in ("interview", "diary"):
        raise ValueError(f"survey must be 'interview' or 'diary', got {survey!r}")
    name = f"{'intrvw' if survey == 'interview' else 'diary'}{year % 100:02d}.zip"
    agent = f"ppm (Python package) {contact or ''}".strip()
    downloader = pooch.HTTPDownloader(headers={"User-Agent": agent})
    url = f"{base_url.rstrip('/')}/{name}"
    return Path(pooch.retrieve(url, known_hash, name, folder, downloader=downloader))
