"""The evidence room: what a role may see, how it is shown, what must never be shown, and whether answers keep to it."""
