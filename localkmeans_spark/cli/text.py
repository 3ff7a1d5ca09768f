"""Text as a terminal or a report may show it: no secrets of URLs, no control characters."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# The container of an Azure URL stands where other URLs have a name and a secret.
_AZURE = r"(?!(?:abfss?|wasbs?)://[^\s/@:'\"]+@)"
# A secret may hold a slash that nobody escaped; digits after a colon are a port.
_SECRET = r"(?:[^\s/@:'\"]*:(?!\d+/)[^\s'\"]*?@(?![^\s/'\"]*@)|[^\s/@:'\"]+@)"
_USER = re.compile(rf"{_AZURE}\b([A-Za-z][\w+.-]*:/+){_SECRET}")
_QUERY = re.compile(
    r"([?&;](?:sig|[^=&?\s]*(?:token|secret|key|password|credential|signature)[^=&\s]*)=)"
    r"[^&\s'\"]+",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Return text with ``***`` for what stands before @ in a URL, and for tokens in its query."""
    return _QUERY.sub(r"\1***", _USER.sub(r"\1***@", text))


def printable(text: str) -> str:
    r"""Return text in which what does not show, as an escape sequence, reads ``\x1b``."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def shown(text: str) -> str:
    """Return one line of text as it may be shown."""
    return printable(masked(text))


def json_line(values: dict[str, Any]) -> str:
    """Return one line of standard JSON; numbers that JSON cannot hold become null."""

    def clean(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return masked(value) if isinstance(value, str) else value

    text = json.dumps({key: clean(value) for key, value in values.items()}, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
