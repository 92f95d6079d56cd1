"""The pages: what each address answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from classprior import __version__
from classprior._files.temporary import own_folder
from classprior._html import template_environment
from classprior.app import _choices as choice
from classprior.app._choices import ChoiceError, Choices, Draw, Form, Reading
from classprior.app._jobs import Desk, State
from classprior.app._safety import REPORT_POLICY, Gate, Keys
from classprior.app._session import Data, Review, Run, Session
from classprior.app._uploads import Upload, UploadError, receive, stored_name
from classprior.app._work import EXAMPLE, LABELED_EXAMPLE
from classprior.priors._methods import METHODS

KNOWN, UNLABELED = "known", "unlabeled"  # fields of the form with the files
_EXAMPLES = {EXAMPLE: ("frauds.csv", "transactions.csv"), LABELED_EXAMPLE: ("payments.csv",)}
_LONGEST_FORM = 5_000_000  # bytes
#: Folder and type of each file; the server does not import the report, which is heavy.
_STATIC = {
    "app.css": ("app/static", "text/css"),
    "app.js": ("app/static", "text/javascript"),
    "report.css": ("report/templates", "text/css"),
}


def create_app(keys: Keys, max_bytes: int, evidence: Any = None) -> Gate:
    """Return the application that answers requests with these keys."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        desk = Desk()
        desk.open()
        app.state.session = Session(own_folder(), desk, max_bytes, evidence)
        yield
        desk.close()
        for data in list(app.state.session.data.values()):
            app.state.session.remove(data)

    pages = _Pages()
    app = Starlette(
        routes=[
            Route("/", pages.home),
            Route("/data", pages.upload, methods=["POST"]),
            Route("/example", pages.example, methods=["POST"]),
            Route("/data/{number:int}", pages.data),
            Route("/data/{number:int}/read", pages.read_again, methods=["POST"]),
            Route("/data/{number:int}/swap", pages.swap, methods=["POST"]),
            Route("/data/{number:int}/remove", pages.remove, methods=["POST"]),
            Route("/data/{number:int}/runs", pages.start, methods=["POST"]),
            Route("/{kind}/{number:int}", pages.made),
            Route("/{kind}/{number:int}/progress", pages.progress),
            Route("/{kind}/{number:int}/cancel", pages.cancel, methods=["POST"]),
            Route("/{kind}/{number:int}/checked", pages.check, methods=["POST"]),
            Route("/{kind}/{number:int}/download/{file}", pages.download),
            Route("/runs/{number:int}/report", pages.report),
            Route("/runs/{number:int}/reviews", pages.draw, methods=["POST"]),
            Route("/static/{name}", pages.static),
        ],
        exception_handlers={HTTPException: pages.problem, Exception: pages.unexpected},
        lifespan=lifespan,
    )
    return Gate(app, keys)  # around everything, also the answers to unexpected errors


