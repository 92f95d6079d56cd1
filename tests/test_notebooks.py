"""What a notebook shows: answers as HTML, and progress below the cell."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn

from classprior import AutoPrior, DensityRatio, Estimation, PenalizedL1Prior, PUClassifier
from classprior._core.messages import percent
from classprior._samples.progress import progress, shown_by


@pytest.fixture(scope="module")
def estimation():
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 1, (100, 2)), rng.normal((0, 4), 2, (300, 2))
    segments = (None, np.array(["<b>", "south"])[np.arange(300) % 2])
    evidence = AutoPrior(n_repeats=1, n_resamples=20)
    return Estimation.of(*samples, segments=segments, evidence=evidence, random_state=0)


def test_estimates_and_segments(estimation):
    estimate = estimation.estimate
    assert estimation._repr_html_() == estimate._repr_html_()
    segments = estimate.segments._repr_html_()
    assert segments.startswith("<div")
    assert "&lt;b&gt;" in segments
    assert "<b>" not in segments
    assert percent(estimate.segments["south"].prior) in segments


def test_plans_of_a_review(estimation):
    plan = estimation.plan_review(20)
    shown = plan._repr_html_()
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", shown)
    names, rows, drawn, positives = (cells[start::4] for start in range(4))
    assert names[0] == "stratum"
    assert sum(map(int, rows[1:])) == 300
    assert sum(map(int, drawn[1:])) == 20
    assert sum(map(int, positives[1:])) == pytest.approx(estimation.probabilities().sum(), abs=1)
    assert plan.drawn_text() in shown
    assert plan.forecast().to_text() in shown


@pytest.mark.parametrize("estimator", [AutoPrior(n_repeats=1), PenalizedL1Prior(), PUClassifier()])
def test_fitted_estimators_show_the_share(labeled, estimator):
    X, y = (part[::4] for part in labeled)
    unfitted = sklearn.clone(estimator)._repr_html_()
    estimator.set_params(random_state=0).fit(X, y)
    shown = estimator._repr_mimebundle_()["text/html"]
    text = f"Share of positives in the unlabeled rows: {percent(estimator.prior_)}"
    assert text in shown
    assert text in estimator._repr_html_()
    assert "Share of positives" not in unfitted
    assert ("<svg" in shown.split("<style")[0]) == hasattr(estimator, "upper_bound_")
    with sklearn.config_context(display="text"):
        assert set(estimator._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(estimator, "_repr_html_")


def test_estimators_without_a_share_are_shown_as_ever(labeled):
    X, y = (part[::4] for part in labeled)
    assert "Share of" not in DensityRatio(random_state=0).fit(X, y)._repr_html_()


def test_progress_can_be_shown_elsewhere():
    seen = []
    with shown_by(lambda *step: seen.append(step)):
        assert list(progress("abc", 3, "Work", 1)) == ["a", "b", "c"]
        list(progress([5, 7], 20, "Rows", 1, rows_of=int, done=8))
        assert list(progress("ab", 2, "Silent", 0)) == ["a", "b"]
    works = [("Work", n, 3) for n in range(4)]
    assert seen == [*works, ("Rows", 8, 20), ("Rows", 13, 20), ("Rows", 20, 20)]


def test_progress_in_a_notebook(monkeypatch, capsys):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda *_, **__: handle)
    kernel = SimpleNamespace(kernel="a notebook's shell has one")
    notebook = SimpleNamespace(get_ipython=lambda: kernel, display=display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert list(progress(range(500), 500, "Work", 1)) == list(range(500))
    assert len(shown) < 50  # not one for each item
    assert 'Work <progress value="500" max="500"></progress> 100%' in shown[-1]
    list(progress(range(3), None, "Work", 1))
    assert "<progress ></progress>" in shown[-1]
    assert capsys.readouterr() == ("", "")
