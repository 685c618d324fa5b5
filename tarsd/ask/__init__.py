"""Questions about a vault that are answered exactly and without a model: what is asked, found and said."""
