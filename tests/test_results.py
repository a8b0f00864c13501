"""Result tables on the page and in the folder of a run."""

import pandas as pd
import pytest

import ppm

TABLE = pd.DataFrame({"bound": [10.1234, 1234.5]}, index=["a", "b"])


def test_a_table_goes_to_the_folder_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PPM_RESULTS", str(tmp_path / "tables"))
    path = ppm.save_table(TABLE, "bounds")
    pd.testing.assert_frame_equal(pd.read_csv(path, index_col=0), TABLE)


def test_without_a_run_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("PPM_RESULTS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert ppm.save_table(TABLE, "bounds") is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "../bounds", "Bounds", "a.csv"])
def test_names_that_are_no_file_names_are_refused(name):
    with pytest.raises(ValueError, match="name must be"):
        ppm.save_table(TABLE, name)


def test_a_simulated_table_says_so():
    html = ppm.show_table(TABLE, "Bounds.", digits=1, simulated=True).to_html()
    assert "Simulated stand-in" in html and "10.1" in html and "1,234.5" in html
    assert "Simulated" not in ppm.show_table(TABLE, "Bounds.").to_html()
