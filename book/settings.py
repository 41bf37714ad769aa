"""Pages of what is declared in files: arms, panels and roles, budgets and models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from book.wording import cell, code, named_in, page, table, text_of
from consilience.config import load_packaged
from consilience.decisions.panel import SHELF as DECISIONS
from consilience.experiments.arms import Budgets, Treatment, Treatments
from consilience.experiments.general import SHELF as GENERAL
from consilience.experiments.panels import Shelf, packaged_panels
from consilience.forecasting.panel import SHELF as FORECASTING
from consilience.models.calls import Limits
from consilience.models.prices import ModelSpec, Price, load_catalogue
from consilience.valuation.roster import SHELF as VALUATION

SHELVES = (VALUATION, GENERAL, FORECASTING, DECISIONS)
NOTES = {
    "max_output_tokens": "Output limit of a call; doubled once when a reply was cut off.",
    "assumed_output_tokens": "What plans and admission take a reply to be; the cap holds the worst case all the same.",
    "effort": "Reasoning effort asked of models that take one.",
}


def arms_page() -> str:
    """Return the page of treatments."""
    declared = load_packaged("configs/treatments.yaml", Treatments).treatments
    told = named_in(text_of(Treatment), "Attributes")
    return page(
        "Arms",
        "An arm is a treatment of a study, declared in `configs/treatments.yaml`. What each is there to show: "
        "[The arms of a study](../howto-arms.md).",
        table(("key", "says"), ((f"`{name}`", cell(says)) for name, says in told.items())),
        *(part for name, arm in declared.items() for part in (f"## {name}", _arm(arm))),
    )


def _arm(arm: Treatment) -> str:
    ((protocol, parameters),) = arm.protocol.items()
    settings = ", ".join(f"{name} {code(value)}" for name, value in parameters.items())
    lines = [f"- protocol: `{protocol}`{f' with {settings}' if settings else ''}", f"- panel: `{arm.panel}`"]
    beside = arm.model_dump(exclude_defaults=True, exclude={"protocol", "panel"})
    for name, value in beside.items():
        shown = ", ".join(f"{part} by `{role}`" for part, role in value.items()) if name == "parts" else code(value)
        lines.append(f"- {name.replace('_', ' ')}: {shown}")
    return "\n".join(lines)


def panels_page() -> str:
    """Return the page of panels and roles, by application."""
    return page(
        "Panels and roles",
        "A role is a text and a view: the sections of the evidence that it sees. A panel is roles in the order of "
        "their seats. Roles and panels of your own need no code: [how to](../howto-panels.md). The texts lie in "
        "`src/consilience/prompts`, one Markdown file each. Roles are simulated, and none is a professional.",
        *(part for shelf in SHELVES for part in _shelf(shelf)),
    )


def _shelf(shelf: Shelf) -> Iterator[str]:
    yield f"## {shelf.application}"
    panels = packaged_panels(shelf.application).items()
    yield table(("panel", "is"), ((f"`{name}`", cell(panel.note)) for name, panel in panels))
    rows = [
        (f"`{role.id}`", " ".join(role.view), role.framing or "", cell(_mandate(role.text)))
        for role in shelf.members(shelf.known)
    ]
    yield table(("role", "sees", "framing", "mandate"), rows)


def _mandate(text: str) -> str:
    """Return the first sentence of a role's text, less the word that opens it."""
    return (
        text.strip().split("\n", maxsplit=1)[0].removeprefix("Mandate: ").split(". ", maxsplit=1)[0].rstrip(".") + "."
    )


def budgets_page() -> str:
    """Return the page of budgets and models."""
    budgets, catalogue = load_packaged("configs/budgets.yaml", Budgets), load_catalogue()
    limits = named_in(text_of(Limits), "Attributes")
    calls: dict[str, Any] = {name: getattr(budgets, name) for name in NOTES}
    rows = [(f"`{name}`", code(value), NOTES[name]) for name, value in calls.items()]
    rows += [(f"`limits.{name}`", code(getattr(budgets.limits, name)), cell(says)) for name, says in limits.items()]
    told = named_in(text_of(ModelSpec), "Attributes")
    return page(
        "Budgets and models",
        "What every call is held to (`configs/budgets.yaml`). The spend cap is a flag, `--max-spend-usd`.",
        table(("setting", "is", "says"), rows),
        "## Models",
        "Models and list prices (`configs/models.yaml`), in dollars per million tokens, read on the day shown. An "
        "estimate at list price is no invoice. More models go under `models:` in a project's `consilience.yaml`.",
        table(
            ("model", "provider", *(name.replace("_", " ") for name in Price.model_fields), "read on"),
            ((f"`{name}`", spec.provider, *_prices(spec), _day(spec)) for name, spec in catalogue.models.items()),
        ),
        "\n".join(f"- tier `{name}`: {code(models)}" for name, models in catalogue.tiers.items()),
        "### What is said of a model",
        table(("key", "says"), ((f"`{name}`", cell(says)) for name, says in told.items())),
    )


def _prices(spec: ModelSpec) -> list[str]:
    if not isinstance(spec.price, BaseModel):
        return [spec.price or "unknown"] + [""] * (len(Price.model_fields) - 1)
    return [str(rate) for rate in spec.price.model_dump(mode="json").values()]


def _day(spec: ModelSpec) -> str:
    return spec.read_on.isoformat() if spec.read_on else ""
