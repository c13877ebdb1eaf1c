"""Makes and checks the Python environment, starts JupyterLab, and keeps the user's folder with recorded runs and progress."""
