"""Views of journals and tables: text, diagrams, and the viewer."""
