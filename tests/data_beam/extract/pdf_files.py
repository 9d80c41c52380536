"""Small PDF files made for tests."""

import io
from collections.abc import Callable, Sequence

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

WIDTH, HEIGHT = A4
CHINESE, JAPANESE = "STSong-Light", "HeiseiMin-W3"
for _face in (CHINESE, JAPANESE):
    pdfmetrics.registerFont(UnicodeCIDFont(_face))


def make(*pages: Callable[[Canvas], None], **options) -> bytes:
    """A PDF whose pages are drawn by functions."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1, **options)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def lines(texts: Sequence[str], x: float = 72, y: float = 760, size: float = 10,
          font: str = "Helvetica", leading: float = 12) -> Callable[[Canvas], None]:
    """Draws lines one below the other; an empty one leaves a blank line."""
    def draw(canvas: Canvas) -> None:
        for number, text in enumerate(texts):
            canvas.setFont(font, size)
            canvas.drawString(x, y - number * leading, text)

    return draw


def wrapped(text: str, width: float, font: str = "Helvetica", size: float = 10) -> list[str]:
    """A paragraph cut into lines of at most `width` points, Chinese anywhere, English at spaces."""
    result, line = [], ""
    for word in (text if font == CHINESE else text.split(" ")):
        longer = line + word if font == CHINESE else f"{line} {word}".strip()
        if pdfmetrics.stringWidth(longer, font, size) > width:
            result.append(line)
            line = word
        else:
            line = longer
    return [*result, line]


def columns(text: str, font: str = CHINESE, length: int = 30, x: float = 500, y: float = 760,
            size: float = 12, pitch: float = 1.0, leading: float = 1.8, by_row: bool = False
            ) -> Callable[[Canvas], None]:
    """Draws vertical text: `length` characters a line, lines from the right to the left.

    A font whose name ends with `vertical` draws a line at once, others a character at a time:
    line by line, or with `by_row` across the lines.
    """
    cells = [(i // length, i % length, letter) for i, letter in enumerate(text)]

    def draw(canvas: Canvas) -> None:
        canvas.setFont(font, size)
        if font.endswith("vertical"):
            for i in range(0, len(text), length):
                canvas.drawString(x - i // length * leading * size, y, text[i:i + length])
            return
        for line, place, letter in sorted(cells, key=lambda c: (c[1], -c[0])) if by_row else cells:
            canvas.drawString(x - line * leading * size, y - place * pitch * size, letter)

    return draw


def both(*draws: Callable[[Canvas], None]) -> Callable[[Canvas], None]:
    """Draws several things on one page."""
    def draw(canvas: Canvas) -> None:
        for one in draws:
            one(canvas)

    return draw
