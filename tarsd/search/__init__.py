"""Search: query → keyword, vector and title lists → one list of passages with score, relevance and reasons."""

from tarsd.search.hits import Hit, searched_text
from tarsd.search.query import Filter, Query, Term, parse_filters, parse_query
from tarsd.search.ranking import MODES, Mode, Ranking
from tarsd.search.relevance import band
from tarsd.search.searcher import MAX_LIMIT, Results, Searcher

__all__ = [
    "MAX_LIMIT",
    "MODES",
    "Filter",
    "Hit",
    "Mode",
    "Query",
    "Ranking",
    "Results",
    "Searcher",
    "Term",
    "band",
    "parse_filters",
    "parse_query",
    "searched_text",
]
