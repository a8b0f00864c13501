"""Consumer Expenditure Surveys: files, design matrix, and a simulated stand-in."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "expenditure": ["load", "ConsumerExpenditure"],
        "stand_in": ["simulate"],
        "downloading": ["download"],
        "design": ["log_income", "power_income", "income_from_power", "left_out_columns",
                   "predictor_matrix"],
        "files": ["DataFileError"],
    },
)
