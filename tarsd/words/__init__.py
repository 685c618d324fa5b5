"""Words: how they are folded, cut and stemmed, and which of them carry no meaning; pure."""

from tarsd.words.fold import fold
from tarsd.words.languages import ENGLISH, guess, is_english, is_stop, marks, share_not_english, stems, stems_of_text
from tarsd.words.split import (
    ASCII_SEPARATORS,
    CATEGORIES,
    SPACELESS,
    index_text,
    index_words,
    is_spaceless,
    parts_of_names,
    segment,
    split_words,
)

__all__ = [
    "ASCII_SEPARATORS", "CATEGORIES", "ENGLISH", "SPACELESS", "fold", "guess", "index_text", "index_words",
    "is_english", "is_spaceless", "is_stop", "marks", "parts_of_names", "segment", "share_not_english", "split_words",
    "stems", "stems_of_text",
]  # fmt: skip
