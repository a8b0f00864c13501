"""Consumer Expenditure Surveys: files, design matrix, and a simulated stand-in."""

from ppm._validation import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "load": "ppm_book.survey.expenditure",
    "simulate": "ppm_book.survey.stand_in",
    "download": "ppm_book.survey.downloading",
    "log_income": "ppm_book.survey.design",
    "power_income": "ppm_book.survey.design",
    "income_from_power": "ppm_book.survey.design",
    "left_out_columns": "ppm_book.survey.design",
    "predictor_matrix": "ppm_book.survey.design",
    "ConsumerExpenditure": "ppm_book.survey.expenditure",
    "DataFileError": "ppm_book.survey.files",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
