"""What the experiments compute, against something independent."""

import duplessis2017_mnist as mnist
import duplessis2017_mnist_report as mnist_report
import duplessis2017_rates as rates
import duplessis2017_uniforms as uniforms
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import erf
from sklearn.datasets import load_digits

from classprior import DensityRatio, PUClassifier
from classprior.theory import fixed_objective


def gaussian_mean(center, sigma, low, high):
    """Return the integral of a Gaussian over a uniform distribution."""
    ends = (np.array([low, high]) - center) / (sigma * np.sqrt(2.0))
    return sigma * np.sqrt(np.pi / 2.0) * np.diff(erf(ends))[0] / (high - low)


def test_the_population_is_exact():
    fixed = rates.fixed("inf", 0.7)
    rows = rates.population_rows()
    a, negative = (
        np.array([gaussian_mean(c, rates.SIGMA, low, low + 1.0) for c in fixed["centers"].ravel()])
        for low in (0.0, 1.0 - rates.OVERLAP)
    )
    b = rates.PRIOR * a + (1.0 - rates.PRIOR) * negative
    thetas = np.array([0.75, 0.9])
    values, coef = fixed_objective(*rows, thetas=thetas, **fixed)
    beta = thetas[:, None] * a - b
    assert_allclose(coef, np.maximum(0, beta) / 0.7, atol=1e-8)
    assert_allclose(values, (np.maximum(0, beta) * beta).sum(axis=1) / 0.7 - thetas + 1, atol=1e-8)


def test_the_cases_are_what_their_names_say():
    _, X_unlabeled = rates.population_rows()
    for slope, lam in rates.CASES[1::2]:
        fixed = rates.fixed(slope, lam)
        squared = (X_unlabeled - fixed["centers"].T) ** 2
        phi = np.exp(-squared / (2.0 * rates.SIGMA**2))
        _, coef, theta = rates.solve(*rates.population_rows(), slope, lam)
        _, at_minimum = fixed_objective(*rates.population_rows(), thetas=[theta], **fixed)
        for alpha in (coef, at_minimum[0]):
            assert ((phi @ alpha).max() > 2.0 - 1e-6) == ("limits bind" in rates.label(slope, lam))


def test_the_minimizer_is_found_to_a_ten_thousandth():
    rows = rates.population_rows(2000)
    _, _, theta = rates.solve(*rows, "inf", 0.7)
    fine = np.linspace(0.7, 1.0, 30_001)
    values, _ = fixed_objective(*rows, thetas=fine, **rates.fixed("inf", 0.7))
    assert abs(theta - fine[np.argmin(values)]) <= 1.1e-4


def test_fitted_exponent_is_a_weighted_least_squares_line():
    rng = np.random.default_rng(0)
    n = 100.0 * 2.0 ** np.arange(8)
    relative = rng.uniform(0.02, 0.2, 8)
    means = 3.0 * n**-0.5 * np.exp(relative * rng.normal(size=8))
    part = [
        {"rows": rows, "mean": mean, "standard_error": r * mean}
        for rows, mean, r in zip(n, means, relative, strict=True)
    ]
    line, covariance = np.polyfit(np.log(n), np.log(means), 1, w=1 / relative, cov="unscaled")
    assert_allclose(rates.fit_slope(part), (line[0], np.sqrt(covariance[0, 0])), rtol=1e-9)


@pytest.mark.parametrize(("method", "overlap"), [("pe", 0.25), ("pe", 0.75)])
def test_population_answers_of_the_uniforms(method, overlap):
    """PE's is one over the integral of p1 squared over p."""
    x = (np.arange(100_000) + 0.5) / 100_000
    p = uniforms.PRIOR + (1.0 - uniforms.PRIOR) * (x >= 1.0 - overlap)
    assert_allclose(uniforms.POPULATION[method, overlap], 1.0 / np.mean(1.0 / p), atol=5e-4)


TASK = {"digit": 3, "prior": 0.3, "positives": 20, "unlabeled": 40, "test": 30, "repetition": 0}


def test_samples_are_apart_and_hold_their_shares():
    labels = load_digits().target
    parts = mnist.draw_samples(TASK, labels, np.random.default_rng(0))
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) == 20 + 40 + 30 + 20 + 40
    assert [int(np.sum(labels[part] == 3)) for part in parts] == [20, 12, 9, 20, 12]


def test_too_many_rows_are_refused():
    labels = load_digits().target
    with pytest.raises(SystemExit, match="digit 3"):
        mnist.draw_samples({**TASK, "positives": 2000}, labels, np.random.default_rng(0))


