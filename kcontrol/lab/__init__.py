"""The front door: the notebook's own calls, the learner's folder and JupyterLab."""
