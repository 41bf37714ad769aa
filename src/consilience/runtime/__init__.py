"""One question put to one panel: its briefing, its turns, and the session a protocol is given."""
