"""The addresses of the viewer and what answers each; pages are made in threads, so that a slow one holds up nobody."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from consilience.errors import ConsilienceError
from consilience.reports.drawings.sheet import Theme
from consilience.viewer.guard import Access, Guard
from consilience.viewer.pages import compare, decision, forecast, item, run, runs, turns
from consilience.viewer.shown import page
from consilience.viewer.study import MALFORMED, Study, malformed

STATIC: Final = Path(__file__).parent / "static"
KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(study: Study, access: Access) -> Guard:
    """Return the viewer of a study, guarded.

    Args:
        study: What it shows.
        access: Who may ask.
    """
    pages = _Pages(study)
    routes = [
        Route("/", pages.answer(pages.runs)),
        Route("/runs/{run}", pages.answer(pages.run)),
        Route("/runs/{run}/row", pages.answer(pages.row)),
        Route("/runs/{run}/verify", pages.answer(pages.verify)),
        Route("/runs/{run}/{picture:str}.svg", pages.picture(pages.run_picture)),
        Route("/runs/{run}/items/{item}", pages.answer(pages.item)),
        Route("/runs/{run}/items/{item}/rule", pages.answer(pages.rule)),
        Route("/runs/{run}/items/{item}/turn", pages.answer(pages.turn)),
        Route("/runs/{run}/items/{item}/bytes", pages.answer(pages.exact_bytes)),
        Route("/runs/{run}/items/{item}/{picture:str}.svg", pages.picture(pages.item_picture)),
        Route("/runs/{run}/forecasts/{item}", pages.answer(pages.forecast)),
        Route("/decisions", pages.answer(pages.decisions)),
        Route("/decisions/{run}", pages.answer(pages.decision)),
        Route("/compare", pages.answer(pages.compare)),
        Route("/compare/{picture:str}.svg", pages.picture(pages.compare_picture)),
        Route("/static/{name}", pages.answer(_static)),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # a name that ends in a slash is none of ours
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(ConsilienceError, _failed)
    return Guard(app, access)


class _Pages:
    """What answers each address, on one study."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def answer(self, make: Callable[[Request], Response | str | None]) -> Callable[[Request], object]:
        """Return an endpoint that makes a page in a thread; None is a page that is not there."""

        async def endpoint(request: Request) -> Response:
            try:
                made = await run_sync(make, request)
            except MALFORMED as error:
                raise malformed("A file behind this page", error) from error
            if made is None:
                raise HTTPException(404)
            return made if isinstance(made, Response) else HTMLResponse(made)

        return endpoint

    def picture(self, make: Callable[[Request, Theme], bytes | None]) -> Callable[[Request], object]:
        """Return an endpoint that draws a picture in a thread."""

        def draw(request: Request) -> Response | None:
            theme: Theme = "dark" if request.query_params.get("theme") == "dark" else "light"
            made = make(request, theme)
            return None if made is None else Response(made, media_type=KINDS[".svg"])

        return self.answer(draw)

    def _folder(self, request: Request) -> Path:
        folder = self._study.run(request.path_params["run"])
        if folder is None:
            raise HTTPException(404)
        return folder

    def _asked(self, request: Request) -> item.Asked:
        asked = item.asked_of(self._study, self._folder(request), request.path_params["item"])
        if asked is None:
            raise HTTPException(404)
        return asked

    def runs(self, request: Request) -> str:
        return runs.runs_page(self._study, _number(request))

    def row(self, request: Request) -> str:
        return runs.row_fragment(self._study, self._folder(request))

    def run(self, request: Request) -> str:
        return run.run_page(self._study, self._folder(request), _number(request))

    def verify(self, request: Request) -> str:
        return run.verify_page(self._folder(request))

    def run_picture(self, request: Request, theme: Theme) -> bytes | None:
        makers = {"errors": run.errors_picture, "calibration": run.calibration_picture}
        make = makers.get(request.path_params["picture"])
        return None if make is None else make(self._study, self._folder(request), theme)

    def item(self, request: Request) -> str:
        query = request.query_params
        asked = self._asked(request)
        return item.item_page(
            self._study, asked, rule=query.get("rule"), view=query.get("view"), number=_number(request)
        )

    def rule(self, request: Request) -> str:
        return item.rule_fragment(self._asked(request), request.query_params.get("rule"))

    def item_picture(self, request: Request, theme: Theme) -> bytes | None:
        asked = self._asked(request)
        if request.path_params["picture"] == "fan":
            return item.fan_picture(self._study, asked, theme)
        if request.path_params["picture"] == "near":
            return item.neighbours_picture(asked, request.query_params.get("view"), theme)
        return None

    def _turn(self, request: Request) -> turns.TurnShown:
        found = turns.turns_of(self._study, self._folder(request), request.path_params["item"])
        turn = turns.turn_at(found, request.query_params)
        if turn is None:
            raise HTTPException(404)
        return turn

    def turn(self, request: Request) -> str:
        turn = self._turn(request)
        return turns.turn_page(self._study, self._folder(request), request.path_params["item"], turn)

    def exact_bytes(self, request: Request) -> Response | None:
        found = turns.bytes_of(self._study, self._folder(request), self._turn(request), request.query_params)
        return None if found is None else Response(found, media_type="text/plain; charset=utf-8")

    def forecast(self, request: Request) -> str | None:
        folder, name = self._folder(request), request.path_params["item"]
        path = self._study.file(folder, "traces", f"{name}.json")
        return None if path is None else forecast.forecast_page(self._study, folder, name, path)

    def decisions(self, request: Request) -> str:
        return decision.decisions_page(self._study, _number(request))

    def decision(self, request: Request) -> str | None:
        path = self._study.decision(request.path_params["run"])
        return None if path is None else decision.decision_page(self._study, path)

    def compare(self, request: Request) -> str:
        return compare.compare_page(self._study, request.query_params.getlist("run"))

    def compare_picture(self, request: Request, theme: Theme) -> bytes | None:
        del theme
        chosen = request.query_params.getlist("run")
        return compare.compared_picture(self._study, chosen, request.path_params["picture"])


def _static(request: Request) -> Response | None:
    path = next((path for path in STATIC.iterdir() if path.name == request.path_params["name"]), None)
    if path is None or path.suffix not in KINDS:
        return None
    return Response(path.read_bytes(), media_type=KINDS[path.suffix])


def _number(request: Request) -> int:
    """Return the page of a list that an address asks for; what is no number asks for the first."""
    said = request.query_params.get("page", "1")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 9 else 1


async def _refused(request: Request, error: Exception) -> Response:
    del request
    status = error.status_code if isinstance(error, HTTPException) else 500
    title = "Not here" if status == 404 else "Refused"
    make = partial(page, "problem.html.jinja", title=title, here=None, message="There is no such page.", hint=None)
    return HTMLResponse(await run_sync(make), status_code=status)


async def _failed(request: Request, error: Exception) -> Response:
    del request
    hint = error.hint if isinstance(error, ConsilienceError) else None
    make = partial(page, "problem.html.jinja", title="This cannot be shown", here=None, message=str(error), hint=hint)
    return HTMLResponse(await run_sync(make), status_code=500)
