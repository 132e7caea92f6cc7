"""`semflux`, the command: it looks at streams and talks to models.

command.py    the arguments, and `main`
replay.py     `semflux replay`: recorded bytes as events, text or a response
chat.py       `semflux chat`: one answer, or a conversation
shown.py      an answer as it is written, and the line of figures after it
listing.py    `semflux dialects`
outcome.py    exit statuses, and what is said on standard error
printer.py    the standard streams: escaped for eyes, raw for pipes
"""

from semflux.cli.command import main

__all__ = ("main",)
