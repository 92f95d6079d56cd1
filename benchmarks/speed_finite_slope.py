"""Speed of the L1-distance with a finite slope: a path over theta against cold solves by daqp.

    python benchmarks/speed_finite_slope.py [--rows 1000] [--centers 1000] [--cold 5]

Both solve the same quadratic programs: 100 candidates of theta at one bandwidth and the smallest
lambda of the default grid. The path starts each solve at the previous solution. The solver daqp
starts from scratch on a few problems, evenly spaced over theta. The script prints mean times per
solve and their ratio, the relative difference of the objectives, and the largest violation of the
limit by an unlabeled row.
"""

from __future__ import annotations

import argparse
import time

import daqp
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from classprior import DivergencePrior
from classprior.datasets import make_overlapping_uniforms

THETAS = np.arange(1, 101) / 100
SIGMAS = (0.1, 0.5, 2.0)

Doubles = NDArray[np.float64]


def main() -> None:
    """Measure and print one line per bandwidth."""
    parser = argparse.ArgumentParser(description="Finite-slope L1 against cold solves by daqp.")
    parser.add_argument("--rows", type=int, default=1000, help="rows in each sample")
    parser.add_argument("--centers", type=int, default=1000)
    parser.add_argument("--cold", type=int, default=5, help="problems solved by daqp")
    parser.add_argument("--slope", type=float, default=1.0)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    uniforms = make_overlapping_uniforms(
        overlap=0.75, prior=0.7, n_positive=options.rows, n_unlabeled=options.rows, random_state=0
    )
    half = options.rows // 2
    normals = (
        rng.normal(size=(options.rows, 4)),
        np.vstack([rng.normal(size=(half, 4)), rng.normal(1.0, 1.0, (options.rows - half, 4))]),
    )
    print(f"{len(THETAS)} thetas, {options.centers} centers, {options.rows} unlabeled rows\n")
    print(
        "data                  sigma     path / solve    daqp / solve   ratio   objective   excess"
    )
    with threadpool_limits(1):
        for name, samples in {
            "uniforms, 1 column": uniforms,
            "normals, 4 columns": normals,
        }.items():
            scale = np.median(np.linalg.norm(samples[1][:300, None] - samples[1][:300], axis=2))
            for sigma in SIGMAS:
                _compare(name, samples, sigma * scale, sigma, options)


def _compare(
    name: str,
    samples: tuple[Doubles, Doubles],
    sigma: float,
    rung: float,
    options: argparse.Namespace,
) -> None:
    lam = 1e-3 * options.centers / 300
    fixed = {
        "penalized": False,
        "slope": options.slope,
        "sigmas": sigma,
        "lams": lam,
        "n_centers": options.centers,
        "leave_one_out": False,
        "random_state": 0,
    }
    cold, gap, excess = [], 0.0, 0.0
    start = time.perf_counter()
    path = DivergencePrior(thetas=THETAS, **fixed).fit_samples(*samples)
    warm = (time.perf_counter() - start) / len(THETAS)
    phi_p, phi_u = (rbf_kernel(X, path.centers_, gamma=0.5 / sigma**2) for X in samples)
    for position in np.linspace(len(THETAS) // 2, len(THETAS) - 1, options.cold).astype(int):
        theta = THETAS[position]
        gamma = (theta * phi_p.mean(axis=0) - phi_u.mean(axis=0)) / lam
        start = time.perf_counter()
        other = _daqp(phi_u, gamma, 1.0 + options.slope)
        cold.append(time.perf_counter() - start)
        one = DivergencePrior(thetas=[theta], **fixed).fit_samples(*samples)
        # A single solve agrees with the path, so that the checked solution is the timed one.
        assert abs(one.objective_[0] - path.objective_[position]) < 1e-8
        ours, theirs = (0.5 * alpha @ alpha - gamma @ alpha for alpha in (one.coef_, other))
        gap = max(gap, abs(ours - theirs) / max(abs(ours), abs(theirs), 1e-300))
        excess = max(excess, float(np.max(phi_u @ one.coef_)) - 1.0 - options.slope)
    print(
        f"{name:20} {rung:4} med {1e3 * warm:10.2f} ms {1e3 * np.mean(cold):12.0f} ms "
        f"{np.mean(cold) / warm:9.0f} {gap:11.1e} {max(0.0, excess):8.1e}"
    )


def _daqp(phi_u: Doubles, gamma: Doubles, limit: float) -> Doubles:
    n_rows, n_centers = phi_u.shape
    upper = np.r_[np.full(n_centers, 1e30), np.full(n_rows, limit)]
    lower = np.r_[np.zeros(n_centers), np.full(n_rows, -1e30)]
    sense = np.zeros(n_centers + n_rows, dtype=np.int32)
    alpha, _, flag, _ = daqp.solve(
        np.eye(n_centers), -gamma, phi_u, upper, lower, sense, primal_tol=1e-10
    )
    assert flag == 1, f"daqp failed with exit flag {flag}"
    return alpha


if __name__ == "__main__":
    main()
