"""Consumer Expenditure Surveys: files, design matrix, and a simulated stand-in."""

from ppm._validation import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "load": "ppm.survey.expenditure",
    "simulate": "ppm.survey.stand_in",
    "download": "ppm.survey.downloading",
    "log_income": "ppm.survey.design",
    "power_income": "ppm.survey.design",
    "income_from_power": "ppm.survey.design",
    "left_out_columns": "ppm.survey.design",
    "predictor_matrix": "ppm.survey.design",
    "ConsumerExpenditure": "ppm.survey.expenditure",
    "DataFileError": "ppm.survey.files",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
