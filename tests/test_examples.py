"""Every example of the gallery runs, draws, and shows what its text says."""

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/plot_*.py"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs an example in an empty folder and returns its variables."""
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    plt.close("all")

    def run_example(script):
        return runpy.run_path(str(script))

    yield run_example
    plt.close("all")


def check_text(script):
    text = script.read_text()
    title, rule = re.match(r'r?"""\n(.+)\n(=+)\n\n', text).groups()
    assert len(title) == len(rule)
    assert "# Takeaway" in text


def check_figures():
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert 1 <= len(figures) <= 2
    for figure in figures:
        assert figure.axes
        for ax in figure.axes:
            assert ax.has_data()
            assert ax.get_ylabel() or ax.get_xlabel() or ax.get_title()


def check_how_many_frauds(names):
    estimate = names["estimate"]
    assert estimate.low < 0.08 < estimate.high
    assert "payment_id" in {c.name for c in estimate.columns if c.is_left_out}
    assert estimate.warnings == ()


def check_which_payments(names):
    precision, predicted = names["precision"], names["predicted"]
    assert precision[399] > 0.9
    assert predicted[399] < precision[399]
    assert names["classifier"].prior_ < 0.08


def check_digit_shares(names):
    assert np.max(np.abs(names["prior"] - names["shares"])) < 0.1
    assert np.all((names["low"] < names["shares"]) & (names["shares"] < names["high"]))
    below, above = names["prior"] - names["low"], names["high"] - names["prior"]
    assert below.sum() > above.sum()


def check_tails(names):
    level, falling = names["estimates"]
    assert abs(level.prior_ - 0.4) < 0.03
    assert falling.prior_ > 0.5
    assert falling.low_ < 0.4


def check_upper_bound(names):
    assert abs(names["estimate"].prior - 0.6) < 0.05
    assert names["estimate"].warnings == ()
    assert names["overlapping"].prior > 0.4
    assert names["overlapping"].answer.startswith("At most ")
    assert any("do not stand out" in w for w in names["overlapping"].warnings)


def check_rare_positives(names):
    low, high, bound = names["low"], names["high"], names["bound"]
    assert low[0] < 0.001  # practically zero, as the text says
    assert np.all((low < 0.01) & (high > 0.01))
    assert np.all(np.diff(bound) < 0)
    assert np.all((names["prior"][1:] > 0.005) & (names["prior"][1:] < 0.02))


def check_review(names):
    truth = names["is_positive"].mean()
    assert names["estimate"].high < truth
    checked = [part for _, part in names["found"]]
    assert all(part.low < truth < part.high for part in checked)
    assert np.all(np.diff([part.high - part.low for part in checked]) < 0.0)


def check_biased_labels(names):
    auto, subtypes = names["found"]["auto"], names["found"]["subtypes"]
    assert abs(auto[0].prior - 0.2) < 0.03
    assert auto[-1].high < 0.2
    assert all(abs(estimate.prior - 0.2) < 0.025 for estimate in subtypes)
    assert all(estimate.low < 0.2 < estimate.high for estimate in subtypes)


def check_leak(names):
    leaky, clean = names["with_leak"], names["without_leak"]
    assert leaky.prior < 0.01
    assert any("'confirmed_on'" in warning for warning in leaky.warnings)
    assert clean.low < 0.08 < clean.high
    assert clean.warnings == ()


def check_reasons(names):
    assert names["display"].names_[0] == "minutes_since_last"
    columns = [[reason.column for reason in of_row] for of_row in names["reasons"]]
    assert all(of_row[0] == "minutes_since_last" for of_row in columns)
    assert len({tuple(of_row) for of_row in columns}) > 1


def check_groups(names):
    assert abs(names["ignored"][0] - 0.4) < 0.05
    assert max(names["ignored"][1:]) < 0.1
    assert all(abs(prior - 0.4) < 0.1 for prior in names["used"])
    assert names["used"][0] > names["used"][-1]


def check_parquet_files(names):
    assert names["estimates"][-1] == pytest.approx(names["in_memory"].prior_)
    assert abs(names["estimates"][-1] - 0.7) < 0.02
    assert not names["path"].exists()


def check_own_pipeline(names):
    auto = names["auto"]
    assert auto.low_ < 0.08 < auto.high_
    assert set(auto.classifier_priors_) == {*names["classifiers"], "together"}
    assert np.ptp(list(auto.classifier_priors_.values())) < 0.02


def check_overlapping_uniforms(names):
    median = {name: np.median(values, axis=1) for name, values in names["estimates"].items()}
    spread = {name: np.std(values, axis=1) for name, values in names["estimates"].items()}
    assert 0.73 < median["PE"][0] < median["PE"][1]
    assert abs(median["penL1"][0] - 0.7) < 0.03
    assert 0.7 < median["penL1"][1] < 0.82
    assert np.all(spread["penL1"] > spread["PE"])


def check_critical_slope(names):
    median, slopes = names["median"], names["slopes"]
    assert np.all(np.diff(median) <= 0)
    assert np.all(median[slopes < names["critical"]] > 0.9)
    assert np.all(np.abs(median[slopes > names["critical"]] - 0.7) < 0.06)


def check_compare_methods(names):
    errors = np.mean((names["estimates"] - 0.3) ** 2, axis=1)
    by_name = dict(zip(names["methods"], names["estimates"], strict=True))
    assert errors.argmin() == list(names["methods"]).index("auto")
    assert by_name["EN"].min() > 0.34
    assert all(abs(by_name[name].mean() - 0.3) < 0.03 for name in ("penL1", "PE", "SB"))
    assert all(by_name[name].std() > by_name["auto"].std() for name in ("penL1", "PE", "SB"))


def check_density_ratio(names):
    grid, classifier = names["grid"], names["classifier"]
    probability = classifier.predict_proba(grid[:, None])[:, 1]
    error = np.abs(probability - names["prior"] * names["ratio"])
    assert error[(grid > 0) & (grid < 4)].max() < 0.15
    assert error[0] > 0.5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_draws_what_its_text_says(script, run):
    check_text(script)
    names = run(script)
    check_figures()
    globals()[f"check_{script.stem.removeprefix('plot_')}"](names)


def test_every_folder_of_the_gallery_has_a_title():
    for folder in {EXAMPLES, *(script.parent for script in SCRIPTS)}:
        title, rule = (folder / "GALLERY_HEADER.rst").read_text().splitlines()[:2]
        assert len(title) == len(rule)