@pytest.mark.filterwarnings("ignore::UserWarning")  # at the smaller prior no row is positive
def test_one_fit_serves_every_prior():
    """The ratio is the classifier's own: the same predictions as with the prior as a number."""
    rng = np.random.default_rng(0)
    P, U = rng.normal(0, 1, (60, 2)), rng.normal(0.5, 1.5, (90, 2))
    test, is_positive = rng.normal(0, 2, (50, 2)), rng.uniform(size=50) < 0.5
    for ratio in (DensityRatio(), mnist.cubic_logistic()):
        values = mnist.density_ratio_at(test, P, U, ratio, 0)
        for prior in (0.2, 0.55):
            model = PUClassifier(prior=prior, ratio=ratio, random_state=0).fit_samples(P, U)
            assert_array_equal(prior * values >= 0.5, model.predict(test) == 1)
            wrong = np.mean((model.predict(test) == 1) != is_positive)
            assert_allclose(mnist.error_rate(prior, values, is_positive), wrong)


def test_every_method_sees_the_same_draw():
    """The seed knows no method: fewer of them leave the others' results alone."""
    name, Z, labels = mnist.load("digits")
    assert name == "scikit-learn's digits"
    all_of_them, one = (
        mnist.measure({**TASK, "methods": methods}, Z, labels)
        for methods in (["sb-kde", "penl1"], ["penl1"])
    )
    assert one["priors"]["penl1"] == all_of_them["priors"]["penl1"]
    assert one["error_rates"]["same"]["true"] == all_of_them["error_rates"]["same"]["true"]


def test_a_folder_of_idx_files(tmp_path):
    import gzip

    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    images = {"train": rng.integers(0, 256, (30, 4, 5)), "t10k": rng.integers(0, 256, (10, 4, 5))}
    for part, values in images.items():
        for kind, array in (("images-idx3", values), ("labels-idx1", np.arange(len(values)) % 10)):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            with gzip.open(tmp_path / "mnist" / f"{part}-{kind}-ubyte.gz", "wb") as file:
                file.write(head + array.astype(np.uint8).tobytes())
    name, Z, labels = mnist.load(str(tmp_path))
    assert (name, Z.shape) == ("MNIST", (40, 4))
    assert_array_equal(labels, np.r_[np.arange(30), np.arange(10)] % 10)
    X = np.vstack([part.reshape(len(part), -1) for part in images.values()]) / 255.0
    singular = np.linalg.svd(X - X.mean(axis=0))[1][:4]
    assert_allclose(np.linalg.norm(Z, axis=0), singular, rtol=1e-4)


def test_without_a_folder_and_a_network_it_says_so(monkeypatch, capsys):
    """No folder beside the repository is looked for."""

    def no_network(*_, **__):
        raise OSError("offline")

    monkeypatch.setattr(mnist, "fetch_openml", no_network)
    assert mnist.load(None)[0] == "scikit-learn's digits"
    said = capsys.readouterr().out
    assert all(fact in said for fact in ("--data", "CLASSPRIOR_DATA", "offline"))
    with pytest.raises(SystemExit, match="offline"):
        mnist.load("openml")


def test_a_folder_without_the_files_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r"train-images-idx3-ubyte\.gz"):
        mnist.load(str(tmp_path))


def found(report):
    """Return the verdict on each claim."""
    lines = [line.split(" | ") for line in report.splitlines() if line.count(" | ") == 3]
    return {claim.lstrip("| "): verdict.strip("*") for claim, verdict, _, _ in lines[1:]}


def uniform_draws(n, shift=0.0, spread=0.02):
    """Return draws around the answers in the population, all moved by ``shift``."""
    rng = np.random.default_rng(0)
    common = rng.normal(0.0, spread, n)

    def rows(method, overlap, size, center, **more):
        for draw, noise in enumerate(common):
            row = {"method": method, "overlap": overlap, "rows": size, "draw": draw, **more}
            yield {**row, "estimate": center + shift + noise}

    for (method, overlap), center in uniforms.POPULATION.items():
        lower = 0.02 * (method == "penl1")  # at overlap 0.25 the penalty has nothing to lower
        yield from rows(method, overlap, 300, center - lower)
    for overlap in uniforms.OVERLAPS:
        for method in uniforms.PENL1:
            yield from rows(method, overlap, 1200, 0.7)
            yield from rows(method, overlap, 4800, 0.7)
        for factor in uniforms.FACTORS:
            slope = factor * overlap / (1.0 - overlap)
            center = 1.0 if factor < 1 else 0.7
            yield from rows("l1", overlap, 300, center, slope=slope)


