"""Makes and checks the Python environment, starts JupyterLab, and keeps the learner's folder with its runs and progress."""
