"""Views of results: terminal and HTML. They see core types only, never torch."""
