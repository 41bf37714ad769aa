"""Files in the shape of the founding notebooks' traces, older and newer, with the numbers that are known of them."""

from __future__ import annotations

import json
from typing import Any

RATIONALE = "My findings: (1) rates fell, and (2) votes are due. However, turnout is unknown."


def step(number: int, action: str, query: str | None = None, results: int = 0, **more: Any) -> dict[str, Any]:
    found = [
        {"title": f"T{number}.{i}", "url": f"https://s.example/{query}/{i}", "snippet": "cut…", "published": None}
        for i in range(results)
    ]
    return {"step": number, "action": action, "query": query, "results": found, "llm_raw": None} | more


def agent(name: str, p: float | None, searches: int = 2, **more: Any) -> dict[str, Any]:
    steps = [step(i + 1, "search", f"{name} {i}", 5) for i in range(searches)]
    return {
        "agent_id": name,
        "p_yes": p,
        "rationale": RATIONALE,
        "traces": [*steps, step(searches + 1, "forecast")],
        "confidence": None if p is None else round(2 * abs(p - 0.5), 4),
        "sentiment": "bearish",
        "key_findings": ["rates fell"],
        "evidence_quality": "medium",
        "uncertainties": [],
        "token_usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        "search_queries_made": searches,
        "sources_consulted": [],
    } | more


def aggregation(p: list[float], value: float, n_eff: float = 1.88) -> dict[str, Any]:
    return {
        "method": "neyman",
        "raw_probability": round(sum(p) / len(p), 4),
        "extremized_probability": value,
        "extremization_factor": 1.3693,
        "input_probabilities": p,
        "input_weights": [1.0] * len(p),
        "effective_n": n_eff,
    }


def debate(bull: float, bear: float) -> dict[str, Any]:
    return {
        "rounds": [{"round_number": 1, "bull_probability": bull, "bear_probability": bear, "bull_argument": "Up."}],
        "bull_final_probability": bull,
        "bear_final_probability": bear,
        "consensus_reached": False,
        "early_termination": False,
        "token_usage": {},
    }


def supervisor(p: float | None, confidence: str | None) -> dict[str, Any]:
    return {
        "disagreements": ["timing"],
        "queries": ["q"],
        "search_results": {"q": [{"title": "S", "url": None, "snippet": None, "published": None, "score": 0.5}]},
        "p_yes": p,
        "confidence": confidence,
        "rationale": "Because.",
        "resolved_disagreements": [],
        "unresolved_uncertainties": [],
    }


def calls(n: int, prompt: str = "Forecast this.") -> list[dict[str, Any]]:
    message = {"role": "user", "content": prompt}
    return [
        {"seq": i, "label": "agent", "model": "m", "json_mode": True, "messages": [message], "response": "{}"}
        for i in range(n)
    ]


def file(**changes: Any) -> str:
    content: dict[str, Any] = {
        "notebook": "nb",
        "provider": "model",
        "question": {
            "question": "Recession?",
            "description": "",
            "resolution_date": "2025-12-31",
            "cutoff_date": "",
            "current_market_price": None,
            "resolved_outcome": None,
        },
        "params": {},
        "agents": [],
        "aggregation": None,
        "debate": None,
        "supervisor": None,
        "final_probability": None,
        "final_confidence": None,
        "llm_calls": [],
        "notes": [],
        "created_at": "2025-03-01T00:00:00",
        "run_id": "0123456789ab",
    }
    return json.dumps(content | changes, indent=2, ensure_ascii=False)


PANELS: dict[str, tuple[list[float], float, tuple[float, float] | None, tuple[float, str] | None, float, int]] = {
    "three": ([0.12, 0.22, 0.22], 0.0710, None, None, 0.0710, 12),
    "debate": ([0.35, 0.58, 0.38], 0.4133, (0.68, 0.28), None, 0.43331, 20),
    "recession": ([0.22, 0.22, 0.22], 0.1166, (0.45, 0.15), (0.18, "medium"), 0.175, 21),
    "hike": ([0.25, 0.25, 0.62], 0.3266, (0.65, 0.20), (0.15, "medium"), 0.2737, 20),
}
"""Agents, aggregate, advocates, supervisor, final probability and number of calls of the known files."""


def panel(name: str, **changes: Any) -> str:
    p, value, advocates, supervised, final, n = PANELS[name]
    known = {
        "agents": [agent(f"a{i}", x) for i, x in enumerate(p)],
        "aggregation": aggregation(p, value),
        "debate": None if advocates is None else debate(*advocates),
        "supervisor": None if supervised is None else supervisor(*supervised),
        "final_probability": final,
        "final_confidence": 0.6 if supervised else None,
        "llm_calls": calls(n),
    }
    return file(**(known | changes))
