"""What models use: `ledger` keeps it, `spending` sums it, prices it and bounds it, `meter` counts each request."""

from tarsd.usage.ledger import Ledger, Spent
from tarsd.usage.meter import Metered
from tarsd.usage.spending import Spender, Spending, spender

__all__ = ["Ledger", "Metered", "Spender", "Spending", "Spent", "spender"]
