"""Pages of the book that are written when it is built: the ledger, and the checks of statements."""

from collections import Counter

from ppm.publishing.checks import NOT_RUN, Verdict, spoken
from ppm.publishing.ledger import VERDICTS
from ppm.publishing.rules import shown

_DATA = {
    "drawn": "data drawn by the study itself",
    "simulated": "the **simulated stand-in**, not survey data",
    "diary": "the Diary survey, where the paper has the Interview survey",
    "interview": "the Interview survey of the paper's quarter",
    "other": "survey data that are not the paper's quarter, or a part of it",
}


def ledger_page(rows, chapters, *, settings_chapter="", study=None):
    """The book's page of the ledger, in MyST Markdown.

    Parameters
    ----------
    rows : sequence of ppm.publishing.ledger.Row
        What :func:`ppm.publishing.ledger.judge` returned.
    chapters : dict of str to dict
        Chapter that was run -> ``profile``, ``day``, ``data`` and ``part``.
    settings_chapter : str, default ""
        Chapter on the settings that the paper leaves open, if the book has it.
    study : dict, optional
        The ledger's own study, if there is one: ``chapter`` that it repeats, ``studies``,
        ``at_1000`` (how many of them have that size), ``replicates``, ``seed``, ``seconds``,
        ``day``, and ``beside``: how many databases the chapter itself has.

    Returns
    -------
    str
        The page.
    """
    text = [
        "# Ledger: the paper's numbers and claims",
        "",
        "Every number and every claim of the simulation (section 4) and of the application (section"
        " 5) of {cite:t}`savitsky2022`, and what the rest of the paper says of the two, beside what"
        " this book computed. No verdict is written by hand: values are saved with their Monte"
        " Carlo errors, and a rule compares them.",
        "",
        "- *reproduced*: the rule holds by more than two standard errors, at every number that is"
        " compared;",
        "- *not reproduced*: at some number it fails by more than two standard errors. Or it is"
        " *open*: the Monte Carlo error allows neither to be said. The row then tells how large a"
        " run would decide it, if the difference stayed what it is;",
        "- *same setting*: no finding. The run was made with the paper's setting;",
        "- *by construction*: no finding either. The row says why it cannot fail here. If it failed"
        " all the same, by more than two standard errors, it would count as not reproduced and"
        " show a defect of this book;",
        "- *not comparable*: other data, or other settings than the paper's;",
        "- *not computed*: a value or its Monte Carlo error is missing, or the values do not fit"
        " the rule, as where nothing was counted.",
        "",
        "What the rules ask:",
        "",
        "- A number lies near the published one if its distance and two standard errors together"
        " stay within the tolerance.",
        "- Numbers rise, or fall, if every single step does so by more than two standard errors.",
        "- The exponent of a rate is the slope of the least-squares line through the logarithms,"
        " with every size counting alike; for a share it is that of the power law, cut at 1, which"
        " is most likely for the counts. Both are average slopes: whether the points follow a power"
        " law is not tested. A rate O(n^(−1/2)) has two readings and a row for each:"
        " as the rate itself, and as an upper limit, with which a faster rate agrees.",
        "- A conclusion from other rows is as good as the worst of them. It rests on none that"
        " cannot fail.",
        "",
        "Where the paper uses a word without a number, the last column says how we read it.",
        "A pattern that is reproduced on the stand-in or on other survey data is a statement about"
        " the mechanism on those data.",
        "",
        "## Where the values come from",
        "",
    ]
    for name in dict.fromkeys(row.claim.chapter for row in rows):
        source = chapters.get(name, {})
        told = f"- {{doc}}`../notebooks/{name}`: "
        if "profile" in source:
            told += f"profile `{source['profile']}`, run on {source['day']}, on "
            told += _DATA[source["data"]]
            told += " (some of the records, drawn at random)" if source.get("part") else ""
        else:
            told += "not run"
        text.append(told + ".")
    if study:
        text += ["", *_study_in_words(study)]
    if settings_chapter:
        text += [
            "",
            "The paper leaves settings of the application open: the number of components, the draws"
            " behind a bound, and how incomes of zero or less enter the logarithm."
            f" {{doc}}`../notebooks/{settings_chapter}` shows how the published bounds move with"
            " them, and which settings come near: a likely explanation, no finding.",
        ]
    sections = sorted({row.claim.section for row in rows})
    text += ["", "## Verdicts", "", *_counts(rows, sections), "", *_waiting(rows)]
    for section in sections:
        text += [f"## Section {section}", "", ":::{container} ledger"]
        heads = ["Claim", "Verdict", "Paper", "Ours ± Monte Carlo error", "Why"]
        text += [table_line(heads), table_line("---" for _ in heads)]
        text += [_line(row) for row in rows if row.claim.section == section]
        text += [":::", ""]
    return "\n".join(text)


def _waiting(rows):
    """List of the open rows."""
    text, begun = [], ""
    for row in rows:
        says = row.claim.says
        if not says.startswith("…"):
            begun = says
        if row.open:
            said = says if says is begun else f"{begun} {says}"
            text.append(f"- Section {row.claim.section}: {said} *{_sentence([row.reason])}*")
    return ["Open are:", "", *text, ""] if text else []


