"""What the site does to docstrings before it shows them; mkdocs.yml names this file."""

from __future__ import annotations

import re
from typing import Any

import griffe

from localkmeans_spark.params import parameter_docs, signature

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")


class Docstrings(griffe.Extension):
    """Add the parameters, as the library does when it is imported; show roles as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change an object's docstring, or the constructor's signature."""
        if obj.docstring:
            text = obj.docstring.value.replace(
                "{parameters}", parameter_docs().replace("\n    ", "\n")
            )
            obj.docstring.value = _ROLE.sub(r"`\1`", text)
        if obj.path == "localkmeans_spark.estimator.LocalKMeans.__init__":
            obj.parameters = griffe.Parameters(
                *(
                    griffe.Parameter(
                        name,
                        kind=griffe.ParameterKind.keyword_only,
                        default=None if name == "self" else repr(parameter.default),
                    )
                    for name, parameter in signature().parameters.items()
                )
            )
