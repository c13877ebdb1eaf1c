"""Functions that draw journals and transition tables: as text, as pictures and diagrams, and in the viewer, a widget."""
