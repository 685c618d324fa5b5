"""Search: query → keyword, vector and title lists → one list of passages with score, relevance and reasons."""

from tarsd.search.held import searched_text
from tarsd.search.query import Filter, Query, Term, parse_filters, parse_query
from tarsd.search.ranking import MODES, Mode, Ranking, Scope
from tarsd.search.relevance import MAYBE, RELEVANT
from tarsd.search.searcher import MAX_LIMIT, Results, Searcher

__all__ = [
    "MAX_LIMIT", "MAYBE", "MODES", "RELEVANT", "Filter", "Mode", "Query", "Ranking", "Results", "Scope", "Searcher",
    "Term", "parse_filters", "parse_query", "searched_text",
]  # fmt: skip
