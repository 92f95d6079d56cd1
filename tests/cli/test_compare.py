"""``classprior compare`` and ``classprior demo``."""

import itertools
import json
import multiprocessing
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from classprior import PenalizedL1Prior, TableEncoder, estimate_prior
from classprior._samples.samples import Samples
from classprior._samples.units import Units
from classprior.cli import main
from classprior.cli._compare import _figure, _text, _values
from classprior.cli._outcomes import Outcome, WorkerRows, _ask, _run, run_methods
from classprior.priors._methods import METHODS, RECOMMENDED

GIVEN = ("penl1", "sb")
TWO = ("positive.csv", "unlabeled.csv")
SIZES = 500, 4000


@pytest.fixture
def rows(frames):
    """Return both samples as numbers."""
    return TableEncoder().fit_tables(frames)


def test_methods_side_by_side(folder, run, rows):
    given = ("--methods", ",".join(GIVEN), "--plot", "methods.svg", "--seed", 3)
    text = run("compare", *TWO, *given).stdout
    expected = PenalizedL1Prior(random_state=3).fit_samples(*rows).prior_
    assert re.search(rf"^  penl1 +{expected:.1%} +\d+\.\d$", text, re.MULTILINE)
    assert all(re.search(rf"^  {name} +{METHODS[name].summary}$", text, re.M) for name in GIVEN)
    assert "Left out" not in text
    assert "<svg" in Path("methods.svg").read_text()


def test_intervals_are_those_of_estimate_prior(folder, run, rows):
    """That of auto always, the others on demand: resampled bins, or refits."""
    given = ("--methods", "auto,pe,tice", "--json")
    found = json.loads(run("compare", *TWO, *given, "--intervals").stdout)["methods"]
    for outcome in found:
        options = {"method": outcome["method"], "scale": False, "random_state": 0}
        expected = estimate_prior(*rows, **options)
        assert outcome["failure"] == ""
        for key in ("prior", "low", "high"):
            assert outcome[key] == pytest.approx(getattr(expected, key), abs=1e-9)
    plain = json.loads(run("compare", *TWO, *given).stdout)["methods"]
    assert [m["low"] for m in plain] == [found[0]["low"], None, None]
    assert [m["prior"] for m in plain] == [m["prior"] for m in found]
    assert [m["recommended"] for m in plain] == [True, False, False]
    assert [m["summary"] for m in plain] == [METHODS[m["method"]].summary for m in plain]


def test_slow_methods_run_only_on_demand(folder, run, monkeypatch):
    asked = []

    def outcomes(methods, *_):
        asked.append(list(methods))
        return (Outcome(method, 0.5, 1.0) for method in methods)

    monkeypatch.setattr("classprior.cli._compare.run_methods", outcomes)
    slow = {name for name, method in METHODS.items() if method.is_slow}
    text = " ".join(run("compare", *TWO).stdout.split())
    assert "slow: pen-pearson, pen-kl, kl. Use --all" in text
    assert "slow" not in run("compare", *TWO, "--all").stdout
    run("compare", *TWO, "--methods", "kl, auto,kl")
    assert asked == [[m for m in METHODS if m not in slow], list(METHODS), ["kl", "auto"]]
    assert RECOMMENDED == "auto" == asked[0][0]
    bias = [METHODS[name].over_estimates for name in METHODS]
    assert bias == sorted(bias)  # those that assume more come last


def test_what_the_spread_means():
    both = [Outcome("auto", 0.238, 1.0, "", 0.21, 0.26), Outcome("penl1", 0.3, 1.0)]
    over, failed = Outcome("en", 0.47, 1.0), Outcome("kl", None, 60.0, "stopped")
    text = " ".join(_text([*both, over, failed], SIZES, []).split())
    assert "auto 23.8% 21.0% to 26.0% 1.0 recommended" in text
    assert "The methods range from 23.8% to 47.0%." in text
    assert "The others range from 23.8% to 30.0%." in text
    assert "en * 47.0%" in text
    assert "kl - 60.0" in text  # no estimate, no bias
    assert "No estimate from kl: stopped" in text
    without = _text([*both, failed], SIZES, [])
    assert "*" not in without
    assert "The others" not in without
    assert "range" not in _text(both[:1], SIZES, [])


def test_the_bound_and_the_warnings_are_those_of_estimate(folder, run, rows):
    """Of ten known positives, so that there is something to warn about."""
    Path("few.csv").write_text(
        "".join(Path("positive.csv").read_text().splitlines(keepends=True)[:11])
    )
    given = ("few.csv", "unlabeled.csv", "--json")
    found = json.loads(run("compare", *given, "--methods", "penl1,auto").stdout)
    expected = json.loads(run("estimate", *given, evidence=None).stdout)
    assert (found["n_positive"], found["n_unlabeled"], found["seed"]) == (10, len(rows[1]), 0)
    assert found["upper_bound"] == expected["upper_bound"]
    assert found["warnings"] == expected["warnings"] != []
    assert found["meaning"] == expected["meaning"]
    answer = run("estimate", *given[:2], evidence=None).stdout.split("\n\n")[0]
    assert found["answer"] == " ".join(answer.split())
    without = json.loads(run("compare", *given, "--methods", "penl1").stdout)
    assert (without["upper_bound"], without["warnings"]) == (None, [])
    assert (without["answer"], without["meaning"]) == (None, None)


