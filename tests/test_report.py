"""The report: complete, safe and readable, also in Chromium if it is installed."""

import io
import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version
from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import LogisticRegression

from classprior import AutoPrior, ColumnTreatment, Importance, estimate_prior
from classprior._core.messages import percent
from classprior._html import share_bar
from classprior.report import render_report
from classprior.result import Caution

NASTY = [
    "<script>alert(1)</script>",
    "</style></title><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{$_",
    "\0\x1b[31m\u202ereversed\ud800",
    "Ж日本語🙂" * 3,
    "W" * 5000,
]
PICTURES = {
    "auto": ["tails", "scores"],
    "penl1": ["objective", "scores"],
    "sb": ["rejection", "scores"],
    "en": ["tails", "scores"],
    "subtypes": ["tails", "scores"],
}
OPTIONS = {"penl1": {"n_centers": 30}, "sb": {"n_centers": 30}, "en": {}, "subtypes": {}}
LINEAR = AutoPrior(classifiers={"linear": LogisticRegression()}, n_repeats=1)
VOID = {"meta", "link", "img", "br", "hr", "input"}


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(7)
    positive, negative = rng.normal(0, 1, (500, 2)), rng.normal(4, 1, (700, 2))
    return positive[:200], np.vstack([positive[200:], negative])


@pytest.fixture(scope="module")
def estimate(samples):
    return estimate_prior(*samples, random_state=0, n_repeats=1, n_resamples=50)


@pytest.fixture(scope="module")
def overlapping():
    """Return an estimate by a method that over-estimates, with a warning about it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)), rng.normal(0.5, 1.5, size=(200, 2))
    return estimate_prior(*X, method="pe", random_state=0, n_resamples=20, evidence=LINEAR)


@pytest.fixture(scope="module", params=PICTURES)
def any_estimate(request, estimate, samples):
    """Return an estimate by each kind of method."""
    method = request.param
    if method == "auto":
        return estimate
    quick = {"random_state": 0, "n_resamples": 2, "evidence": LINEAR}
    return estimate_prior(*samples, method=method, **quick, **OPTIONS[method])


@pytest.fixture(scope="module", params=[None, "month"], ids=["names", "months"])
def segmented(request, samples):
    """Return an estimate with malicious names of segments, or with months."""
    names = NASTY if request.param is None else [f"2024-{month:02}-01" for month in range(1, 13)]
    segments = np.array(names, dtype=object)[np.arange(len(samples[1])) % len(names)]
    options = {"every": request.param, "evidence": LINEAR, "n_resamples": 20, "random_state": 0}
    return estimate_prior(*samples, segments=(None, segments), **options)


@pytest.fixture(scope="module")
def nasty_page(samples):
    """Return a page in which all text from outside is malicious."""
    evidence = AutoPrior(classifiers=dict.fromkeys(NASTY, LogisticRegression()), n_repeats=1)
    worst = replace(
        estimate_prior(*samples, random_state=0, n_resamples=20, evidence=evidence),
        warnings=(Caution(NASTY[0], NASTY[1]), *NASTY),
        notes=tuple(NASTY),
        columns=tuple(ColumnTreatment(n, np.str_(n), n) for n in NASTY),
    )
    importances = [Importance(name, 0.5 / n, 0.1) for n, name in enumerate(NASTY, 1)]
    settings = {n: n for n in NASTY}
    every = " ".join(NASTY)
    command = " ".join(NASTY[:-1])  # however long, a command is shown whole
    texts = {"settings": settings, "title": every, "command": command, "date": every}
    return render_report(worst, importances=importances, **texts)


class Parsed(HTMLParser):
    """The elements with their attributes and the text of a page; checks that tags are balanced."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts, self._open = [], [], []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.texts.append((self._open[-1], data.strip()))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(text for _, text in self.texts))


def variables(css):
    return dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", css))


