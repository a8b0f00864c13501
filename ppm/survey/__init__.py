"""Consumer Expenditure Surveys: files, design matrix, and a simulated stand-in."""
