"""What the package offers to Python: one question put to a panel, and what came of it."""

from consilience.api.asking import aask, ask
from consilience.api.result import Dissent, Member, Result

__all__ = ["Dissent", "Member", "Result", "aask", "ask"]