def contrast(one, other):
    """Return the contrast of two colors as the Web Content Accessibility Guidelines define it."""

    def luminance(color):
        parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_says_what_the_estimate_says(estimate):
    values = estimate.to_dict()
    text = Parsed(render_report(estimate)).text
    assert estimate.answer in text
    assert f"Estimate {values['prior']:.1%} " in text
    assert f"95% interval, population {values['low']:.1%} to {values['high']:.1%} " in text
    counts = f"{values['low_count']:,.0f} to {values['high_count']:,.0f}"
    assert f"95% interval, these rows {counts} " in text
    assert f"Certified upper bound {values['upper_bound']:.1%} " in text
    for name in ("upper_bound_asymptotic", "prior_pooled", "label_frequency"):
        assert f" {values[name]:.1%}" in text


def test_the_answer_comes_first_and_headings_are_in_order(any_estimate):
    page = Parsed(render_report(any_estimate))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    headings = [text for tag, text in page.texts if re.fullmatch(r"h\d", tag)]
    assert headings[0] == any_estimate.answer
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("main")) == len(page.all("header")) == 1


def test_what_is_assumed_follows_the_answer_and_columns_are_folded(estimate):
    kinds = ["number", "category", "identifier"]
    columns = tuple(ColumnTreatment(kind, kind, "as it is") for kind in kinds)
    page = Parsed(render_report(replace(estimate, columns=columns, notes=("A note.",))))
    ids = [a["id"] for tag, a in page.elements if tag == "h2"]
    assert ids == ["numbers", "warnings", "assumptions", "evidence", "columns", "repeat"]
    quiet = Parsed(render_report(replace(estimate, warnings=(), notes=())))
    assert "warnings" not in [a["id"] for tag, a in quiet.elements if tag == "h2"]
    assert page.all("details") == [{}]  # closed
    assert ("summary", "2 columns used, 1 left out") in page.texts
    one = Parsed(render_report(replace(estimate, columns=columns[:1])))
    assert ("summary", "1 column used") in one.texts


def test_one_file_that_loads_nothing(any_estimate):
    page = render_report(any_estimate)
    assert len(page) < 200_000
    assert not re.search(r"https?:|//|@import|url\((?!#)", page)
    addresses = [
        value
        for _, attributes in Parsed(page).elements
        for key, value in attributes.items()
        if key in ("src", "href")
    ]
    assert all(address.startswith(("#", "data:,")) for address in addresses)
    policy = Parsed(page).all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'")


def test_each_method_shows_what_it_saw(any_estimate):
    page = render_report(any_estimate)
    titled = re.findall(r"<svg [^>]*><title>[^<]{20,}</title>", page)
    assert len(titled) == page.count("<svg") == 3  # the bar and two pictures
    prefixes = dict.fromkeys(re.findall(r'id="(tails|scores|objective|rejection)-', page))
    assert list(prefixes) == PICTURES[any_estimate.method]
    assert all(svg["role"] == "img" for svg in Parsed(page).all("svg"))


def test_references_are_to_ids_that_are_unique(any_estimate):
    page = render_report(any_estimate)
    ids = [a["id"] for _, a in Parsed(page).elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"(?:href=\"|url\()#([\w-]+)", page)) <= set(ids)


def test_an_estimate_by_hand_has_no_pictures(estimate):
    page = Parsed(render_report(replace(estimate, estimator=None, evidence=None)))
    assert len(page.all("svg")) == 1  # the bar
    assert not page.all("figure")


def test_segments_are_drawn_and_listed(segmented):
    source = render_report(segmented)
    page = Parsed(source)
    ids = [a["id"] for tag, a in page.elements if tag == "h2"]
    assert ids[ids.index("segments") + 1] == "assumptions"
    assert len(page.all("svg")) == 4  # the bar, the segments and two pictures
    assert f"with their intervals, and the share of {percent(segmented.prior)}" in page.text
    assert segmented.segments.findings in page.text
    for part in segmented.segments.values():
        assert " ".join(part.cells) in page.text
    assert not page.all("script")
    assert not page.all("img")
    assert all(c.isprintable() or c == "\n" for c in source)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_estimates_at_the_ends(estimate, share):
    at_end = replace(estimate, prior=share, low=share, high=share, upper_bound=share)
    assert f"About {share:.1%} of the" in Parsed(render_report(at_end)).text


