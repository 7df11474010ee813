"""Tools for in-process agents: what each may do is enforced at the call, whatever the agent was told or says."""

from proofstone.adapters.tools.ground import Ground
from proofstone.adapters.tools.toolbox import Toolbox, Tools

__all__ = ["Ground", "Toolbox", "Tools"]