class _Pages:
    """The answers to requests."""

    def __init__(self) -> None:
        self._environment = template_environment("classprior.app")
        self._environment.globals.update(choice=choice, methods=METHODS, version=__version__)

    async def home(self, request: Request) -> Response:
        """Show where to choose files, and the history."""
        return self._home(request)

    async def upload(self, request: Request) -> Response:
        """Store files and look at them."""
        session = _session(request)
        folder = session.new_folder()
        try:
            form, uploads = await receive(request, folder, session.max_bytes)
        except UploadError as error:
            return self._home(request, problem=str(error), status=422)
        by_field = {upload.field: upload for upload in uploads}
        ordered = [by_field[name] for name in (KNOWN, UNLABELED) if name in by_field]
        return _see_other(f"/data/{session.add(folder, ordered, Reading.of(form)).number}")

    async def example(self, request: Request) -> Response:
        """Make example files."""
        session, form = _session(request), await _form(request)
        kind = form.get("kind", "")
        if kind not in _EXAMPLES:
            raise HTTPException(404)
        uploads = [Upload("", name, stored_name(name)) for name in _EXAMPLES[kind]]
        data = session.add(session.new_folder(), uploads, Reading(), kind)
        return _see_other(f"/data/{data.number}")

    async def data(self, request: Request) -> Response:
        """Show how the files were understood, and ask what to do with them."""
        form = Form()
        with suppress(KeyError, ValueError):
            form = _session(request).runs[int(request.query_params["run"])].form
        return self._data(_data(request), form)

    async def read_again(self, request: Request) -> Response:
        """Read the files in another way."""
        data = _data(request)
        _session(request).look_again(data, data.files, Reading.of(await _form(request)))
        return _see_other(f"/data/{data.number}")

    async def swap(self, request: Request) -> Response:
        """Take the other file as that of the known positives."""
        data = _data(request)
        _session(request).look_again(data, data.files[::-1], data.reading)
        return _see_other(f"/data/{data.number}")

    async def remove(self, request: Request) -> Response:
        """Remove files."""
        _session(request).remove(_data(request))
        return _see_other("/")

    async def start(self, request: Request) -> Response:
        """Start an estimate."""
        data, form = _data(request), await _form(request)
        if data.job.state is not State.DONE:
            return _see_other(f"/data/{data.number}")
        try:
            choices = Choices.of(form, data.job.found)
            choices.check()
            run = _session(request).start(data, choices, form)
        except ChoiceError as error:
            return self._data(data, form, problem=str(error), status=422)
        return _see_other(f"/runs/{run.number}")

    async def draw(self, request: Request) -> Response:
        """Draw rows that somebody should look at."""
        run, form = _run(request), await _form(request)
        if run.answer is None:
            return _see_other(run.here)
        try:
            draw = Draw.of(form, run.answer["n_unlabeled"])
        except ChoiceError as error:
            return self._made(request, run, problem=str(error), status=422)
        return _see_other(_session(request).draw(run, draw).here)

    async def check(self, request: Request) -> Response:
        """Store a sheet that somebody has filled in, and estimate with it."""
        session, made = _session(request), _made(request)
        folder = session.new_folder(made.data.folder)
        try:
            _, uploads = await receive(request, folder, session.max_bytes)
            _made(request)  # unless its files were removed in the meantime
            return _see_other(session.start_checked(made, folder, uploads).here)
        except UploadError as error:
            return self._made(request, made, problem=str(error), status=422)

    async def made(self, request: Request) -> Response:
        """Show how far an estimate or a review is, or what was found."""
        return self._made(request, _made(request))

    async def progress(self, request: Request) -> Response:
        """Tell the script how far the work is."""
        return JSONResponse(_item(request).job.progress)

    async def cancel(self, request: Request) -> Response:
        """End the work."""
        _item(request).job.cancel()
        return _see_other(request.url.path.removesuffix("/cancel"))

    async def report(self, request: Request) -> Response:
        """Send the report, in which no script runs."""
        headers = {"content-security-policy": REPORT_POLICY, "x-frame-options": "SAMEORIGIN"}
        return FileResponse(_output(_run(request), "report"), headers=headers)

    async def download(self, request: Request) -> Response:
        """Send a file to keep."""
        made, kind = _made(request), request.path_params["file"]
        path = _output(made, kind)
        # Whatever it is, a browser stores it and does not show it.
        return FileResponse(
            path, media_type="application/octet-stream", filename=made.downloads[kind]
        )

    async def static(self, request: Request) -> Response:
        """Send a style sheet or a script."""
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        folder, media_type = _STATIC[name]
        content = files("classprior").joinpath(folder, name).read_bytes()
        return Response(content, media_type=media_type)

    async def problem(self, request: Request, error: Exception) -> Response:
        """Say that a page does not exist, or what is wrong with a request."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        what = "There is no such page" if status == 404 else "This did not work"
        detail = "" if status == 404 else str(getattr(error, "detail", ""))
        return self._page("problem.html", status, title=what, detail=detail)

    async def unexpected(self, request: Request, error: Exception) -> Response:
        """Say that the error is ours; its details are in the terminal."""
        detail = "An unexpected error. Its details are in the terminal."
        return self._page("problem.html", 500, title="This did not work", detail=detail)

    def _home(self, request: Request, problem: str = "", status: int = 200) -> Response:
        session = _session(request)
        history = sorted(session.runs.values(), key=lambda run: -run.number)
        others = [data for data in session.data.values() if not data.n_runs]
        return self._page(
            "home.html",
            status,
            title="How many positives hide in the unlabeled rows?",
            problem=problem,
            history=history,
            others=others,
            max_bytes=session.max_bytes,
            examples=_EXAMPLES,
        )

    def _made(
        self, request: Request, made: Run | Review, problem: str = "", status: int = 200
    ) -> Response:
        """Show a run or a review."""
        session, job = _session(request), made.job
        about: dict[str, Any] = {"data": made.data, "job": job, "here": made.here, "made": made}
        if job.found:
            reviews = [review for review in session.reviews.values() if review.run is made]
            about |= {"problem": problem, "reviews": reviews, "max_bytes": session.max_bytes}
            return self._page(made.template, status, title=made.title, **about)
        if job.is_open:
            return self._page("progress.html", status, title=made.doing, **about)
        return self._page("failed.html", status, title=made.failed, **about)

    def _data(self, data: Data, form: Form, problem: str = "", status: int = 200) -> Response:
        here = f"/data/{data.number}"
        about: dict[str, Any] = {"data": data, "job": data.job, "here": here}
        if data.job.is_open:
            return self._page("progress.html", status, title="Reading the files", **about)
        if data.job.state is not State.DONE:
            return self._page("failed.html", status, title="The files were not read", **about)
        found = data.job.found
        return self._page(
            "data.html",
            status,
            title="Columns and options",
            problem=problem,
            form=form,
            found=found,
            guess=_guess(found),
            **about,
        )

    def _page(self, name: str, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self._environment.get_template(name).render(**values), status)


def _guess(found: Mapping[str, Any]) -> str:
    """Return the place of the likeliest label in the list of labels, such as "2:0"."""
    if not found.get("guess"):
        return ""
    name, positive = found["guess"]
    column = list(found["labels"]).index(name)
    return f"{column}:{[value for value, _ in found['labels'][name]].index(positive)}"


def _session(request: Request) -> Session:
    return request.app.state.session


def _data(request: Request) -> Data:
    return _found(_session(request).data, request)


def _run(request: Request) -> Run:
    return _found(_session(request).runs, request)


def _made(request: Request) -> Run | Review:
    made = _item(request)
    if isinstance(made, Data):
        raise HTTPException(404)
    return made


def _item(request: Request) -> Data | Run | Review:
    session, kind = _session(request), request.path_params["kind"]
    known: Mapping[str, Mapping[int, Any]] = {
        "data": session.data,
        "runs": session.runs,
        "reviews": session.reviews,
    }
    return _found(known.get(kind, {}), request)


def _found(known: Mapping[int, Any], request: Request) -> Any:
    number = request.path_params["number"]
    if number not in known:
        raise HTTPException(404)
    return known[number]


def _output(made: Run | Review, kind: str) -> Path:
    """Return a file that was made."""
    if kind not in made.files:
        raise HTTPException(404)
    return made.data.folder / made.outputs[kind]


async def _form(request: Request) -> Form:
    """Return the fields of a form without files."""
    body = bytearray()
    async for chunk in request.stream():
        body.extend(chunk)
        if len(body) > _LONGEST_FORM:
            raise HTTPException(413, "The form is too long.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=100_000)
    except ValueError as error:
        raise HTTPException(400, "The form is damaged.") from error
    return Form(pairs)


def _see_other(place: str) -> Response:
    return RedirectResponse(place, status_code=303)
