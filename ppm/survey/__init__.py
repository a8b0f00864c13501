"""Consumer Expenditure Surveys: files, design matrix, and a simulated stand-in."""

from ppm._imports import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "load": "ppm.survey.expenditure",
    "simulate": "ppm.survey.expenditure",
    "download": "ppm.survey.expenditure",
    "log_income": "ppm.survey.expenditure",
    "left_out_columns": "ppm.survey.expenditure",
    "predictor_matrix": "ppm.survey.expenditure",
    "ConsumerExpenditure": "ppm.survey.expenditure",
    "DataFileError": "ppm.survey.expenditure",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