def _study_in_words(study):
    every = study["studies"] * study["replicates"]
    told = [
        f"The rows on {{doc}}`../notebooks/{study['chapter']}` are judged by a study of the"
        f" ledger's own, of {study['studies']} times {study['replicates']} = {every:,} databases of"
        f" each size (seed {study['seed']}, {study['seconds']:.0f} seconds on {study['day']}), so"
        " that the Monte Carlo error decides little. Medians, averages, standard deviations and"
        " shares are those of all databases. The smallest and the largest bound depend on how many"
        f" databases there are: for these the table shows averages over the {study['studies']}"
        f" studies. The size n = 1,000, of which the introduction speaks, is in {study['at_1000']}"
        " of them."
    ]
    if study.get("beside"):
        told.append(
            f"In square brackets stands what the chapter itself found, with {study['beside']:,.0f}"
            " databases of each size. Where its verdict alone would have been another one, the last"
            " column says which."
        )
    return told


def _counts(rows, sections):
    """Table of the verdicts: one line each, and one column a section behind that of all."""
    parts = [rows, *([row for row in rows if row.claim.section == one] for one in sections)]
    counted = [Counter(row.verdict for row in part) for part in parts]
    lines = [[verdict, *(one[verdict] for one in counted)] for verdict in VERDICTS]
    lines.insert(2, ["of these open", *(sum(row.open for row in part) for part in parts)])
    lines.append(["**rows**", *map(len, parts)])
    heads = ["Verdict", "all", *sections]
    return [
        ":::{container} ledger-counts",
        table_line(heads),
        table_line("---" for _ in heads),
        *(table_line(map(str, line)) for line in lines),
        ":::",
    ]


def _line(row):
    claim = row.claim
    where = claim.where[0].upper() + claim.where[1:]
    where = f"{{doc}}`{where} <../notebooks/{claim.chapter}>`"
    paper = "–" if claim.published is None else shown(claim.published).replace(", ", "<br>")
    why = [row.reason]
    why += [f"*The chapter alone:* {row.alone}"] if row.alone else []
    why += [f"*Read as:* {claim.reading}"] if claim.reading else []
    why += [f"*Unstated:* {claim.remark}"] if claim.remark else []
    return table_line(
        [
            f"{claim.says}<br>{where}",
            f"**{row.spoken}**" if row.verdict == "not reproduced" else row.spoken,
            paper,
            "<br>".join(_beside(row)) or "–",
            _sentence(why),
        ]
    )


def _beside(row):
    """The computed values, with the chapter's own in brackets behind those of a larger study."""
    ours, beside = (
        [text.replace(" ", "\N{NO-BREAK SPACE}") for text in texts]
        for texts in (row.ours, row.beside)
    )
    if len(beside) != len(ours):
        return ours
    return [
        one if one == other else f"{one} \\[{other}\\]"
        for one, other in zip(ours, beside, strict=True)
    ]


def _sentence(parts):
    return ". ".join(part[0].upper() + part[1:] for part in parts if part) + "."


def table_line(cells):
    """One line of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def checks_page(statements, checks, verdicts, *, repository=""):
    """The book's page of statements and their tests, in MyST Markdown.

    Parameters
    ----------
    statements : list of ppm.publishing.checks.Statement
        What :func:`ppm.publishing.checks.find_statements` returned.
    checks : dict of str to list of str
        What :func:`ppm.publishing.checks.load_checks` returned.
    verdicts : dict of str to ppm.publishing.checks.Verdict
        What :func:`ppm.publishing.checks.read_verdicts` returned.
    repository : str, default ""
        Address of the repository, to which tests link where it is given.

    Returns
    -------
    str
        The page.
    """
    text = [
        "# Statements and their checks",
        "",
        "Every definition, theorem and lemma of this book names the tests that exercise it. A test"
        " cannot prove a theorem. It can show that what the library computes has the property that"
        " the statement claims, and most of them also show that a broken variant does not.",
        "`make test` runs them and leaves its verdicts; the next build of the book shows them here."
        " *Not run here* means that no verdict was found beside this book.",
        "",
    ]
    document = None
    for statement in statements:
        if statement.label not in checks:
            continue
        if statement.document != document:
            document = statement.document
            text += [f"## {statement.chapter}", "", f"Chapter {{doc}}`../{document}`.", ""]
        title = statement.title or statement.kind
        text += [f"(check-{statement.label})=", f"### {title}", ""]
        text += [f"{{prf:ref}}`{statement.label}`", "", ":::{container} checks"]
        for test in checks[statement.label]:
            file, _, name = test.partition("::")
            shown_test = f"`{name}` in `{file}`"
            if repository:
                shown_test = f"[`{name}`]({repository.rstrip('/')}/blob/HEAD/{file})"
            told = spoken(verdicts.get(test, Verdict(NOT_RUN)))
            text.append(f"- {shown_test}: **{told}**")
        text += [":::", ""]
    return "\n".join(text)