def test_the_same_estimate_has_the_same_bytes(estimate):
    page = render_report(estimate)
    with mpl.rc_context({"text.usetex": True, "figure.facecolor": "red", "font.size": 30.0}):
        assert render_report(estimate) == page


def test_warnings_come_with_what_to_do(overlapping, estimate):
    (warning,) = (w for w in overlapping.warnings if "'pe'" in w.finding)
    shown = Parsed(render_report(replace(overlapping, warnings=(warning, "A plain one.")))).text
    assert f"{warning.finding} What to do: {warning.advice} A plain one." in shown
    assert "2 warnings" in shown
    assert not estimate.warnings
    assert "What to do:" not in Parsed(render_report(estimate)).text


def test_the_picture_of_scores_condemns_only_what_is_significant(estimate):
    chance, significant = (
        Parsed(render_report(replace(estimate, prior=prior))).text
        for prior in (estimate.prior, min(1.0, 3.0 * estimate.prior))
    )
    assert "by more than chance" not in chance
    assert "by more than chance (p < .001)" in significant


def test_notes_are_shown(estimate):
    noted = replace(estimate, notes=("From 20,000 rows.", "In one column."))
    text = Parsed(render_report(noted)).text
    assert all(note in text for note in noted.notes)


def test_columns_settings_and_versions(estimate):
    columns = tuple(ColumnTreatment(f"c{i}", "number", "kept") for i in range(1200))
    wide = replace(estimate, columns=columns)
    page = Parsed(render_report(wide, settings={"seed": "11"}, title="Mine"))
    assert "c0 number kept c1 number kept" in page.text
    assert "The first 1,000 of 1,200 columns." in page.text
    assert "seed 11" in page.text
    assert f"numpy {np.__version__}" in page.text
    assert f"classprior {version('classprior')}" in page.text
    assert all(header["scope"] in ("row", "col") for header in page.all("th"))
    assert ("title", "Mine") in page.texts


def test_columns_are_those_of_the_estimate(estimate):
    own = replace(estimate, columns=(ColumnTreatment("age", "number", "standardized"),))
    assert "age number standardized" in Parsed(render_report(own)).text
    none = Parsed(render_report(replace(estimate, columns=())))
    assert not [a for a in none.all("table") if a["class"] == "columns"]


def test_the_most_important_columns_are_drawn(estimate):
    importances = [Importance(f"column {n}", 1.0 / n, 0.01) for n in range(1, 21)]
    page = Parsed(render_report(estimate, importances=importances))
    assert len(page.all("svg")) == 4  # the bar, the columns and two pictures
    assert "The 15 most important columns of 20" in page.text
    assert "column 15" in page.text
    assert "column 16" not in page.text
    assert 'id="importances"' not in render_report(estimate)


def test_nothing_from_outside_is_markup(nasty_page):
    page = Parsed(nasty_page)
    assert not page.all("script")
    assert not page.all("img")
    assert not [a for _, a in page.elements if any(key.startswith("on") for key in a)]
    assert NASTY[0] in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "Ж日本語" in page.text
    nasty_page.encode("utf-8")
    assert all(c.isprintable() or c == "\n" for c in nasty_page)
    assert "W" * 4001 not in nasty_page


