"""What the experiments compute, against something independent."""

import duplessis2017_mnist as mnist
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
