"""What a lab writes down: text, figures, tables, and claims beside what was measured; and the page that shows it."""
