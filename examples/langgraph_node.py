"""A panel as a node of a LangGraph graph: the winner goes into the state, and a vote that nothing won goes to a person.

Install LangGraph beside consilience, from the checkout: `pip install . langgraph`
Run, without a key: `python examples/langgraph_node.py`. It prints, with nothing spent:

    steel truss; 2 differ; 0.014924 USD
    A person decides. tie: stone arch, ferry instead
    nothing won; 5 differ; 0.015108 USD
"""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from consilience import Choice, Result, ask


class State(TypedDict, total=False):
    """What travels along the graph; the panel fills in all but the first two."""

    question: str
    options: list[str]
    winner: str | None
    no_winner_because: str | None
    minority_report: list[str]
    cost_usd: float | None
    simulated: bool


def panel(state: State) -> State:
    """Ask the panel. Its members are simulated; `live=True, max_spend_usd=1` lets real models speak."""
    result = ask(state["question"], kind="choice", options=state["options"])
    return {
        "winner": result.choice,  # None on a tie or without a quorum
        "no_winner_because": f"tie: {', '.join(result.tied)}" if result.tied else result.why,
        "minority_report": minority(result),
        "cost_usd": result.cost_usd,
        "simulated": result.simulated,
    }


def minority(result: Result) -> list[str]:
    """Return each vote that differs from the outcome, with its reasons; after a tie that is every vote."""
    votes = [(one.member.role, one.member.answer, one.reasons) for one in result.minority_report]
    return [f"{role} for {result.label(vote.choice)}: {why}" for role, vote, why in votes if isinstance(vote, Choice)]


graph = StateGraph(State)
graph.add_node("panel", panel)
graph.add_node("person", lambda state: print("A person decides.", state["no_winner_because"]))
graph.add_edge(START, "panel")
graph.add_conditional_edges("panel", lambda state: END if state["winner"] else "person", [END, "person"])
app = graph.compile()

if __name__ == "__main__":
    for options in (["stone arch", "steel truss"], ["stone arch", "steel truss", "ferry instead"]):
        end = app.invoke({"question": "Which bridge should Ostfeld build?", "options": options})
        print(f"{end['winner'] or 'nothing won'}; {len(end['minority_report'])} differ; {end['cost_usd']} USD")
