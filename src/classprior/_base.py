"""Base class of estimators that learn from known positives and unlabeled rows."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags

from classprior import _html
from classprior._core.messages import percent
from classprior._core.types import Doubles
from classprior._samples.opening import open_samples
from classprior._samples.sample import Sample
from classprior._samples.samples import Samples
from classprior._samples.units import RowOptions
from classprior._tables.checks import check_labeled, restored_on_error
from classprior._tables.parameters import as_fold_ids, check_sample_weight, seed_of, split_rows

#: Maps bin weights of both samples, of shape (n_resamples, n_bins), to one prior per resample.
Resampler = Callable[[tuple[Doubles, Doubles]], Doubles]


class TwoSampleEstimator(BaseEstimator, metaclass=ABCMeta):
    """Base class: ``fit`` and ``fit_samples`` prepare the samples, subclasses implement ``_solve``.

    Subclasses have the parameters ``cv``, ``pos_label`` and ``random_state``; those with
    ``neg_label`` take confirmed negatives, too.
    """

    cv: Any
    pos_label: Any
    random_state: Any
    takes_checkpoint = False  # whether a fit sums over all rows and can resume

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, key: Any = None
    ) -> Self:
        """Fit to known positives and unlabeled rows in one table.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_rows, n_features)
            Known positives and unlabeled rows together.
        y : array-like of shape (n_rows,)
            Two labels, one for known positives and one for unlabeled rows. In {0, 1}, {-1, 1} and
            booleans, 1 (or True) marks known positives. Words such as "unknown", "unlabeled",
            "not checked", "open", "pending" and "n/a" mark unlabeled rows. For other labels set
            ``pos_label``; by default the greater label is positive, with a warning. A third label
            may mark confirmed negatives, which are left out: set ``neg_label``.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row, such as one over the probability with which it was sampled. The
            prior is then the weighted share of positives. Only ratios of weights within a sample
            matter, except for ``prior_pooled_`` and ``label_frequency_``.
        groups : array-like of shape (n_rows,), optional
            Group of each row, such as a customer or a patient. Rows of a group are always in the
            same fold and are resampled together.
        key : array-like of shape (n_rows,), optional
            What tells each row from the others, such as the number of a payment, instead of its
            index: the fit then does not depend on the order of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        for name, given in (("sample_weight", sample_weight), ("groups", groups), ("key", key)):
            if isinstance(given, str):
                raise TypeError(
                    f"Expected {name} to be an array with one value for each row, got {given!r}. "
                    "Only fit_samples accepts a column name."
                )
        with restored_on_error(self):
            neg_label = getattr(self, "neg_label", None)
            X, is_positive, is_negative = check_labeled(self, X, y, self.pos_label, neg_label)
            each = is_positive, ~(is_positive | is_negative)
            n_rows, w = len(is_positive), np.ones(len(is_positive))
            if sample_weight is not None:
                w = check_sample_weight(sample_weight, n_rows)
            samples = Samples.of_rows(
                X[each[0]],
                X[each[1]],
                seed_of(self.random_state),
                negative=Sample.of_negatives(X[is_negative]) if is_negative.any() else None,
                n_jobs=getattr(self, "n_jobs", None),
            )
            rows = RowOptions(
                groups=split_rows(groups, each, "groups"),
                weights=None if sample_weight is None else (w[each[0]], w[each[1]]),
                folds=split_rows(as_fold_ids(self.cv, n_rows), each, "cv"),
                key=split_rows(key, each, "key"),
            )
            self._set_negatives(samples, float(w[is_negative].sum()))
            self._solve(samples.with_units(rows))
        return self

    def fit_samples(
        self,
        X_positive: Any,
        X_unlabeled: Any,
        *,
        weights: Any = None,
        groups: Any = None,
        key: Any = None,
    ) -> Self:
        """Fit to known positives and unlabeled rows in two tables.

        Parameters
        ----------
        X_positive, X_unlabeled : array-like, data frame, CSR matrix, path or other source
            Known positives, and rows that may be positive or negative; any input that
            ``fit_blocks`` accepts. Named columns are matched by name.
        weights : str or pair of array-likes, optional
            Weight of each row: a column name, or one array per sample. Only ratios of weights
            within a sample matter.
        groups : str or pair of array-likes, optional
            Group of each row: a column name, or one array per sample. Rows of a group are always
            in the same fold and are resampled together.
        key : str, sequence of str or pair of array-likes, optional
            What tells each row of a sample from the others, such as the number of a payment,
            instead of its index: one or more column names, or one array per sample.

        Returns
        -------
        self : object
            The fitted estimator; ``classes_`` is [0, 1], with 1 for positives.
        """
        samples = open_samples(
            X_positive,
            X_unlabeled,
            RowOptions(weights=weights, groups=groups, key=key, folds=self.cv),
            seed=seed_of(self.random_state),
            n_jobs=getattr(self, "n_jobs", None),
            verbose=getattr(self, "verbose", 0),
        )
        self.fit_opened(samples.settled(), samples.columns)
        return self

    def fit_opened(self, samples: Samples, columns: Any = None) -> Resampler | None:
        """Fit to opened samples; return a resampler of the prior, or None."""
        with restored_on_error(self):
            self._set_shape(samples, columns)
            return self._solve(samples)

    def _set_shape(self, samples: Samples, columns: Any = None) -> None:
        """Set the attributes known before the fit: labels and columns."""
        for name, usual in (("pos_label", 1), ("neg_label", None)):
            if (label := getattr(self, name, None)) not in (None, usual):
                raise ValueError(
                    f"{name}={label!r} applies only to fit(X, y). With two samples the first holds "
                    f"the positives; leave {name} out."
                )
        self._set_negatives(samples, float(samples.n_negative))
        self.classes_, self.pos_label_ = np.array([0, 1]), 1
        self.n_features_in_ = samples.n_features
        self.__dict__.pop("feature_names_in_", None)
        if columns and all(isinstance(name, str) for name in columns):
            self.feature_names_in_ = np.array(columns, dtype=object)

    def _set_negatives(self, samples: Samples, mass: float) -> None:
        """Set the number of confirmed negatives and their total weight."""
        self.n_negative_, self._negative_mass = samples.n_negative, mass

    @abstractmethod
    def _solve(self, samples: Samples) -> Resampler | None:
        """Set the fitted attributes; return a resampler if bin sums suffice, else None."""

    def _repr_html_inner(self) -> str:
        return self._share_html() + super()._repr_html_inner()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what notebooks show: the share, if fitted, and scikit-learn's diagram."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._share_html() + bundle["text/html"]
        return bundle

    def _share_html(self) -> str:
        """Return the estimated share with its interval and bound, if the estimator has them."""
        prior = getattr(self, "prior_", None)
        if prior is None:
            return ""
        names = ("low_", "high_", "upper_bound_")
        bar = ""
        if all(getattr(self, name, None) is not None for name in names):
            low, high, bound = (getattr(self, name) for name in names)
            shown = None if getattr(self, "is_upper_bound_", False) else prior
            bar = _html.share_bar(shown, low, high, bound, bound_name="upper bound")
        share = percent(prior)
        if getattr(self, "is_upper_bound_", False):
            share = f"at most {percent(self.upper_bound_)}"
        text = f"Share of positives in the unlabeled rows: {share}"
        return _html.fragment(_html.paragraph("", bold=text), bar)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        # Not a classifier, but y must be binary.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