def test_the_answer_comes_first():
    answer = "At most about 20.0% of the 4,000 unlabeled rows are positive."
    auto = Outcome("auto", 0.2, 1.0, "", 0.1, 0.3, answer=answer, meaning="at most")
    text = _text([auto, Outcome("penl1", 0.3, 1.0)], SIZES, [])
    assert text.startswith(f"{answer}\n\n")
    assert re.search(r"^  auto .* recommended, at most$", text, re.MULTILINE)
    assert text.count("at most") == 1


def test_advice_names_options_of_compare():
    """Three clusters of positives, of which the last is seldom labeled."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])
    labeled, hidden = ([500, 500, 100, 0], [40, 40, 600, 700])
    X = [rng.normal(np.repeat(centers, sizes, axis=0)) for sizes in (labeled, hidden)]
    encoder = TableEncoder()
    Xs = encoder.fit_tables([pd.DataFrame(x, columns=["a", "b"]) for x in X])
    *_, auto = _run(WorkerRows(*Xs, Units(), encoder, []), "auto", 0, True, 60.0)
    (biased,) = (w for w in auto.warnings if w.remedy == "subtypes")
    assert "--methods auto,subtypes" in biased
    assert "--method " not in biased
    assert "`" not in biased


def test_slow_methods_get_fewer_rows(rows, monkeypatch):
    """The same rows as those of a subsample; the others get all rows."""
    few = METHODS["pearson"]._replace(compared_rows=30, is_slow=False)
    monkeypatch.setattr("classprior.cli._outcomes.METHODS", {**METHODS, "pearson": few})
    of_rows = WorkerRows(*rows, Units(), None, [])
    (found,) = _run(of_rows, "pearson", 0, False, 60.0)
    drawn = Samples.of_rows(*rows, 0).subsample(30)
    assert found.n_fitted == drawn.sizes == (30, 30)
    assert found.prior == METHODS["pearson"](random_state=0).fit_samples(*drawn.rows).prior_
    assert found.to_dict()["n_fitted"] == (30, 30)
    text = " ".join(_text([found], SIZES, []).split())
    assert "pearson used only 30 known positives and 30 unlabeled rows" in text
    (other,) = _run(of_rows, "en", 0, False, 60.0)
    assert other.n_fitted is None
    assert "drawn at random" not in _text([other], SIZES, [])


def test_refits_that_cannot_finish_are_not_begun(rows):
    first, last = _run(WorkerRows(*rows, Units(), None, []), "tice", 0, True, 1e-6)
    assert first.prior == last.prior
    assert last.limits == ()
    assert "40 refits" in last.failure
    assert "--limit" in last.failure


@pytest.mark.parametrize(("largest", "end"), [(0.04, 0.05), (0.4, 0.5), (1.0, 1.02), (0.0, 1.02)])
def test_the_axis_fits_the_estimates(largest, end):
    """But for those that are too high if the classes overlap, which are arrows at its end."""
    figure = _figure([Outcome("penl1", largest, 1.0), Outcome("kl", 1.0, 1.0, "", 0.9, 1.0)])
    ax = figure.axes[0]
    low, high = ax.get_xlim()
    assert low < 0.0
    assert largest < high <= end
    markers = [line.get_marker() for line in ax.lines if line.get_marker() != "None"]
    assert markers == ["o", "o" if high > 1.0 else ">"]
    assert max(max(line.get_xdata()) for line in ax.lines) <= high
    assert ("arrows" in ax.get_xlabel()) == (high <= 1.0)


def test_estimates_above_the_bound_are_named():
    auto = Outcome("auto", 0.2, 1.0, "", 0.1, 0.3, upper_bound=0.4, warnings=("Few rows.",))
    others = [Outcome("tice", 0.5, 1.0), Outcome("en", 0.6, 1.0), Outcome("bbe", 0.4, 1.0)]
    text = " ".join(_text([auto, *others], SIZES, []).split())
    condition = "if known positives are typical of all positives"
    assert f"upper bound is 40.0%, {condition}; tice, en are above it." in text
    assert "Warning: Few rows." in text
    alone = " ".join(_text([auto], SIZES, []).split())
    assert f"upper bound is 40.0%, {condition}." in alone
    assert "upper bound" not in _text(others, SIZES, [])


def test_what_is_missing_is_named():
    known = Outcome("auto", 0.2, 1.0, "broken", 0.1, 0.3)
    assert "No warnings from auto: broken" in _text([known], SIZES, [])
    assert "No interval from auto" in _text([known._replace(low=None, high=None)], SIZES, [])
    assert "No estimate from auto" in _text([Outcome("auto", None, 1.0, "broken")], SIZES, [])


def test_methods_that_fail_alike_are_named_together():
    failed = [Outcome(method, None, 0.1, "no weights") for method in ("dedpul", "bbe")]
    assert "No estimate from dedpul, bbe: no weights\n" in _text(failed, SIZES, [])


def test_the_table_fits_a_narrow_terminal():
    outcomes = [Outcome(name, 1.0, 9999.9, "", 0.001, 1.0) for name in METHODS]
    assert max(map(len, _text(outcomes, SIZES, list(METHODS)).splitlines())) <= 74


def test_nothing_in_the_picture_is_cut_off():
    reason = "Column 'cost in $' and column 'price in $' are equal. " * 6
    outcomes = [
        Outcome("auto", 0.0, 1.0, "", 0.0, 0.2),
        Outcome("tice", None, 1.0, reason + "x" * 200),
        Outcome("en", 1.0, 1.0, "", 0.998, 1.0),
        Outcome("kl", None, 60.0, "stopped"),
    ]
    figure = _figure(outcomes)
    figure.draw_without_rendering()
    (ax,) = figure.axes
    page = figure.bbox
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    for text in texts:
        box = text.get_window_extent()
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, text
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, text
    for text in ax.texts:
        box, row = text.get_window_extent(), ax.bbox
        assert row.x0 <= box.x0 <= box.x1 <= row.x1
    shown = "".join(text.get_text() for text in texts)
    assert (reason + "x" * 200).replace(" ", "") in "".join(shown.split())
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert all(low.y1 < high.y0 for low, high in itertools.pairwise(boxes))


class Answers:
    """A worker that has sent some answers and then is silent, or dead."""

    def __init__(self, *answers, dies=False):
        self._answers, self._dies = list(answers), dies
        self.send = lambda _: None

    def poll(self, _):
        return bool(self._answers) or self._dies

    def recv(self):
        if not self._answers:
            raise EOFError
        return self._answers.pop(0)


@pytest.mark.parametrize(("dies", "fact"), [(False, "5 seconds"), (True, "process")])
def test_an_estimate_is_kept_if_its_interval_takes_too_long(dies, fact):
    first = Outcome("km2", 0.3, 1.0)
    last = first._replace(low=0.2, high=0.4)
    assert _ask(Answers(first, last, None), "km2", 0, True, 5) == (last, True)
    kept, is_alive = _ask(Answers(first, dies=dies), "km2", 0, True, 5)
    assert (kept.prior, kept.low, is_alive) == (0.3, None, False)
    assert fact in kept.failure
    assert "No interval from km2" in _text([kept], SIZES, [])
    assert _ask(Answers(dies=dies), "km2", 0, True, 5)[0].prior is None


def test_groups_are_kept_together(folder, run, rows, frames):
    rng = np.random.default_rng(0)
    groups = [rng.integers(0, 40, len(frame)) for frame in frames]
    for frame, group, name in zip(frames, groups, TWO, strict=True):
        frame.assign(customer=group).to_csv(name, index=False)
    given = ("--methods", "penl1", "--groups", "customer", "--json")
    (found,) = json.loads(run("compare", *TWO, *given).stdout)["methods"]
    estimator = PenalizedL1Prior(random_state=0).fit_samples(*rows, groups=groups)
    assert found["prior"] == pytest.approx(estimator.prior_, abs=1e-12)


def test_weights_are_used(folder, run, rows, frames):
    rng = np.random.default_rng(0)
    weights = [rng.choice([0.0, 1.0, 3.0], len(frame)) for frame in frames]
    for frame, w, name in zip(frames, weights, TWO, strict=True):
        frame.assign(w=w).to_csv(name, index=False)
    given = ("--methods", "tice,pe", "--weights", "w", "--json")
    failed, found = json.loads(run("compare", *TWO, *given).stdout)["methods"]
    assert failed["prior"] is None
    assert "--weights" in failed["failure"]  # and the next method runs
    assert "Prior" not in failed["failure"]  # a class of Python
    weighted = [frame.assign(w=w) for frame, w in zip(frames, weights, strict=True)]
    expected = estimate_prior(*weighted, method="pe", weights="w", n_resamples=2, random_state=0)
    assert found["prior"] == pytest.approx(expected.prior, abs=1e-12)


def test_a_method_that_takes_too_long_does_not_stop_the_others(rows):
    rows = WorkerRows(*rows, Units(), None, [])
    outcomes = list(run_methods(["penl1", "en"], rows, seed=0, limit=1e-3))
    assert [outcome.method for outcome in outcomes] == ["penl1", "en"]
    assert all("0.001 seconds" in outcome.failure for outcome in outcomes)
    (later,) = run_methods(["en"], rows, seed=0, limit=60)
    assert later.failure == ""


def test_a_process_that_is_killed_is_not_waited_for(rows):
    others = multiprocessing.active_children()
    rows = WorkerRows(*rows, Units(), None, [])
    steps = run_methods(["penl1"] * 3, rows, seed=0, limit=1e6)
    before = next(steps)
    (worker,) = set(multiprocessing.active_children()) - set(others)
    worker.kill()
    worker.join()
    killed, after = steps
    assert killed.prior is None
    assert "process" in killed.failure
    assert after.prior == before.prior


def test_no_answer_at_all_is_an_error(folder, run):
    pd.read_csv("positive.csv")[:1].to_csv("tiny.csv", index=False)
    answer = run("compare", "tiny.csv", "unlabeled.csv", "--methods", "auto", "--json", code=1)
    assert json.loads(answer.stdout)["schema"] == "classprior.compare/1"
    assert answer.stderr.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("--methods", "auto,magic"), "'magic'"),
        (("--methods", "auto", "--all"), "--all"),
        (("--plot", "picture.doc"), ".png, .svg, .pdf"),
    ],
)
def test_bad_usage(folder, run, arguments, fact):
    assert fact in run("compare", *TWO, *arguments, code=2).stderr


def test_the_demo_makes_files_that_give_its_answer(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("classprior.cli._demo._PRIORS", (0.5,))
    (example,) = examples_of("demo")
    printed = run(*example).stdout
    assert "400 of these payments (8.0%)" in printed
    assert re.search(r"80 +180 +50\.0% +\d\d\.\d%", printed)
    assert Path("example/scores.png").read_bytes().startswith(b"\x89PNG")
    again = run("estimate", "example/frauds.csv", "example/transactions.csv").stdout
    assert again.strip() in printed
    assert again.splitlines()[0] in Path("example/report.html").read_text()
    assert "frauds.csv" in run(*example, code=1).stderr


def examples_of(command):
    """Return the command lines that --help shows."""
    text = main.commands[command].epilog
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  classprior")]


def test_the_examples_of_help_run(folder, run, monkeypatch):
    """All but those of demo and app, tested elsewhere; of compare only what surrounds methods."""
    outcomes = [Outcome("auto", 0.3, 1.0), Outcome("en", None, 2.0, "no luck")]
    monkeypatch.setattr("classprior.cli._compare.run_methods", lambda *_: iter(outcomes))
    for name in ("frauds", "all/1", "all/2", "transactions", "tomorrow"):
        table = pd.read_csv("positive.csv" if name == "frauds" else "unlabeled.csv")
        Path(name).parent.mkdir(exist_ok=True)
        table.assign(customer=1, iban="AT", country="AT").to_csv(f"{name}.csv", index=False)
    marked = pd.read_parquet("marked.parquet").rename(columns={"known": "diagnosis"})
    marked.replace({"yes": "confirmed"}).to_parquet("patients.parquet")
    scored = marked.rename(columns={"diagnosis": "status"}).replace({"yes": "fraud"})
    scored["probability"] = np.where(
        scored["status"] == "fraud", 0.9, np.arange(len(scored)) % 10 / 10
    )
    scored.to_parquet("scored.parquet")
    plan, *_ = examples_of("review")
    run(*plan)
    pd.read_csv("review.csv").assign(checked="no").to_csv("review.csv", index=False)
    n_run = 0
    for command in main.commands:
        for example in examples_of(command) if command not in ("demo", "app", "review") else ():
            assert "rows" in run(*example, *(("--force",) if n_run else ())).output
            n_run += 1
    assert n_run >= 9
    assert {"frauds.html", "scored.csv", "scored-tomorrow.csv", "frauds.model", "methods.png"} <= {
        path.name for path in folder.iterdir()
    }


def test_intervals_of_other_methods_are_not_trusted():
    auto, subtypes = (Outcome(name, 0.2, 1.0, "", 0.1, 0.3) for name in ("auto", "subtypes"))
    others = [Outcome("bbe", 0.3, 1.0, "", 0.2, 0.4), Outcome("penl1", 0.3, 1.0, "", 0.2, 0.4)]
    without = Outcome("en", 0.3, 1.0)
    (note,) = _values([auto, subtypes, *others, without], SIZES, 0, 0)["notes"]
    assert "bbe, penl1 reflect chance, but no bias" in note
    assert note in " ".join(_text([auto, subtypes, *others, without], SIZES, []).split())
    assert _values([auto, subtypes, without], SIZES, 0, 0)["notes"] == []
