"""The public interface of notebooks: `Lab`, with its tables, pictures and exercises."""
