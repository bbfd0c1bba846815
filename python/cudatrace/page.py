# SPDX-License-Identifier: BSD-2-Clause
"""page.py - what a notebook shows inline: a page of HTML, a text."""
import html
import os
from typing import Union


class Page:
    """A page that needs no other file."""

    def __init__(self, text: str, height_px: int = 600) -> None:
        self.html = text
        self.height_px = height_px

    def save(self, path: 'Union[str, os.PathLike[str]]') -> None:
        """Writes the page to a file."""
        with open(path, 'w', encoding='utf-8') as f:
            f.write(self.html)

    def _repr_html_(self) -> str:
        """For Jupyter. The frame has its own scripts and styles, and no access to the notebook."""
        return '<iframe sandbox="allow-scripts" style="width:100%%;height:%dpx;border:0" srcdoc="%s"></iframe>' % (
            self.height_px, html.escape(self.html))


class Text(str):
    """A text whose lines a notebook shows as they are."""

    def _repr_html_(self) -> str:
        """For Jupyter."""
        return '<pre style="line-height:1.2">%s</pre>' % html.escape(self)