def test_uniforms_are_judged():
    assert set(found(uniforms.report(list(uniform_draws(50)), 300)).values()) == {"holds"}
    judged = found(uniforms.report(list(uniform_draws(50, shift=0.1)), 300))
    assert judged.pop("L1 is right at overlap 0.25 and overestimates at 0.75") == "does not hold"
    wrong = {claim for claim, verdict in judged.items() if verdict != "holds"}
    assert all(claim.startswith(("penL1 is right", "penL1, literal is right")) for claim in wrong)
    assert len(wrong) == 4
    noisy = found(uniforms.report(list(uniform_draws(12, spread=0.3)), 300))
    assert "does not hold" not in noisy.values()


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_draws_of_the_uniforms_decide_nothing(n, shift):
    judged = found(uniforms.report(list(uniform_draws(n, shift)), 300))
    assert len(judged) == 8
    assert set(judged.values()) == {"undecided"}


def rate_draws(n, exponent=-0.5, bias=0.0):
    rng = np.random.default_rng(0)
    errors = [
        {
            **{"slope": slope, "lam": lam, "rows": size, "value": size**exponent * z},
            **{name: size**exponent * abs(z) for name in rates.QUANTITIES},
        }
        for slope, lam in rates.CASES
        for size in (100, 400, 1600, 6400)
        for z in rng.normal(size=n)
    ]
    overlaps = [
        {"method": method, "overlap": overlap, "estimate": center + bias + 0.02 * z}
        for method in ("penl1", "pe")
        for overlap in rates.OVERLAPS
        for center in [rates.PRIOR + (0.05 + 0.1 * overlap) * (method == "pe")]
        for z in rng.normal(size=n)
    ]
    return rates.summarize(errors), rates.summarize_overlaps(overlaps), n


def test_rates_are_judged():
    assert set(found(rates.report(*rate_draws(100))).values()) == {"holds"}
    slow = found(rates.report(*rate_draws(100, exponent=-0.15, bias=0.2)))
    assert list(slow.values()) == [*3 * ["does not hold"], "holds", "holds", "does not hold"]
    assert set(found(rates.report(*rate_draws(5, exponent=-0.15))).values()) == {"undecided"}


def mnist_draws(n, error=0.05, gain=0.02, noise=0.003):
    """Return draws in which EN has twice that error at small priors, and classifies better."""
    rng = np.random.default_rng(0)
    rows = []
    for digit in (1, 3):
        for prior in (0.1, 0.5, 0.9):
            for _ in range(n):
                for ratio in mnist_report.RATIOS:
                    for method in (*mnist_report.ALL, "true"):
                        off = {"en": 0.2 * (1.0 - prior), "pe": 0.15, "sb-kde": 0.15, "true": 0.0}
                        estimate = prior + off.get(method, error) + noise * rng.normal()
                        better = gain * (method == "en" and ratio != "logistic")
                        rows.append(
                            {
                                **{"digit": digit, "prior": prior, "ratio": ratio},
                                **{"method": method, "estimate": estimate, "ratio_mean": 1.0},
                                "squared_error": (estimate - prior) ** 2,
                                "error_rate": 0.1 - better + noise * rng.normal(),
                            }
                        )
    return rows


@pytest.mark.parametrize(
    ("affected", "expected"),
    [(mnist_report.PAPERS, "holds"), (["penl1-literal"], "undecided"), ([], "undecided")],
    ids=["all methods", "one method", "none"],
)
def test_one_method_alone_does_not_decide_about_all(affected, expected):
    """The error rate grows with the error of the prior, for some of the methods."""
    order = {m: 0.02 * i for i, m in enumerate(("penl1", "en", "pe", "sb", "penl1-literal"))}
    rows = mnist_draws(10, gain=0.0)
    for row in rows:
        if row["method"] in order:
            row["squared_error"] = order[row["method"]]
        if row["method"] in affected:
            row["error_rate"] += order[row["method"]]
    assert (
        found(mnist_report.report(rows, [], []))[
            "more accurate priors usually give lower error rates"
        ]
        == expected
    )


def test_mnist_is_judged():
    judged = found(mnist_report.report(mnist_draws(10), [], []))
    assert len(judged) == 13
    claims = {
        "penL1 is accurate": "holds",
        "EN is bad": "holds",
        "PE is bad": "undecided",  # the same error at small and at large priors
        "SB with a density ratio": "holds",
        "the error rate with penL1": "holds",
        "digit 3: EN or PE classifies": "holds",
        "digit 3: a density ratio from independent rows": "does not hold",
        "all digits: EN or PE classifies": "holds",
        "all digits: a density ratio from independent rows": "does not hold",
    }
    for start, expected in claims.items():
        (verdict,) = {v for claim, v in judged.items() if claim.startswith(start)}
        assert verdict == expected, start
    wrong = found(mnist_report.report(mnist_draws(10, error=0.3), [], []))
    (verdict,) = {v for claim, v in wrong.items() if claim.startswith("penL1 is accurate")}
    assert verdict == "does not hold"
    few = [row for row in mnist_draws(1, error=0.3) if row["digit"] == 3]
    assert set(found(mnist_report.report(few, [], [])).values()) == {"undecided"}
