"""Shows journals and tables: text, diagrams, the viewer."""