def test_colors_can_be_told_from_the_page(nasty_page):
    css = re.search("<style>(.*?)</style>", nasty_page, re.DOTALL)[1]
    drawn = set(re.findall(r"var\((--[\w-]+)\)", nasty_page.replace(css, "")))
    assert drawn >= {"--estimate", "--gray", "--ink", *(f"--curve-{i}" for i in (1, 2, 3, 4, 5, 7))}
    bright, dark = css.split("@media screen and (prefers-color-scheme: dark)")
    light = variables(bright)
    for colors in (light, light | variables(dark)):
        for letters in ("--ink", "--soft", "--link"):
            assert contrast(colors[letters], colors["--page"]) >= 4.5
        assert contrast(colors["--soft"], colors["--card"]) >= 4.5
        assert contrast(colors["--ink"], colors["--card"]) >= 4.5
        assert contrast(colors["--ink"], colors["--caution"]) >= 4.5
        assert contrast(colors["--caution-rule"], colors["--page"]) >= 3.0
        for name in drawn:
            assert contrast(colors[name], colors["--page"]) >= 3.0
    assert set(light) == set(variables(dark))
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)


@pytest.mark.parametrize(
    ("module", "name"), [("jinja2", "jinja2"), ("matplotlib.figure", "matplotlib")]
)
def test_says_what_to_install(estimate, monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{name}.*pip install 'classprior\[cli\]'"):
        render_report(estimate)


# In a browser -------------------------------------------------------------------------------------

BOXES = """[...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect())
           .map(box => [box.width, box.height])"""
SPILLED = """[...document.querySelectorAll("body *")].filter(
               e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("svg")).length"""
HEIGHTS = "texts => texts.map(t => t.getBoundingClientRect().height)"
LABELS = """texts => texts.map(t => [t.textContent, t.getBoundingClientRect().toJSON()])"""
# Estimate, low, high and upper bound.
SHARES = [
    (0.0, 0.0, 0.0, 0.0),
    (1.0, 1.0, 1.0, 1.0),
    (0.0, 0.0, 1.0, 1.0),
    (1.0, 0.99, 1.0, 1.0),
    (0.0012, 0.0004, 0.002, 0.0041),
    (0.12, 0.11, 0.13, 0.14),
    (0.25, 0.24, 0.26, 0.27),
    (0.3, 0.28, 0.31, 0.32),
    (0.5, 0.5, 0.5, 0.5),
    (0.5, 0.1, 0.9, 0.95),
    (0.7, 0.69, 0.75, 0.76),
    (0.88, 0.87, 0.89, 0.45),
]


@contextmanager
def opened(chromium, file, *, width, dark):
    """Open a file offline; yield the page and the complaints of the browser."""
    device = {"viewport": {"width": width, "height": 800}, "is_mobile": width < 600}
    scheme = "dark" if dark else "light"
    context = chromium.new_context(offline=True, color_scheme=scheme, **device)
    complaints = []
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if is_far(request) else None)
    page.goto(file.as_uri())
    yield page, complaints
    context.close()


