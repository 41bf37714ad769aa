from consilience.api import Result as Result
from consilience.api import aask as aask
from consilience.api import ask as ask
from consilience.core.answers import Choice as Choice
from consilience.core.answers import Distribution as Distribution
from consilience.core.answers import Estimate as Estimate
from consilience.core.answers import Probability as Probability
from consilience.core.role import Role as Role
from consilience.experiments.panels import Panel as Panel

__version__: str
