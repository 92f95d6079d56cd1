"""What a user chose on the page: as parameters of an estimate, and as a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from classprior.priors._methods import METHODS, RECOMMENDED, SCORES

USE, LEAVE_OUT, GROUP, WEIGHT, SEGMENT, SCORE = (
    "use",
    "leave out",
    "group",
    "weight",
    "segment",
    "score",
)
#: What a column can be, in words.
ROLES = {
    USE: "use",
    LEAVE_OUT: "leave out",
    GROUP: "group: rows that belong together",
    WEIGHT: "weight of each row",
    SEGMENT: "segment: also estimate each part",
    SCORE: "score of my own model",
}
PERIODS = ("day", "week", "month", "quarter", "year")
CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
FORMATS = {
    "csv": "text: CSV, TSV",
    "sheet": "spreadsheet",
    "parquet": "Parquet",
    "arrow": "Feather, Arrow",
    "json": "JSON lines",
}
ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252", "cp1250", "shift_jis", "gb18030")
SCORED_FORMATS = ("csv", "xlsx", "parquet")
SHEET_FORMATS = {"xlsx": "Excel: .xlsx", "csv": "text: .csv"}
USUAL_BUDGET = 100  # rows to look at
MOST_COLUMNS = 1_000  # shown; others are treated as usual
_NUMBER_OF_REASONS = 3
_LARGEST_SEED = 2**32 - 1
_MOST_DIGITS = 12


#: The fields under "More options" with their usual values.
_MORE = {
    "confidence": "0.95",
    "seed": "0",
    "method": RECOMMENDED,
    "every": "",
    "segment_positives": "all",
    "max_weight": "",
}


class Form(dict[str, str]):
    """The fields of a form; those that it does not have are empty."""

    def __missing__(self, name: str) -> str:
        return ""

    @property
    def has_more(self) -> bool:
        """Whether one of the options that are hidden at first is unusual."""
        return any(self.get(name, usual) != usual for name, usual in _MORE.items())


class ChoiceError(ValueError):
    """Choices that do not go together, with the reason."""


@dataclass(frozen=True)
class Reading:
    """How to read the files."""

    file_format: str = ""
    encoding: str = ""
    decimal: str = ""
    sheet: str = ""
    no_header: bool = False

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Reading:
        """Return the choices of a form."""
        return cls(
            _among(form.get("file_format"), FORMATS, ""),
            _among(form.get("encoding"), ENCODINGS, ""),
            _among(form.get("decimal"), (".", ","), ""),
            form.get("sheet", "").strip(),
            "no_header" in form,
        )

    @property
    def options(self) -> dict[str, Any]:
        """The options of the reader that are not the default."""
        names = ("file_format", "encoding", "decimal", "sheet")
        chosen: dict[str, Any] = {name: text for name in names if (text := getattr(self, name))}
        return chosen | ({"header": False} if self.no_header else {})

    def arguments(self) -> Iterator[str]:
        """Yield the options of the command line."""
        for name, value in self.options.items():
            option = f"--{name.removeprefix('file_')}"
            yield from ["--no-header"] if name == "header" else [option, str(value)]


@dataclass(frozen=True)
class Draw:
    """How many rows somebody will look at, and in which format the sheet is."""

    budget: int = USUAL_BUDGET
    sheet_format: str = "xlsx"

    @classmethod
    def of(cls, form: Mapping[str, str], n_rows: int) -> Draw:
        """Return the choices of a form about so many unlabeled rows."""
        text = form.get("budget", "").strip()
        is_number = text.isdecimal() and len(text) <= _MOST_DIGITS
        if not (is_number and 1 <= int(text) <= n_rows):
            raise ChoiceError(f"Expected a number of rows from 1 to {n_rows:,}, got {text!r}.")
        return cls(int(text), _among(form.get("sheet_format"), SHEET_FORMATS, "xlsx"))


@dataclass(frozen=True)
class Choices:
    """How to estimate."""

    roles: Mapping[str, str] = field(default_factory=dict)  # by column
    unusual: tuple[str, ...] = ()  # columns that are left out unless they are named
    label: str = ""
    positive: str = ""
    negative: str = ""
    method: str = RECOMMENDED
    confidence: float = 0.95
    every: str = ""
    segment_positives: str = "all"
    leave_out_known: bool = False
    max_weight: str = ""
    seed: int = 0
    title: str = ""
    scored: str = "csv"
    wants_reasons: bool = False

    @classmethod
    def of(cls, form: Mapping[str, str], found: Mapping[str, Any]) -> Choices:
        """Return the choices of a form about files in which something was found."""
        columns = found["columns"]
        roles = {}
        for number, column in enumerate(columns):
            usual = LEAVE_OUT if column["is_left_out"] else USE
            role = form.get(f"role-{number}", usual)
            roles[column["name"]] = LEAVE_OUT if column["only_in"] or role not in ROLES else role
        label, positive, negative = _chosen_labels(form, found)
        return cls(
            roles={name: role for name, role in roles.items() if name != label},
            unusual=tuple(c["name"] for c in columns if c["is_left_out"] and not c["only_in"]),
            label=label,
            positive=positive,
            negative=negative,
            method=_among(form.get("method"), METHODS, RECOMMENDED),
            confidence=_confidence(form.get("confidence", "0.95")),
            every=_among(form.get("every"), PERIODS, ""),
            segment_positives=_among(form.get("segment_positives"), ("own",), "all"),
            leave_out_known="leave_out_known" in form,
            max_weight=form.get("max_weight", "").strip(),
            seed=_seed(form.get("seed", "0")),
            title=form.get("title", "").strip(),
            scored=_among(form.get("scored"), SCORED_FORMATS, "csv"),
            wants_reasons="wants_reasons" in form,
        )

    def columns(self, role: str) -> list[str]:
        """Return the columns with a role."""
        return [name for name, chosen in self.roles.items() if chosen == role]

    def check(self) -> None:
        """Raise if choices do not go together."""
        for role in (GROUP, WEIGHT, SCORE):
            if len(self.columns(role)) > 1:
                raise ChoiceError(f"Only one column can be the {role}; choose one.")
        if not self._used and not self.columns(SCORE):
            raise ChoiceError("All columns are left out. Use at least one.")
        if self.every and len(self.columns(SEGMENT)) != 1:
            raise ChoiceError("To round dates, choose one column of dates as segment.")
        if self.columns(SEGMENT) and self.method != RECOMMENDED:
            raise ChoiceError(f"Segments need the recommended method, not {self.method}.")
        if self.columns(SCORE) and self.method != RECOMMENDED:
            raise ChoiceError("With scores of your own, leave the method as recommended.")

    @property
    def _used(self) -> list[str]:
        return self.columns(USE)

    @property
    def _named(self) -> list[str]:
        """Columns to use, if one of them would be left out unless the columns are named."""
        return [] if set(self.unusual).isdisjoint(self._used) else self._used

    @property
    def _dropped(self) -> list[str]:
        """Columns to leave out, but for those that are left out anyway."""
        if self._named or self.columns(SCORE):
            return []
        return [name for name in self.columns(LEAVE_OUT) if name not in self.unusual]

    def parameters(self, reading: Reading) -> dict[str, Any]:
        """Return the parameters of ``estimate_prior``."""
        score, segments = self.columns(SCORE), self.columns(SEGMENT)
        group, weight = self.columns(GROUP), self.columns(WEIGHT)
        return {
            "label": self.label or None,
            "positive": self.positive or None,
            "negative": self.negative or None,
            "method": SCORES if score else self.method,
            "confidence": self.confidence,
            "columns": score or self._named or None,
            "drop": self._dropped,
            "groups": group[0] if group else None,
            "weights": weight[0] if weight else None,
            "max_weight": _weights(self.max_weight),
            "segments": segments or None,
            "every": self.every or None,
            "segment_positives": self.segment_positives,
            "leave_out_known": self.leave_out_known,
            "read_options": reading.options,
            "random_state": self.seed,
        }

    def options(self) -> list[tuple[str, str]]:
        """Return the options of the command line that are not the default, with their values."""
        score, usual = self.columns(SCORE), Choices()
        named = [] if score else self._named
        pairs = [
            ("--label", self.label),
            ("--positive", self.positive),
            ("--negative", self.negative),
            *(("--columns", name) for name in named),
            *(("--drop", name) for name in self._dropped),
            *(("--score", name) for name in score),
            *(("--groups", name) for name in self.columns(GROUP)),
            *(("--weights", name) for name in self.columns(WEIGHT)),
            ("--max-weight", self.max_weight),
            *(("--by", name) for name in self.columns(SEGMENT)),
            ("--every", self.every),
            ("--segment-positives", "" if self.segment_positives == "all" else "own"),
            ("--method", "" if self.method == usual.method else self.method),
            ("--confidence", "" if self.confidence == usual.confidence else f"{self.confidence:g}"),
            ("--seed", "" if self.seed == usual.seed else str(self.seed)),
        ]
        return [(option, value) for option, value in pairs if value]

    def commands(
        self, names: Sequence[str], reading: Reading, checked: Sequence[str] = ()
    ) -> list[str]:
        """Return commands that do the same: the report, and the scored rows if there are any.

        ``checked`` are the options for rows that somebody has looked at.
        """
        given = [*names, *self._arguments(reading), *checked]
        title = ["--title", self.title] if self.title else []
        report = ["estimate", *given, "--report", "report.html", *title]
        if self.columns(SCORE) or self.columns(SEGMENT):  # for which there is no command
            return [_joined(report)]
        reasons = ["--reasons", str(_NUMBER_OF_REASONS)] if self.wants_reasons else []
        rows = ["--out", f"scored.{self.scored}", *reasons, "--save-model", "rows.model"]
        return [_joined(report), _joined(["classify", *given, *rows])]

    def review_commands(self, names: Sequence[str], reading: Reading, draw: Draw) -> list[str]:
        """Return commands that do the same: draw the rows, and count the filled-in sheet."""
        given = [*names, *self._arguments(reading)]
        sheet = f"review.{draw.sheet_format}"
        rows = ["review", *given, "--budget", str(draw.budget), "--out", sheet]
        return [_joined(rows), *self.commands(names, reading, ["--checked", sheet])[:1]]

    def _arguments(self, reading: Reading) -> list[str]:
        """Return the options of all commands."""
        arguments = [part for pair in self.options() for part in pair]
        known = ["--leave-out-known"] if self.leave_out_known else []
        return [*arguments, *known, *reading.arguments()]

    @property
    def n_reasons(self) -> int:
        """Number of reasons for each of the likeliest rows."""
        return _NUMBER_OF_REASONS if self.wants_reasons else 0


def _joined(arguments: Sequence[str]) -> str:
    return shlex.join(["classprior", *arguments])


def _chosen_labels(form: Mapping[str, str], found: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the column of labels, and the values that mark positives and negatives."""
    if "labels" not in found:
        return "", "", ""
    column = form.get("label_column", "")
    if column:
        names = [c["name"] for c in found["columns"]]
        if column not in names:
            raise ChoiceError(f"There is no column {column!r}.")
        return column, form.get("label_positive", ""), form.get("label_negative", "")
    label, positive = _chosen_value(form.get("positive", ""), found)
    if not label:
        raise ChoiceError("Choose which rows are known positives.")
    other, negative = _chosen_value(form.get("negative", ""), found)
    if other not in ("", label):
        raise ChoiceError(
            f"Known positives are marked in column {label!r}, but confirmed negatives in "
            f"{other!r}. Choose both from the same column."
        )
    if negative == positive:
        raise ChoiceError("The same value cannot mark known positives and confirmed negatives.")
    return label, positive, negative


def _chosen_value(place: str, found: Mapping[str, Any]) -> tuple[str, str]:
    """Return the column and the value at a place such as "2:0" in the list of labels."""
    try:
        column, value = map(int, place.split(":"))
        name, values = list(found["labels"].items())[column]
        return name, values[value][0] or ""
    except (ValueError, IndexError):
        return "", ""


def _among(value: str | None, known: Any, default: str) -> str:
    return value if value is not None and value in known else default


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.5 <= value < 1.0:
        raise ChoiceError(f"Expected a confidence level from 0.5 to 1, got {text!r}.")
    return value


def _seed(text: str) -> int:
    if not (text.strip().isdecimal() and int(text) <= _LARGEST_SEED):
        raise ChoiceError(f"Expected a random seed from 0 to {_LARGEST_SEED}, got {text!r}.")
    return int(text)


def _weights(text: str) -> float | tuple[float, float] | None:
    """Return the largest weight, or one for each sample."""
    if not text:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
        first, *rest = numbers
        (second,) = rest or [first]
    except ValueError as error:
        raise ChoiceError(
            f"Expected a positive number as the largest weight, or two with a comma, got {text!r}."
        ) from error
    return first if not rest else (first, second)
