"""The environment, the doctor, JupyterLab, and the learner's folder with its runs and progress."""
