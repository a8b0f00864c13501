"""Consumer Expenditure Surveys: files, table and design matrix."""

from ppm_book.chapters.survey.design import (
    income_from_power,
    log_income,
    power_income,
    predictor_matrix,
)
from ppm_book.chapters.survey.expenditure import ConsumerExpenditure, load
from ppm_book.chapters.survey.files import DataFileError

__all__ = [
    "ConsumerExpenditure",
    "DataFileError",
    "income_from_power",
    "load",
    "log_income",
    "power_income",
    "predictor_matrix",
]