def is_far(request):
    return not request.url.startswith(("file:", "data:"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_in_a_browser(chromium, estimate, nasty_page, tmp_path, width, dark):
    file = tmp_path / "report.html"
    for text, n_pictures in ((nasty_page, 4), (render_report(estimate, title="Report"), 3)):
        file.write_text(text, encoding="utf-8")
        with opened(chromium, file, width=width, dark=dark) as (page, complaints):
            boxes = page.evaluate(BOXES)
            assert len(boxes) == n_pictures
            assert all(w > 250 and h > 50 for w, h in boxes)
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.evaluate(SPILLED) == 0
            assert complaints == []
            heading = page.locator("h1").text_content()
            heights = page.locator(".picture text").evaluate_all(HEIGHTS)
            screenshot = page.screenshot(full_page=True)
    assert heading == estimate.answer
    assert min(heights) > 9.0
    picture = Image.open(io.BytesIO(screenshot)).convert("RGB")
    assert picture.width == width
    assert (np.asarray(picture).mean() < 100) == dark
    assert len(picture.getcolors(maxcolors=1 << 24)) > 50


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_segments_in_a_browser(chromium, segmented, tmp_path, width, dark):
    """On a phone, the table scrolls by itself, and nothing else is wider than the screen."""
    file = tmp_path / "report.html"
    file.write_text(render_report(segmented), encoding="utf-8")
    with opened(chromium, file, width=width, dark=dark) as (page, complaints):
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(SPILLED.replace('closest("svg")', 'closest("svg, table")')) == 0
        assert complaints == []
        boxes = page.evaluate(BOXES)
        heights = page.locator("section[aria-labelledby=segments] svg text").evaluate_all(HEIGHTS)
        rows = page.locator(".segments tbody th").evaluate_all(HEIGHTS)
    assert len(boxes) == 4
    assert min(heights) > 9.0
    assert max(rows) < 60.0  # no name or number is broken into several lines


@pytest.mark.parametrize("width", [360, 1280])
def test_the_bar_is_labeled_and_its_labels_do_not_overlap(chromium, tmp_path, width):
    """The ends of the interval and the bound are numbers on the bar itself."""
    file = tmp_path / "bar.html"
    head = "<!doctype html><meta name='viewport' content='width=device-width'>"
    for shares in SHARES:
        style = "margin: 20px; font-family: sans-serif"
        file.write_text(
            f"{head}<body style='{style}'>{share_bar(*shares, bound_name='upper bound')}",
            encoding="utf-8",
        )
        with opened(chromium, file, width=width, dark=False) as (page, _):
            labels = page.locator("svg text").evaluate_all(LABELS)
        text = " ".join(text for text, _ in labels)
        prior, low, high, bound = map(percent, shares)
        assert prior in text
        assert f"interval {low} to {high}" in text
        assert f"upper bound {bound}" in text
        for (one, a), (other, b) in combinations(labels, 2):
            apart = (
                a["right"] <= b["left"]
                or b["right"] <= a["left"]
                or a["bottom"] <= b["top"] + 1
                or b["bottom"] <= a["top"] + 1
            )
            assert apart, (shares, one, other)
        assert all(box["left"] >= 0 and box["right"] <= width for _, box in labels)


def test_columns_unfold_on_paper(chromium, estimate, tmp_path):
    file = tmp_path / "report.html"
    columns = (ColumnTreatment("age", "number", "scaled"),)
    file.write_text(render_report(replace(estimate, columns=columns)), encoding="utf-8")
    shown = "document.querySelector('table.columns').checkVisibility()"
    with opened(chromium, file, width=1280, dark=False) as (page, _):
        assert not page.evaluate(shown)
        page.emulate_media(media="print")
        if not page.evaluate("CSS.supports('selector(::details-content)')"):
            pytest.skip("this Chromium cannot unfold details in a style sheet")
        assert page.evaluate(shown)


def test_prints_in_dark_ink_on_few_pages(chromium, estimate, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(render_report(estimate), encoding="utf-8")
    with opened(chromium, file, width=1280, dark=True) as (page, _):
        page.emulate_media(media="print")
        color = page.evaluate("getComputedStyle(document.body).color")
        printed = page.pdf(print_background=False)
    assert color == "rgb(24, 32, 42)"
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= 5


@pytest.mark.parametrize(
    "body",
    [
        "<meta http-equiv='Content-Security-Policy' content='default-src data:'><script>1</script>",
        "<script>console.error('no')</script>",
        "<script>undefined.x</script>",
        "<img src='http://example.invalid/x.png'>",
    ],
    ids=["refused script", "message", "error", "address"],
)
def test_the_browser_complains_where_it_should(chromium, tmp_path, body):
    """The other tests rely on it that scripts, errors and remote addresses are noticed."""
    bad = tmp_path / "bad.html"
    bad.write_text(f"<!doctype html><meta charset='utf-8'>{body}")
    with opened(chromium, bad, width=800, dark=False) as (page, complaints):
        page.evaluate("1")
        assert complaints
